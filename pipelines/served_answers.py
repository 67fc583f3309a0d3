"""Questions to rows, and logits to answers, inside a graph: the twin of `question_answering.py` and `answer_spans.py`.

A text of any length becomes as many windows as it needs; the best answer is looked for in all of them.
"""

from typing import NamedTuple

import tensorflow as tf

from rembert_tf.pipelines import serving
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.tokenization import RemBertTokenizer

# What an answer scores where the context holds no text: the lowest float32, which JSON can write.
NO_ANSWER = tf.float32.min


class Windows(NamedTuple):
    """The R rows of B questions, and the C pieces in their windows, row after row.

    Attributes:
        rows: `[CLS] question [SEP] window [SEP]`.
        question_of_row: int64 [R], ascending.
        lengths: pieces in each window, int64 [R].
        offsets: pieces of the context before each window, int64 [R].
        truncated: whether the question was cut, or windows of the context left out, bool [B].
        starts: first code point of each piece in its context, int32 [C].
        ends: code point after its last, int32 [C]; a piece of spaces has none.
    """

    rows: serving.Rows
    question_of_row: tf.Tensor
    lengths: tf.Tensor
    offsets: tf.Tensor
    truncated: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor

    @property
    def positions(self) -> tf.RaggedTensor:
        """Where the pieces of each window stand in its row, ragged int64 [R, (window)]."""
        begin = self.rows.input_ids.row_lengths() - 1 - self.lengths
        return tf.ragged.range(begin, begin + self.lengths)


def question_rows(
    tokenizer: RemBertTokenizer,
    spans: SpanTokenizer,
    question: tf.Tensor,
    context: tf.Tensor,
    *,
    max_seq_length: int,
    doc_stride: int,
    max_query_length: int,
    max_windows: int = 0,
) -> Windows:
    """Makes the rows that `question_answering.make_features` makes.

    Args:
        tokenizer: the tokenizer.
        spans: its spans.
        question: string [B].
        context: string [B], valid UTF-8.
        max_seq_length: longest row; at least `max_query_length` + 4.
        doc_stride: pieces from the beginning of a window to that of the next.
        max_query_length: pieces of a question; what is beyond is cut off.
        max_windows: windows of a context, at most; those behind are left out. 0: all.
    """
    queries = tokenizer.tokenize(question)
    query_lengths = tf.minimum(queries.row_lengths(), max_query_length)
    texts = spans.tokenize(context)
    text_lengths = texts.ids.row_lengths()
    room = max_seq_length - 3 - query_lengths
    stride = tf.minimum(tf.constant(doc_stride, tf.int64), room)
    # Windows until one reaches the end of the text: the quotient is rounded up.
    count = 1 + tf.maximum(tf.constant(0, tf.int64), -((room - text_lengths) // stride))
    kept_count = tf.minimum(count, max_windows) if max_windows else count
    numbers = tf.ragged.range(kept_count)
    question_of_row = numbers.value_rowids()
    offsets = numbers.values * tf.gather(stride, question_of_row)
    lengths = tf.minimum(
        tf.gather(room, question_of_row), tf.gather(text_lengths, question_of_row) - offsets
    )
    begin = tf.gather(texts.ids.row_starts(), question_of_row) + offsets
    pieces = tf.ragged.range(begin, begin + lengths)
    kept = serving.cut(queries, query_lengths)
    rows = serving.join(
        tokenizer,
        [
            tf.gather(kept, question_of_row),
            pieces.with_values(tf.gather(texts.ids.values, pieces.values)),
        ],
    )
    return Windows(
        rows=rows,
        question_of_row=question_of_row,
        lengths=lengths,
        offsets=offsets,
        truncated=(queries.row_lengths() > max_query_length) | (kept_count < count),
        starts=tf.gather(texts.starts.values, pieces.values),
        ends=tf.gather(texts.ends.values, pieces.values),
    )


class Answers(NamedTuple):
    """The best answer to each of B questions.

    Attributes:
        starts: first code point in the context, int32 [B]; 0 without an answer.
        ends: code point after the last, int32 [B]; 0 without an answer.
        start_logits: the logit of its first piece, float32 [B]; half of `NO_ANSWER` without an answer.
        end_logits: that of its last piece, the same.
        probabilities: its share among the `n_best_size` best answers, float32 [B]; 0 without an answer.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    start_logits: tf.Tensor
    end_logits: tf.Tensor
    probabilities: tf.Tensor

    @property
    def scores(self) -> tf.Tensor:
        """The sum of both logits, float32 [B]; `NO_ANSWER` without an answer."""
        return self.start_logits + self.end_logits


def best_answers(
    windows: Windows,
    logits: tf.Tensor,
    num_questions: tf.Tensor,
    *,
    n_best_size: int,
    max_answer_length: int,
) -> Answers:
    """Finds the answers that `answer_spans.predictions` puts first.

    Args:
        windows: the rows.
        logits: start and end logit of each piece in a window, float32 [C, 2].
        num_questions: B, int32 [].
        n_best_size: answers that share the probability.
        max_answer_length: pieces in an answer.
    """
    row = tf.repeat(tf.range(tf.size(windows.lengths)), windows.lengths)
    limit = tf.cast(tf.gather(tf.cumsum(windows.lengths), row), tf.int32)  # where its window ends
    is_text = windows.ends > windows.starts
    never = tf.constant(-float("inf"))
    start_logits, end_logits = tf.unstack(logits, axis=1)
    start_logits = tf.where(is_text & _has_most_context(windows, row), start_logits, never)
    end_logits = tf.where(is_text, end_logits, never)
    place = tf.range(tf.size(limit))

    def longer(length, best):
        shifted = tf.concat([end_logits[length:], tf.fill([length], never)], axis=0)[
            : tf.size(place)
        ]
        return length + 1, tf.maximum(best, tf.where(place + length < limit, shifted, never))

    _, best_ends = tf.while_loop(
        lambda length, _: length < tf.minimum(max_answer_length, tf.size(place)),
        longer,
        (1, end_logits),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
    )
    # The n best answers begin at n starts or fewer: those whose best answers are the best. They are looked for in each
    # window, then among those of all windows of a question.
    by_window = tf.RaggedTensor.from_row_lengths(start_logits + best_ends, windows.lengths, False)
    sums, which = _best(by_window, n_best_size)  # [R, n]
    begins = tf.cast(by_window.row_starts(), tf.int32)[:, tf.newaxis] + which
    counts = n_best_size * tf.math.bincount(
        tf.cast(windows.question_of_row, tf.int32), minlength=num_questions, dtype=tf.int64
    )
    sums, begins = (tf.reshape(values, [-1]) for values in (sums, begins))
    by_question = tf.RaggedTensor.from_row_lengths(sums, counts, False)
    sums, which = _best(by_question, n_best_size)  # [B, n]
    places = tf.cast(by_question.row_starts(), tf.int32)[:, tf.newaxis] + which
    begins = tf.gather(begins, tf.where(tf.math.is_finite(sums), places, 0))
    begins = tf.where(tf.math.is_finite(sums), begins, 0)[:, :, tf.newaxis]
    # One more piece, so that a batch without any piece has one to look at.
    start_logits, end_logits = (tf.concat([x, [never]], axis=0) for x in (start_logits, end_logits))
    limit = tf.concat([limit, [0]], axis=0)
    ends = begins + tf.range(max_answer_length)  # [B, n, A]
    inside = (ends < tf.gather(limit, begins)) & tf.math.is_finite(sums)[:, :, tf.newaxis]
    ends = tf.where(inside, ends, 0)
    pairs = tf.where(inside, tf.gather(start_logits, begins) + tf.gather(end_logits, ends), never)
    pairs = tf.reshape(pairs, [-1, n_best_size * max_answer_length])
    best, which = tf.math.top_k(pairs, min(n_best_size, pairs.shape[1]))
    found = tf.math.is_finite(best[:, 0])
    first = tf.gather(begins[:, :, 0], which[:, 0] // max_answer_length, batch_dims=1)
    first = tf.where(found, first, 0)
    last = tf.where(found, first + which[:, 0] % max_answer_length, 0)
    starts, ends = (tf.concat([x, [0]], axis=0) for x in (windows.starts, windows.ends))
    return Answers(
        starts=tf.where(found, tf.gather(starts, first), 0),
        ends=tf.where(found, tf.gather(ends, last), 0),
        start_logits=tf.where(found, tf.gather(start_logits, first), NO_ANSWER / 2),
        end_logits=tf.where(found, tf.gather(end_logits, last), NO_ANSWER / 2),
        probabilities=tf.where(found, tf.nn.softmax(best)[:, 0], 0.0),
    )


def _best(rows: tf.RaggedTensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the best values of each row and where they stand in it, [R, count]; -inf where there are fewer."""
    filled = tf.pad(
        rows.to_tensor(-float("inf")), [[0, 0], [0, count]], constant_values=-float("inf")
    )
    return tf.math.top_k(filled, count)


def _has_most_context(windows: Windows, row: tf.Tensor) -> tf.Tensor:
    """Returns, for each piece in a window, whether no other window gives it more context, bool [C].

    Context is the smaller of the numbers of pieces on its two sides; ties go to the longer window, then to the first.
    """
    left = tf.ragged.range(windows.lengths).values
    length = tf.gather(windows.lengths, row)
    context = 100 * tf.minimum(left, length - 1 - left) + length
    # Each question's pieces get numbers of their own.
    reach = tf.math.segment_max(windows.offsets + windows.lengths, windows.question_of_row)
    base = tf.gather(tf.cumsum(reach, exclusive=True), windows.question_of_row)
    piece = tf.gather(base + windows.offsets, row) + left
    count = tf.reduce_sum(reach)
    most = tf.gather(tf.math.unsorted_segment_max(context, piece, count), piece)
    rivals = tf.where(context == most, row, tf.int32.max)
    return row == tf.gather(tf.math.unsorted_segment_min(rivals, piece, count), piece)
