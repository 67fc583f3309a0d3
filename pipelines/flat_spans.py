"""Pieces of many texts in NumPy arrays with the characters they stand for, and the way back from characters to pieces.

Most texts consist of spaces and of characters that become one character each, wherever they stand: there, the n-th
letter of the pieces is the n-th letter of the text, and counting is enough. The others go through `SpanTokenizer`,
which gives the same for every text, but takes longer.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import character_model
from rembert_tf.pipelines.features import ranges, row_splits
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.tokenization import RemBertTokenizer


class FlatSpans(NamedTuple):
    """The pieces of N texts, end to end, and the characters they stand for.

    Attributes:
        ids: int32 `[P]`.
        starts: first code point in the text, int32 `[P]`.
        ends: code point after the last, int32 `[P]`.
        splits: text `n` has the pieces `splits[n]:splits[n + 1]`, int64 `[N + 1]`.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    splits: np.ndarray


def encode_spans(tokenizer: RemBertTokenizer, texts: Sequence[str]) -> FlatSpans:
    """Splits Python strings; a lone surrogate, which no encoding has, is read as a question mark."""
    encoder = _encoder(tokenizer)
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "replace"), np.uint32)
    text_splits = row_splits(np.fromiter(map(len, texts), np.int64, len(texts)))
    kinds = encoder.kinds[np.minimum(codes, len(encoder.kinds) - 1)]
    others = row_splits(kinds == character_model.OTHER)[text_splits]
    is_simple = others[1:] == others[:-1]
    strings = np.array([text.encode(errors="replace") for text in texts], object)

    in_simple = np.repeat(is_simple, np.diff(text_splits))
    letters = np.flatnonzero(in_simple & (kinds == character_model.LETTER))
    simple = encoder.count(strings[is_simple], letters, text_splits[:-1][is_simple])
    spans = encoder.spans.tokenize(tf.constant(strings[~is_simple].tolist(), tf.string))
    looked_up = FlatSpans(
        spans.ids.values.numpy(),
        spans.starts.values.numpy(),
        spans.ends.values.numpy(),
        spans.ids.row_splits.numpy(),
    )
    # Back into the order of the texts.
    begins = np.empty(len(texts), np.int64)
    begins[is_simple] = simple.splits[:-1]
    begins[~is_simple] = looked_up.splits[:-1] + len(simple.ids)
    lengths = np.empty(len(texts), np.int64)
    lengths[is_simple], lengths[~is_simple] = np.diff(simple.splits), np.diff(looked_up.splits)
    order = ranges(begins, lengths)
    ids, starts, ends = (
        np.concatenate([a, b])[order] for a, b in zip(simple[:3], looked_up[:3], strict=True)
    )
    return FlatSpans(ids, starts, ends, row_splits(lengths))


class _Encoder:
    """What a vocabulary needs for its spans; takes a second to make of a large one."""

    def __init__(self, tokenizer: RemBertTokenizer):
        self.spans = SpanTokenizer(tokenizer)
        self.kinds = character_model.kinds_of_characters(
            character_model.ModelProto.FromString(tokenizer.shared_model.model_bytes)
        )

    def count(self, strings: np.ndarray, letters: np.ndarray, offsets: np.ndarray) -> FlatSpans:
        """Splits simple texts.

        Args:
            strings: `N` encoded texts.
            letters: the places of all their letters, counted over all texts, int64 `[L]`.
            offsets: where each text begins, int64 `[N]`.
        """
        pieces = self.spans.split(tf.constant(strings.tolist(), tf.string))
        ids, rows, begins, ends = (part.numpy() for part in pieces)
        offset = offsets[rows]
        limits = np.append(0, letters + 1)
        empty = np.maximum(limits[begins], offset)
        has_text = ends > begins
        starts = np.where(has_text, np.append(letters, 0)[begins], empty) - offset
        ends = np.where(has_text, limits[ends], empty) - offset
        splits = row_splits(np.bincount(rows, minlength=len(offsets)))
        return FlatSpans(ids, starts.astype(np.int32), ends.astype(np.int32), splits)


_encoder = functools.lru_cache(maxsize=2)(_Encoder)


def pieces_of_characters(
    spans: FlatSpans, texts: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the pieces that stand for stretches of characters: all that share a character with them.

    Args:
        spans: the pieces of N texts.
        texts: the number of the text that each stretch is in, int64 `[M]`.
        starts: its first code point, int64 `[M]`.
        ends: the code point after its last, int64 `[M]`.

    Returns:
        The numbers of its first and last piece in `spans`, int64 `[M]` each; both -1 where no piece has a share.
    """
    numbers = np.flatnonzero(spans.ends > spans.starts)
    text = np.repeat(np.arange(len(spans.splits) - 1), np.diff(spans.splits))[numbers] << 32
    # In a text, neither starts nor ends decrease: two binary searches for all stretches.
    first = np.searchsorted(text + spans.ends[numbers], (texts << 32) + starts, side="right")
    last = np.searchsorted(text + spans.starts[numbers], (texts << 32) + ends, side="left") - 1
    found = (first <= last) & (starts < ends)
    numbers = np.append(numbers, -1)
    return np.where(found, numbers[first], -1), np.where(found, numbers[last], -1)
