"""Question answering: questions on texts to rows of a question and a window of its text.

A row is `[CLS] question [SEP] window [SEP]`, token type 1 after the first `[SEP]` (Devlin et al. 2019, 4.2). A text
that is too long for one row takes several: a window begins every `doc_stride` pieces until one reaches the end of the
text.
The answer's place is found through the characters that each piece stands for (`piece_spans.py`); a row whose window
does not hold the whole answer points to `[CLS]`.
"""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.pipelines import features as features_lib
from rembert_tf.pipelines.features import ranges
from rembert_tf.pipelines.flat_spans import FlatSpans, encode_spans, pieces_of_characters
from rembert_tf.pipelines.squad_files import Question

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionAnsweringFeatures(features_lib.Features):
    """`R` rows of `N` questions.

    Rows are in the order of the questions, and windows in the order of the text. A label is three
    numbers: first and last position of the answer in the row, and the row's length.

    Attributes:
        questions: the questions.
        pieces: the pieces of all texts, each different text once.
        text_of_question: the number of each question's text there, int64 `[N]`.
        question_of_row: int64 `[R]`.
        windows: where each row's window begins among all positions, int64 `[R]`.
        window_pieces: the number of its first piece among `pieces`, int64 `[R]`.
        window_lengths: its pieces, int64 `[R]`.
    """

    questions: Sequence[Question]
    pieces: FlatSpans
    text_of_question: np.ndarray
    question_of_row: np.ndarray
    windows: np.ndarray
    window_pieces: np.ndarray
    window_lengths: np.ndarray


def make_features(
    questions: Sequence[Question],
    tokenizer: "RemBertTokenizer",
    labels: Sequence[str] = (),
    max_seq_length: int = 384,
    *,
    doc_stride: int = 128,
    max_query_length: int = 64,
) -> QuestionAnsweringFeatures:
    """Makes rows of at most `max_seq_length` positions (defaults: XTREME's, Hu et al. 2020).

    A question's first answer that is in its place is its label; without one, its rows have weight 0.

    Args:
        questions: the questions.
        tokenizer: the tokenizer.
        labels: without meaning for questions.
        max_seq_length: longest row, special pieces included.
        doc_stride: pieces from the beginning of a window to that of the next. One that is longer
            than a window is shortened to it, so that no piece is passed over.
        max_query_length: pieces of a question; what is beyond is cut off.

    Returns:
        The features.

    Raises:
        ValueError: `doc_stride` or `max_query_length` below 1, or no room for a text in a row.
    """
    del labels
    _check_lengths(max_seq_length, doc_stride, max_query_length)
    numbers: dict[str, int] = {}
    text_of_question = np.array(
        [numbers.setdefault(question.context, len(numbers)) for question in questions], np.int64
    )
    pieces = encode_spans(tokenizer, list(numbers))
    query_ids, query_splits = _query_pieces(questions, tokenizer)
    queries = np.minimum(np.diff(query_splits), max_query_length)

    # Question n has rooms[n] pieces in a row, and takes rows until a window reaches the end of its text.
    texts = np.diff(pieces.splits)[text_of_question]
    rooms = max_seq_length - 3 - queries
    strides = np.minimum(doc_stride, rooms)
    counts = 1 + np.maximum(0, -(-(texts - rooms) // strides))
    question_of_row = np.repeat(np.arange(len(questions)), counts)
    offsets = ranges(np.zeros_like(counts), counts) * strides[question_of_row]
    window_pieces = pieces.splits[text_of_question[question_of_row]] + offsets
    window_lengths = np.minimum(rooms[question_of_row], texts[question_of_row] - offsets)

    queries_of_row = queries[question_of_row]
    row_lengths = queries_of_row + window_lengths + 3
    row_splits = features_lib.row_splits(row_lengths)
    windows = row_splits[:-1] + queries_of_row + 2
    input_ids = np.empty(row_splits[-1], np.int32)
    input_ids[row_splits[:-1]] = tokenizer.cls_id
    input_ids[ranges(row_splits[:-1] + 1, queries_of_row)] = query_ids[
        ranges(query_splits[question_of_row], queries_of_row)
    ]
    input_ids[windows - 1] = tokenizer.sep_id
    input_ids[ranges(windows, window_lengths)] = pieces.ids[ranges(window_pieces, window_lengths)]
    input_ids[row_splits[1:] - 1] = tokenizer.sep_id
    token_type_ids = np.zeros_like(input_ids)
    token_type_ids[ranges(windows, window_lengths + 1)] = 1

    first, last = _label_pieces(questions, text_of_question, pieces)
    has_label = first >= 0
    first, last = first[question_of_row] - window_pieces, last[question_of_row] - window_pieces
    inside = has_label[question_of_row] & (first >= 0) & (last < window_lengths)
    first, last = np.where(inside, np.stack([first, last]) + queries_of_row + 2, 0)
    logging.info(
        "%d questions (%d cut to %d pieces) on %d texts: %d rows, %d positions; "
        "%d questions with a label, %d of them in no window as a whole",
        len(questions), np.sum(np.diff(query_splits) > max_query_length), max_query_length,
        len(numbers), len(counts), len(input_ids), np.sum(has_label),
        np.sum(has_label) - len(np.unique(question_of_row[inside])),
    )  # fmt: skip
    return QuestionAnsweringFeatures(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        row_splits=row_splits,
        labels=np.stack([first, last, row_lengths], axis=1).astype(np.int32),
        sample_weights=has_label[question_of_row].astype(np.float32),
        pad_id=tokenizer.pad_id,
        label_names=(),
        labels_belong_to="rows",
        outputs_belong_to="positions",
        questions=questions,
        pieces=pieces,
        text_of_question=text_of_question,
        question_of_row=question_of_row,
        windows=windows,
        window_pieces=window_pieces,
        window_lengths=window_lengths,
    )


def _check_lengths(max_seq_length: int, doc_stride: int, max_query_length: int):
    for name, value in (("doc_stride", doc_stride), ("max_query_length", max_query_length)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    if max_seq_length < max_query_length + 4:
        raise ValueError(
            "`max_seq_length` must leave room for a text behind the question: at least "
            "`max_query_length` + 4. "
            f"Received: max_seq_length={max_seq_length}, max_query_length={max_query_length}"
        )


def _query_pieces(
    questions: Sequence[Question], tokenizer: "RemBertTokenizer"
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pieces of all questions, end to end, and the boundaries between questions."""
    # A lone surrogate, which no encoding has, is read as a question mark.
    strings = [question.question.encode(errors="replace") for question in questions]
    pieces = tokenizer.tokenize(tf.constant(strings, tf.string))
    return pieces.values.numpy(), pieces.row_splits.numpy()


def _label_pieces(
    questions: Sequence[Question], text_of_question: np.ndarray, pieces: FlatSpans
) -> tuple[np.ndarray, np.ndarray]:
    """Returns first and last piece of each question's first answer with a place, -1 without one."""
    labels = [
        next(((a.start, a.start + len(a.text)) for a in q.answers if a.start is not None), (0, 0))
        for q in questions
    ]
    starts, ends = np.array(labels, np.int64).reshape(-1, 2).T
    return pieces_of_characters(pieces, text_of_question, starts, ends)
