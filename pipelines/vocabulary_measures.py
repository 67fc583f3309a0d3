"""How finely a vocabulary splits text, and which scripts its pieces are in.

Fertility is the number of pieces to a word, or to a character. Words are what white space separates; where more than
half of the letters belong to scripts that are written without spaces between words (`spaceless_scripts.py`), only
characters count. A character is a code point of the text as it stands, white space left out.
"""

import collections
import functools
from collections.abc import Sequence

import numpy as np
import sentencepiece
from fontTools import unicodedata

from rembert_tf.pipelines.spaceless_scripts import is_spaceless
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.word_pieces import byte_pieces

_SPACE = "\u2581"
_NO_SCRIPT = frozenset(("Zyyy", "Zinh", "Zzzz"))
_LISTED = 5  # characters a language


class VocabularyMeter:
    """Measures one vocabulary.

    Example:
        >>> measured = VocabularyMeter(tokenizer).measure(["The old house", "the sea"])
        >>> measured["words"], measured["characters"], measured["unknown"]
        (5, 17, 0)
    """

    def __init__(self, tokenizer: RemBertTokenizer):
        """Reads what is needed of a vocabulary.

        Args:
            tokenizer: The vocabulary.
        """
        self._tokenizer = tokenizer
        self._names = tokenizer.pieces()
        self._is_byte = byte_pieces(tokenizer)
        self._normalizer = sentencepiece.SentencePieceNormalizer(model_proto=tokenizer.model_bytes)

    def count_pieces(self) -> dict[str, int]:
        """Counts the pieces by kind: special, reserved, byte, text, and all of them."""
        special = [self._names[index] for index in self._tokenizer.special_ids.tolist()]
        reserved = sum(name.startswith("<reserved_") for name in special)
        counts = {
            "special": len(special) - reserved,
            "reserved": reserved,
            "byte": int(self._is_byte.sum()),
        }
        size = self._tokenizer.vocab_size
        return {**counts, "text": size - sum(counts.values()), "all": size}

    def count_scripts(self) -> dict[str, int]:
        """Counts the pieces of text by script, the commonest first; digits, signs and spaces are Common.

        A piece in two scripts, such as one of kanji and kana, counts for the one that has more of its characters.
        """
        text = [i for i in self._tokenizer.ordinary_ids.tolist() if not self._is_byte[i]]
        counts = collections.Counter(_script_of_piece(self._names[index]) for index in text)
        return {unicodedata.script_name(script): count for script, count in counts.most_common()}

    def measure(self, texts: Sequence[str]) -> dict:
        """Splits sentences of one language and counts.

        Args:
            texts: The sentences.

        Returns:
            characters, words (None without spaces between words), pieces, unknown and byte pieces; the ratios
            pieces_per_word (or None), pieces_per_character, unknown_rate and byte_rate (of the pieces); and
            characters_without_piece, the commonest of them with their numbers.
        """
        ids = np.concatenate([np.zeros(0, np.int32), *self._tokenizer.encode(texts)])
        characters = collections.Counter("".join("".join(texts).split()))
        total = sum(characters.values())
        words = sum(len(text.split()) for text in texts) if _has_spaces(characters) else None
        unknown, byte = (ids == self._tokenizer.unk_id).sum(), self._is_byte[ids].sum()
        return {
            "characters": total,
            "words": words,
            "pieces": len(ids),
            "unknown": int(unknown),
            "byte": int(byte),
            "pieces_per_word": len(ids) / words if words else None,
            "pieces_per_character": len(ids) / max(total, 1),
            "unknown_rate": unknown / max(len(ids), 1),
            "byte_rate": byte / max(len(ids), 1),
            "characters_without_piece": self._lacking(texts).most_common(_LISTED),
        }

    def _lacking(self, texts: Sequence[str]) -> collections.Counter:
        """Counts the characters of the normalised text that have no piece of their own."""
        counts = collections.Counter("".join(map(self._normalizer.normalize, texts)))
        for name in (*self._names, _SPACE, " "):
            counts.pop(name, None)
        return counts


def _has_spaces(characters: collections.Counter) -> bool:
    """Tells whether most letters are of scripts with spaces between words."""
    without = sum(count for character, count in characters.items() if is_spaceless(character))
    others = sum(
        count
        for character, count in characters.items()
        if _script(character) not in _NO_SCRIPT and not is_spaceless(character)
    )
    return without <= others


def _script_of_piece(piece: str) -> str:
    scripts = collections.Counter(map(_script, piece.removeprefix(_SPACE)))
    own = [script for script, _ in scripts.most_common() if script not in _NO_SCRIPT]
    return own[0] if own else "Zyyy"


@functools.cache
def _script(character: str) -> str:
    return unicodedata.script(character)
