"""Words of raw strings inside a graph: what `str.split()` does, with the place of each word."""

from typing import NamedTuple

import tensorflow as tf

# Unicode's White_Space characters, at which Python's `str.split()` splits, too (and U+001C to U+001F).
_SPACES = (
    *range(0x09, 0x0E), *range(0x1C, 0x21), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B),
    0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
)  # fmt: skip


class Words(NamedTuple):
    """The words of B strings.

    Attributes:
        strings: ragged string [B, (W)].
        starts: ragged int32 [B, (W)], first code point of each word in its string.
        ends: ragged int32 [B, (W)], code point after its last.
    """

    strings: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def split_words(text: tf.Tensor) -> Words:
    """Splits strings at white space, as Python's `str.split()` does; works in graphs.

    Bytes that are no UTF-8 become U+FFFD, one code point each.

    Args:
        text: string [B].
    """
    characters = tf.strings.unicode_decode(
        text, "UTF-8", errors="replace", replace_control_characters=False
    )
    flat = characters.values
    row = characters.value_rowids()
    column = tf.range(tf.size(flat, tf.int64), dtype=tf.int64) - tf.gather(
        characters.row_starts(), row
    )
    inside = ~tf.reduce_any(flat[:, tf.newaxis] == tf.constant(_SPACES), axis=1)
    first = inside & ((column == 0) | ~tf.roll(inside, 1, axis=0))
    last_column = tf.gather(characters.row_lengths(), row) - 1
    last = inside & ((column == last_column) | ~tf.roll(inside, -1, axis=0))
    word = tf.cumsum(tf.cast(first, tf.int64)) - 1  # the number of the word each character is in
    letters = tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(flat, inside), tf.boolean_mask(word, inside)
    )

    def rows(values):
        return tf.RaggedTensor.from_value_rowids(
            values, tf.boolean_mask(row, first), nrows=characters.nrows()
        )

    return Words(
        strings=rows(tf.strings.unicode_encode(letters, "UTF-8")),
        starts=rows(tf.cast(tf.boolean_mask(column, first), tf.int32)),
        ends=rows(tf.cast(tf.boolean_mask(column, last) + 1, tf.int32)),
    )
