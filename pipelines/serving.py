"""Raw strings to features inside a graph: what an exported model does with the text it is sent."""

from typing import NamedTuple

import tensorflow as tf

from rembert_tf.pipelines.tokenization import RemBertTokenizer

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


def word_features(
    tokenizer: RemBertTokenizer, words: tf.RaggedTensor, max_seq_length: int
) -> tuple[dict[str, tf.Tensor], tf.Tensor, tf.Tensor]:
    """Makes `[CLS] pieces [SEP]` of words, as `tagging.make_features` does for sentences that fit in one row.

    Args:
        tokenizer: the tokenizer.
        words: ragged string [B, (W)].
        max_seq_length: longest row.

    Returns:
        `input_ids`, `attention_mask` and `token_type_ids` int32 [B, T]; the position of each word's first piece, int64
        [B, W], -1 for filling and for words that were cut off; and whether a row was cut, bool [B].
    """
    pieces = tokenizer.tokenize(words.values)
    unknown = tf.fill([pieces.nrows(), 1], tokenizer.unk_id)
    unknown = tf.RaggedTensor.from_tensor(unknown)
    is_empty = pieces.row_lengths() == 0
    pieces = tf.concat([pieces, tf.ragged.boolean_mask(unknown, is_empty[:, tf.newaxis])], axis=1)
    by_word = words.with_values(pieces.row_lengths())
    by_row = tf.RaggedTensor.from_row_lengths(pieces.values, tf.reduce_sum(by_word, axis=1))
    before = tf.cumsum(pieces.row_lengths(), exclusive=True)
    positions = before - tf.gather(by_row.row_starts(), words.value_rowids()) + 1
    limit = max_seq_length - 2
    positions = tf.where(positions <= limit, positions, -1)
    features = _rows(tokenizer, [by_row[:, :limit]])
    return features, words.with_values(positions).to_tensor(-1), by_row.row_lengths() > limit


def pair_features(
    tokenizer: RemBertTokenizer, first: tf.Tensor, second: tf.Tensor, max_seq_length: int
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Makes `[CLS] A [SEP] B [SEP]`, truncated by the rule of `classification.make_features`.

    Args:
        tokenizer: the tokenizer.
        first: string [B].
        second: string [B].
        max_seq_length: longest row.

    Returns:
        `input_ids`, `attention_mask` and `token_type_ids` int32 [B, T]; and whether a row was cut, bool [B].
    """
    a, b = tokenizer.tokenize(first), tokenizer.tokenize(second)
    limit = max_seq_length - 3
    half = (limit + 1) // 2
    kept_a = tf.minimum(a.row_lengths(), tf.maximum(limit - b.row_lengths(), half))
    kept_b = tf.minimum(b.row_lengths(), limit - kept_a)
    truncated = a.row_lengths() + b.row_lengths() > limit
    return _rows(tokenizer, [_cut(a, kept_a), _cut(b, kept_b)]), truncated


def _cut(pieces: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns the first `lengths[n]` pieces of each row n."""
    columns = tf.ragged.range(pieces.row_lengths())
    kept = columns.values < tf.gather(lengths, columns.value_rowids())
    return tf.ragged.boolean_mask(pieces, pieces.with_values(kept))


def _rows(tokenizer: RemBertTokenizer, segments: list[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
    """Puts `[CLS]` before and `[SEP]` behind each segment, and pads; segment n has token type n."""
    count = segments[0].nrows()
    ids, types = [tf.fill([count, 1], tokenizer.cls_id)], [tf.zeros([count, 1], tf.int32)]
    for number, segment in enumerate(segments):
        segment = tf.concat([segment, tf.fill([count, 1], tokenizer.sep_id)], axis=1)
        ids.append(segment)
        types.append(tf.fill(tf.shape(segment.values), number))
        types[-1] = segment.with_values(types[-1])
    input_ids = tf.concat(ids, axis=1)
    return {
        "input_ids": input_ids.to_tensor(tokenizer.pad_id),
        "attention_mask": tf.ones_like(input_ids).to_tensor(0),
        "token_type_ids": tf.concat(types, axis=1).to_tensor(0),
    }
