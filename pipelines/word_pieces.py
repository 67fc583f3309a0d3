"""Which pieces make up a word, so that words are masked as a whole.

A piece that begins with ▁ begins a word. Punctuation and symbols are words of their own, as for BERT, whose tokenizer
splits them off before it looks for pieces. So are the pieces of scripts that are written without spaces (Chinese,
Japanese, Thai, Lao, Khmer, Burmese, ...): there a ▁ stands only where a sentence or a quotation begins, and all pieces
up to the next one would be more than may be masked. BERT's tokenizer makes each Chinese character a word; a piece is
what the unigram model took for a unit, often a real word. Best known is a word segmenter for each language (as for
Chinese BERT-wwm, Cui et al. 2021), which is no part of this project.
"""

import dataclasses
import functools
import unicodedata

import numpy as np
import sentencepiece
import tensorflow as tf

from rembert_tf.pipelines.spaceless_scripts import is_spaceless
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_SPACE = "▁"
_JOINERS = "\u200c\u200d"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class WordPieces:
    """What each piece of a vocabulary is to a word.

    Attributes:
        continues: Whether it may go on with the word of the piece before it, bool [V].
        continuable: Whether the piece after it may go on with its word, bool [V].

    Example:
        >>> words = WordPieces.of_pieces(["▁the", "▁hous", "es", ",", "中国", "人"])
        >>> words.starts(tf.constant([[0, 1, 2, 3, 4, 5]]), tf.ones([1, 6], tf.bool)).numpy().tolist()
        [[True, True, False, True, True, True]]
    """

    continues: np.ndarray
    continuable: np.ndarray

    @classmethod
    def of_tokenizer(cls, tokenizer: RemBertTokenizer) -> "WordPieces":
        """Looks at the pieces of a vocabulary; spelled bytes go on with any word."""
        words = cls.of_pieces(tokenizer.pieces())
        is_byte = byte_pieces(tokenizer)
        return cls(continues=words.continues | is_byte, continuable=words.continuable | is_byte)

    @classmethod
    def of_pieces(cls, pieces: list[str]) -> "WordPieces":
        """Looks at the spelling of pieces."""
        return cls(
            continues=np.array([_in_word(piece[0]) for piece in pieces]),
            continuable=np.array([piece[-1] == _SPACE or _in_word(piece[-1]) for piece in pieces]),
        )

    def starts(self, input_ids: tf.Tensor, candidates: tf.Tensor) -> tf.Tensor:
        """Marks the pieces that begin a word.

        Args:
            input_ids: int32 [B, T].
            candidates: Which positions hold text at all, bool [B, T].

        Returns:
            bool [B, T].
        """
        goes_on = tf.gather(self.continues, input_ids) & candidates
        lasts = tf.gather(self.continuable, input_ids) & candidates
        before = tf.pad(lasts[:, :-1], [[0, 0], [1, 0]])
        return candidates & ~(goes_on & before)


def byte_pieces(tokenizer: RemBertTokenizer) -> np.ndarray:
    """Says which pieces stand for a byte of a character that has no piece, bool [V]."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    return np.array(processor.is_byte(list(range(tokenizer.vocab_size))))


@functools.cache
def _in_word(character: str) -> bool:
    if character in _JOINERS:
        return True
    return unicodedata.category(character)[0] in "LMN" and not is_spaceless(character)
