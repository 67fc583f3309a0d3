"""Raw strings to rows of piece ids inside a graph: what an exported model does with the text it is sent.

Each function makes the rows that its twin makes for training: `pair_rows` those of `classification.py`, `word_rows`
those of `tagging.py`. Rows stay ragged; `row_batches.py` pads them.
"""

from typing import NamedTuple

import tensorflow as tf

from rembert_tf.pipelines.tokenization import RemBertTokenizer, sentencepiece_ops

MASK = "[MASK]"


class Rows(NamedTuple):
    """R rows of piece ids, special pieces included.

    Attributes:
        input_ids: ragged int32 [R, (T)].
        token_type_ids: ragged int32 [R, (T)].
    """

    input_ids: tf.RaggedTensor
    token_type_ids: tf.RaggedTensor

    def padded(self, numbers: tf.Tensor, pad_id: int) -> dict[str, tf.Tensor]:
        """Returns the features of some rows.

        Args:
            numbers: which rows, int [N].
            pad_id: id of the padding piece.

        Returns:
            `input_ids`, `attention_mask` and `token_type_ids`, int32 [N, T].
        """
        ids = tf.gather(self.input_ids, numbers)
        mask = tf.sequence_mask(ids.row_lengths(), dtype=tf.int32)
        types = tf.gather(self.token_type_ids, numbers)
        return {
            "input_ids": ids.to_tensor(pad_id),
            "attention_mask": mask,
            "token_type_ids": types.to_tensor(0),
        }


def valid_text(text: tf.Tensor) -> tf.Tensor:
    """Returns strings whose bytes that are no UTF-8 have become U+FFFD; all others as they are.

    Args:
        text: string [...].
    """
    return tf.strings.unicode_transcode(
        text, "UTF-8", "UTF-8", errors="replace", replace_control_characters=False
    )


def cut(pieces: tf.RaggedTensor, lengths: tf.Tensor) -> tf.RaggedTensor:
    """Returns the first `lengths[n]` pieces of each row n.

    Args:
        pieces: ragged [R, (P)].
        lengths: int64 [R], none above the row's own.
    """
    starts = pieces.row_starts()
    places = tf.ragged.range(starts, starts + lengths).values
    return tf.RaggedTensor.from_row_lengths(tf.gather(pieces.values, places), lengths, False)


def join(tokenizer: RemBertTokenizer, segments: list[tf.RaggedTensor]) -> Rows:
    """Puts `[CLS]` before and `[SEP]` behind each segment; segment n and its `[SEP]` have token type n.

    Args:
        tokenizer: whose special pieces.
        segments: ragged int32 [R, (P)] each.
    """
    lengths = [segment.row_lengths() for segment in segments]
    row_lengths = tf.add_n(lengths) + 1 + len(segments)
    ends = tf.cumsum(row_lengths)
    starts = ends - row_lengths
    size = tf.reduce_sum(row_lengths)
    places, values = [starts], [tf.fill(tf.shape(starts), tokenizer.cls_id)]
    types = tf.zeros([size], tf.int32)
    begin = starts + 1
    for number, (segment, length) in enumerate(zip(segments, lengths, strict=True)):
        places.append(tf.ragged.range(begin, begin + length).values)
        values.append(segment.values)
        if number:
            own = tf.ragged.range(begin, begin + length + 1).values[:, tf.newaxis]
            types = tf.tensor_scatter_nd_update(types, own, tf.fill(tf.shape(own)[:1], number))
        begin += length + 1
    ids = tf.tensor_scatter_nd_update(
        tf.fill([size], tokenizer.sep_id),
        tf.concat(places, axis=0)[:, tf.newaxis],
        tf.concat(values, axis=0),
    )
    return Rows(*(tf.RaggedTensor.from_row_lengths(x, row_lengths, False) for x in (ids, types)))


def text_rows(
    tokenizer: RemBertTokenizer, text: tf.Tensor, max_seq_length: int
) -> tuple[Rows, tf.Tensor]:
    """Makes `[CLS] text [SEP]`, cut at its end.

    Args:
        tokenizer: the tokenizer.
        text: string [B].
        max_seq_length: longest row.

    Returns:
        B rows; and whether a row was cut, bool [B].
    """
    pieces = tokenizer.tokenize(text)
    limit = tf.constant(max_seq_length - 2, tf.int64)
    lengths = pieces.row_lengths()
    return join(tokenizer, [cut(pieces, tf.minimum(lengths, limit))]), lengths > limit


def pair_rows(
    tokenizer: RemBertTokenizer, first: tf.Tensor, second: tf.Tensor, max_seq_length: int
) -> tuple[Rows, tf.Tensor]:
    """Makes `[CLS] A [SEP] B [SEP]`, truncated by the rule of `classification.make_features`.

    Args:
        tokenizer: the tokenizer.
        first: string [B].
        second: string [B].
        max_seq_length: longest row.

    Returns:
        B rows; and whether a row was cut, bool [B].
    """
    a, b = tokenizer.tokenize(first), tokenizer.tokenize(second)
    limit = max_seq_length - 3
    half = (limit + 1) // 2
    kept_a = tf.minimum(a.row_lengths(), tf.maximum(limit - b.row_lengths(), half))
    kept_b = tf.minimum(b.row_lengths(), limit - kept_a)
    truncated = a.row_lengths() + b.row_lengths() > limit
    return join(tokenizer, [cut(a, kept_a), cut(b, kept_b)]), truncated


def word_rows(
    tokenizer: RemBertTokenizer, words: tf.RaggedTensor, max_seq_length: int
) -> tuple[Rows, tf.RaggedTensor, tf.Tensor]:
    """Makes `[CLS] pieces [SEP]` of words: the first row of each sentence that `tagging.make_features` makes.

    Args:
        tokenizer: the tokenizer.
        words: ragged string [B, (W)].
        max_seq_length: longest row.

    Returns:
        B rows; the position of each word's first piece, ragged int64 [B, (W)], without the words that had no room as a
        whole; and whether anything was cut, bool [B].
    """
    pieces = tokenizer.tokenize(words.values)
    unknown = tf.fill([pieces.nrows(), 1], tokenizer.unk_id)
    unknown = tf.RaggedTensor.from_tensor(unknown)
    is_empty = pieces.row_lengths() == 0
    pieces = tf.concat([pieces, tf.ragged.boolean_mask(unknown, is_empty[:, tf.newaxis])], axis=1)
    limit = tf.constant(max_seq_length - 2, tf.int64)
    whole = pieces.row_lengths()
    lengths = tf.minimum(whole, limit)  # a word longer than a row is cut to it
    pieces = cut(pieces, lengths)
    before = _before_in_row(words, lengths)
    kept = _count_up_to(limit, words.with_values(before + lengths))
    used = tf.reduce_sum(cut(words.with_values(lengths), kept), axis=1)
    all_of_row = tf.reduce_sum(words.with_values(lengths), axis=1)
    by_row = tf.RaggedTensor.from_row_lengths(pieces.values, all_of_row, False)
    rows = join(tokenizer, [cut(by_row, used)])
    was_cut = tf.reduce_max(words.with_values(tf.cast(whole > limit, tf.int32)), axis=1) > 0
    positions = cut(words.with_values(before + 1), kept)
    return rows, positions, was_cut | (kept < words.row_lengths())


class Masks(NamedTuple):
    """The `[MASK]`s of B texts; those that were cut off are left out.

    Attributes:
        positions: where each stands in its row, ragged int64 [B, (M)].
        starts: first code point in the text, ragged int32 [B, (M)].
    """

    positions: tf.RaggedTensor
    starts: tf.RaggedTensor


def masked_rows(
    tokenizer: RemBertTokenizer, text: tf.Tensor, max_seq_length: int
) -> tuple[Rows, Masks, tf.Tensor]:
    """Makes `[CLS] text [SEP]`, in which each literal `[MASK]` is the mask piece.

    What stands between two masks is split into pieces by itself; spaces around a mask do not matter.

    Args:
        tokenizer: the tokenizer.
        text: string [B].
        max_seq_length: longest row.

    Returns:
        B rows; their masks; and whether a row was cut, bool [B].
    """
    parts = tf.strings.split(text, MASK)
    is_later = tf.ragged.range(parts.row_lengths()).values > 0  # a mask stands before it
    count = parts.row_lengths() - 1
    before = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(count)], tokenizer.mask_id), tf.cast(is_later, tf.int64), False
    )
    pieces = tf.concat([before, tokenizer.tokenize(parts.values)], axis=1)
    characters = tf.strings.length(parts.values, "UTF8_CHAR") + len(MASK)

    lengths = tf.reduce_sum(parts.with_values(pieces.row_lengths()), axis=1)
    by_row = tf.RaggedTensor.from_row_lengths(pieces.values, lengths, False)
    limit = tf.constant(max_seq_length - 2, tf.int64)
    rows = join(tokenizer, [cut(by_row, tf.minimum(lengths, limit))])

    def of_masks(numbers):
        return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(numbers, is_later), count, False)

    positions = of_masks(_before_in_row(parts, pieces.row_lengths()) + 1)
    starts = of_masks(_before_in_row(parts, characters) - len(MASK))
    kept = _count_up_to(limit, positions)
    return rows, Masks(cut(positions, kept), cut(starts, kept)), lengths > limit


def _count_up_to(limit: tf.Tensor, ascending: tf.RaggedTensor) -> tf.Tensor:
    """Returns how many numbers of each row are at most `limit`, int64 [B]."""
    fits = ascending.with_values(tf.cast(ascending.values <= limit, tf.int64))
    return tf.reduce_sum(fits, axis=1)


def _before_in_row(ragged: tf.RaggedTensor, numbers: tf.Tensor) -> tf.Tensor:
    """Returns, for each value of a ragged tensor, the sum of the numbers of those before it in its row."""
    before = tf.cumsum(numbers, exclusive=True)
    firsts = tf.gather(tf.concat([before, [0]], axis=0), ragged.row_starts())
    return before - tf.gather(firsts, ragged.value_rowids())


def at_positions(values: tf.Tensor, positions: tf.RaggedTensor, numbers: tf.Tensor) -> tf.Tensor:
    """Picks positions out of a batch of rows.

    Args:
        values: what a model says of some rows, [N, T, ...].
        positions: the positions that are wanted of all rows, ragged int64 [R, (M)].
        numbers: which rows these are, int [N].

    Returns:
        The values there, row after row, [sum of M, ...].
    """
    wanted = tf.gather(positions, numbers)
    return tf.gather_nd(values, tf.stack([wanted.value_rowids(), wanted.values], axis=1))


def spell(tokenizer: RemBertTokenizer, ids: tf.Tensor) -> tf.Tensor:
    """Returns the spelling of pieces as the vocabulary has it: a space is U+2581.

    Args:
        tokenizer: the tokenizer.
        ids: int32 of any shape.
    """
    flat = sentencepiece_ops.sentencepiece_id_to_string_op(
        tokenizer.shared_model.resource_handle, tf.reshape(ids, [-1])
    )
    return tf.reshape(flat, tf.shape(ids))
