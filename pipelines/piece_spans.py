"""Which characters of a text each of its pieces stands for.

SentencePiece splits a normalised text: a ligature or a fraction has become several characters, a decomposed letter one,
a run of spaces one space. So a second model (`character_model.py`), which takes the same normalised text apart into
single characters, tells where each of them comes from. A piece stands for all original characters that its own come
from:

    text         "a  ½"    (two spaces; NFKC makes "1⁄2" of the fraction)
    normalised   ▁  a  ▁  1  ⁄  2        pieces    ▁a    ▁1    ⁄2
    from         0  0  1  3  3  3        spans    0–1   3–4   3–4

Spaces belong to no piece. A piece of nothing but spaces has an empty span at the end of the text before it.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import character_model
from rembert_tf.pipelines.tokenization import RemBertTokenizer, SharedModel, sentencepiece_ops


class PieceSpans(NamedTuple):
    """The pieces of B strings and the characters they stand for.

    Empty spans left out, neither starts nor ends ever decrease in a string. Pieces that share a character
    overlap there.

    Attributes:
        ids: ragged int32 [B, (P)], the ids that `RemBertTokenizer.tokenize` gives.
        starts: ragged int32 [B, (P)], first code point of each piece in its string.
        ends: ragged int32 [B, (P)], the code point after its last.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


class SpanTokenizer(tf.Module):
    """Splits strings into pieces and finds their spans; works in graphs and SavedModels too.

    Args:
        tokenizer: whose pieces they are.

    Example:
        >>> spans = SpanTokenizer(tokenizer).tokenize(["The old house"])
        >>> spans.starts[0, 0].numpy(), spans.ends[0, -1].numpy()
        (np.int32(0), np.int32(13))
    """

    def __init__(self, tokenizer: RemBertTokenizer):
        super().__init__(name="span_tokenizer")
        self._vocab_size = tokenizer.vocab_size
        self._unk_id = tokenizer.unk_id
        pieces = character_model.ModelProto.FromString(tokenizer.shared_model.model_bytes)
        characters = character_model.model_of_characters(pieces)
        character_model.spell_unknown_characters(pieces)
        self._pieces = SharedModel(pieces.SerializeToString())
        self._characters = SharedModel(characters.SerializeToString())
        self._lengths = np.array([character_model.length(p) for p in pieces.pieces], np.int32)
        self._is_later_byte = np.array([character_model.is_later_byte(p) for p in pieces.pieces])
        self._is_later_byte_of_character = np.array(
            [character_model.is_later_byte(c) for c in characters.pieces]
        )
        self._is_space = np.array([character_model.is_space(c) for c in characters.pieces])

    def tokenize(self, strings) -> PieceSpans:
        """Splits strings.

        Args:
            strings: string [B], UTF-8.
        """
        strings = tf.convert_to_tensor(strings, tf.string)
        nrows = tf.size(strings, tf.int64)
        ids, row, begins, ends = self.split(strings)
        first_byte, code_points = _code_points(strings)
        starts, limits = self._origins(strings, first_byte, code_points)
        offset = tf.gather(tf.gather(code_points, first_byte), row)
        empty = tf.maximum(tf.gather(limits, begins), offset)
        has_text = ends > begins
        starts = tf.where(has_text, tf.gather(starts, begins), empty) - offset
        ends = tf.where(has_text, tf.gather(limits, ends), empty) - offset
        return PieceSpans(
            *(
                tf.RaggedTensor.from_value_rowids(values, row, nrows, validate=False)
                for values in (ids, starts, ends)
            )
        )

    def split(self, strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Splits strings and counts the normalised characters, spaces left out, over all strings.

        Args:
            strings: string [B], UTF-8.

        Returns:
            Of each piece: its id, int32 [P]; its string, int64 [P]; the number of its first character, int32 [P]; the
            number after its last, int32 [P], the same for a piece of spaces.
        """
        ids, splits, _, _ = _split(self._pieces, strings)
        row = tf.RaggedTensor.from_row_splits(ids, splits, validate=False).value_rowids()
        lengths = tf.gather(self._lengths, ids)
        ends = tf.cumsum(lengths)
        # Further bytes of a character stand for all of it.
        begins = ends - tf.maximum(lengths, tf.cast(tf.gather(self._is_later_byte, ids), tf.int32))
        # Unknown characters that follow each other are one unknown piece.
        is_unknown = ids >= self._vocab_size
        joins = is_unknown[1:] & is_unknown[:-1] & (row[1:] == row[:-1])
        is_first = tf.concat([tf.ones_like(is_unknown[:1]), ~joins], axis=0)
        is_last = tf.concat([~joins, tf.ones_like(is_unknown[:1])], axis=0)
        ids = tf.where(is_unknown, self._unk_id, ids)
        ids, row, begins = (tf.boolean_mask(values, is_first) for values in (ids, row, begins))
        return ids, row, begins, tf.boolean_mask(ends, is_last)

    def _origins(self, strings, first_byte, code_points):
        """Finds what each of the X normalised characters comes from, code points counted over all strings.

        Returns:
            int32 [X + 1] each: character x comes from `starts[x]:limits[x + 1]`.
        """
        ids, splits, starts, limits = _split(self._characters, strings)
        first_byte = tf.repeat(first_byte, splits[1:] - splits[:-1])
        starts = tf.gather(code_points, first_byte + tf.cast(starts, tf.int64))
        limits = tf.gather(code_points, first_byte + tf.cast(limits, tf.int64))
        # An unknown character comes as its bytes: the first one has its start, the last one its limit.
        is_first = ~tf.gather(self._is_later_byte_of_character, ids)
        is_last = tf.concat([is_first[1:], tf.ones_like(is_first[:1])], axis=0)
        is_text = ~tf.gather(self._is_space, tf.boolean_mask(ids, is_first))
        starts, limits = tf.boolean_mask(starts, is_first), tf.boolean_mask(limits, is_last)
        # Characters that come from the same original ones all start there; the last of them ends there.
        ends_group = tf.concat([starts[1:] != starts[:-1], tf.ones_like(is_last[:1])], axis=0)
        group = tf.cumsum(tf.cast(ends_group, tf.int32), exclusive=True)
        limits = tf.gather(tf.boolean_mask(limits, ends_group), group)
        starts, limits = tf.boolean_mask(starts, is_text), tf.boolean_mask(limits, is_text)
        return tf.concat([starts, [0]], axis=0), tf.concat([[0], limits], axis=0)


def _split(model: SharedModel, strings: tf.Tensor) -> list[tf.Tensor]:
    """Returns ids int32 [P], row splits int64 [B + 1], first byte and byte after the last int32 [P]."""
    return sentencepiece_ops.sentencepiece_tokenize_with_offsets_op(
        model.resource_handle,
        strings,
        nbest_size=0,
        alpha=1.0,
        add_bos=False,
        add_eos=False,
        reverse=False,
        out_type=tf.int32,
    )


def _code_points(strings: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Lays strings end to end and counts.

    Returns:
        The first byte of each string, int64 [B]; the code points before each byte, int32 [bytes + 1].
    """
    data = tf.io.decode_raw(tf.strings.reduce_join(strings), tf.uint8)
    begins_character = (data & 0xC0) != 0x80
    counts = tf.cumsum(tf.cast(begins_character, tf.int32))
    first_of_row = tf.cumsum(tf.cast(tf.strings.length(strings), tf.int64), exclusive=True)
    return first_of_row, tf.concat([[0], counts], axis=0)
