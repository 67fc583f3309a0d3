"""Matches the pieces of two vocabularies by their strings, so that a model's tables can change from one to the other.

An id means nothing across two vocabularies; a string does. A piece that only the new vocabulary has is spelled with
pieces of the old one: that is what the model has read in its place so far.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines.tokenization import RemBertTokenizer

_ROLES = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
_SPACE = "\u2581"  # how SentencePiece writes a space


@dataclasses.dataclass(frozen=True)
class PieceMatch:
    """Where each row of a new vocabulary's tables comes from.

    Attributes:
        kept: The old id of each new piece, -1 where the old vocabulary lacks it. int64 [V_new].
        parts: By the id of a new piece: the old pieces that spell it. int [parts]. Some new pieces cannot be spelled.
        ordinary: All old pieces that a new piece which cannot be spelled is like, on average. int [N].
    """

    kept: np.ndarray
    parts: Mapping[int, np.ndarray]
    ordinary: np.ndarray


def match_pieces(old: RemBertTokenizer, new: RemBertTokenizer) -> PieceMatch:
    """Finds the pieces of a new vocabulary in an old one.

    Special pieces match by role ([CLS] is [CLS], whatever its id), all others by string; a special piece never matches
    an ordinary one, nor a byte the text that spells it. An ordinary piece that the old vocabulary lacks is spelled by
    the old tokenizer, its unknown pieces left out.

    Args:
        old: The tokenizer whose ids the rows have.
        new: The tokenizer whose ids they shall have.

    Example:
        >>> match = match_pieces(tokenizer, tokenizer)
        >>> match.kept[:3].tolist(), len(match.parts)
        ([0, 1, 2], 0)
    """
    old_ids = {key: index for index, key in enumerate(_keys(old))}
    new_keys = _keys(new)
    kept = np.array([old_ids.get(key, -1) for key in new_keys])
    for role in _ROLES:
        kept[getattr(new, role)] = getattr(old, role)
    lacking = [i for i in np.flatnonzero(kept < 0).tolist() if new_keys[i][0] == "text"]
    spellings = spell_pieces(old.model_bytes, [new_keys[index][1] for index in lacking])
    parts = {}
    for index, spelling in zip(lacking, spellings, strict=True):
        known = np.array(spelling)[np.isin(spelling, old.ordinary_ids)]
        if len(known):
            parts[index] = known
    return PieceMatch(kept=kept, parts=parts, ordinary=old.ordinary_ids)


def spell_pieces(model: bytes, pieces: Sequence[str]) -> list[list[int]]:
    """Splits pieces of another vocabulary.

    Each is split as it would be inside a text: a word in front of which no space is written gets none.

    Args:
        model: The vocabulary file that splits.
        pieces: Pieces as SentencePiece writes them, `\u2581` for a space.

    Returns:
        The ids of each piece.
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    proto.normalizer_spec.add_dummy_prefix = False
    proto.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    return processor.encode([piece.replace(_SPACE, " ") for piece in pieces])


def _keys(tokenizer: RemBertTokenizer) -> list[tuple[str, str]]:
    """Returns the kind and the string of each piece."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model_bytes)
    byte = sentencepiece_model_pb2.ModelProto.SentencePiece.BYTE
    keys = [("byte" if piece.type == byte else "text", piece.piece) for piece in proto.pieces]
    for index in tokenizer.special_ids.tolist():
        keys[index] = ("special", keys[index][1])
    return keys
