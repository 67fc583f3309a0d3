r"""Classification of sentence pairs: files with one pair a line to features, and labels back.

Two dialects of tab-separated files are read, and each file is taken as one or the other:

* the csv dialect of XTREME's processed files: Python's csv writer puts quotes around a field that
  holds a quote, and doubles the quotes inside;
* plain fields, in which a quote is a character as any other, as in the raw XNLI files.

A file is in the csv dialect exactly when the csv writer would have written each of its fields so.
One field such as `He said "no"` or `"No"` shows a plain file. Files without quotes read the same.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines import features as features_lib
from rembert_tf.pipelines import tsv

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

# XNLI's training file says "contradictory" where its dev and test files say "contradiction".
LABEL_ALIASES = {"contradictory": "contradiction"}

# A first line made of nothing but these is a header.
_HEADER_SENTENCES = {"sentence1", "sentence2", "premise", "hypo", "hypothesis"}
_HEADER_LABELS = {"label", "gold_label"}


@dataclasses.dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences, their label (`None` in a test file), and the line they stand on."""

    first: str
    second: str
    label: str | None
    line: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationFeatures(features_lib.Features):
    """Rows of `[CLS] A [SEP] B [SEP]`, token types 0 up to the first `[SEP]`, one label a row."""


def read_pairs(path: str | os.PathLike, labels: Sequence[str] | None = None) -> list[SentencePair]:
    """Reads a file of sentence pairs: two columns, or three with the label last.

    Each line is one pair, so the number of pairs is the number of lines (less a header, which is
    known by its content); it is logged, with the dialect.

    Args:
        path: the file.
        labels: the label set; `None` accepts every label.

    Returns:
        The pairs, in the order of the file.

    Raises:
        ValueError: another number of columns, or not the same in all lines; a label outside the
            label set; no pair at all. The message begins with `path:line`.
    """
    lines = tsv.read_lines(path)
    while lines and not lines[-1]:
        lines.pop()
    rows, dialect = _split_fields(lines)
    header = bool(rows) and _is_header(rows[0])
    pairs = []
    for number, row in enumerate(rows[header:], start=1 + header):
        if len(row) not in (2, 3) or len(row) != len(rows[0]):
            raise ValueError(
                f"{path}:{number}: a line must have 2 columns, or 3 with the label, and as many as "
                f"the first line. Received: {len(row)} columns, {len(rows[0])} in the first line"
            )
        label = None
        if len(row) == 3:
            label = row[2].strip(" ")
            if labels is not None and label not in labels:
                label = LABEL_ALIASES.get(label, label)
            if labels is not None and label not in labels:
                raise ValueError(f"{path}:{number}: {features_lib.unknown_label(label, labels)}")
        pairs.append(SentencePair(row[0], row[1], label, number))
    if not pairs:
        raise ValueError(f"{path}:1: the file holds no sentence pair.")
    logging.info(
        "%s: %d pairs in %d lines, %s, %s", path, len(pairs), len(lines),
        "with a header" if header else "no header", dialect,
    )  # fmt: skip
    return pairs


def _split_fields(lines: Sequence[str]) -> tuple[list[list[str]], str]:
    """Splits lines into fields and says in which dialect they were, for the log."""
    rows = [line.split("\t") for line in lines]
    quoted = [field for row in rows for field in row if '"' in field]
    if not quoted:
        return rows, "no quotes"
    if any(field != _csv_quoted(_csv_unquoted(field)) for field in quoted):
        return rows, "plain fields with quotes"
    rows = [[_csv_unquoted(field) for field in row] for row in rows]
    return rows, f"csv quoting of {len(quoted)} fields undone"


def _csv_quoted(text: str) -> str:
    """Returns a field of one line, without tabs, as Python's csv writer writes it."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or "\r" in text else text


def _csv_unquoted(field: str) -> str:
    """Returns the text of a field that `_csv_quoted` has written; others come out as they may."""
    return field[1:-1].replace('""', '"') if field.startswith('"') else field


def _is_header(row: Sequence[str]) -> bool:
    names = [field.strip().lower() for field in row]
    return _HEADER_SENTENCES.issuperset(names[:2]) and _HEADER_LABELS.issuperset(names[2:])


def make_features(
    pairs: Sequence[SentencePair],
    tokenizer: "RemBertTokenizer",
    labels: Sequence[str],
    max_seq_length: int,
) -> ClassificationFeatures:
    """Makes rows of at most `max_seq_length` positions, one a pair.

    A pair that is too long loses pieces from the end of its longer sentence until it fits; where
    both are equally long, the second one loses a piece first (BERT's rule).

    Args:
        pairs: all with a label, or all without.
        tokenizer: the tokenizer.
        labels: the label set, in the order of its ids.
        max_seq_length: longest row, `[CLS]` and both `[SEP]` included; at least 5.

    Returns:
        The features.

    Raises:
        ValueError: `max_seq_length` below 5, a label outside the label set, or pairs with and
            pairs without a label.
    """
    if max_seq_length < 5:
        raise ValueError(
            "`max_seq_length` must be at least 5: [CLS], a piece, [SEP], a piece, [SEP]. "
            f"Received: max_seq_length={max_seq_length}"
        )
    with_label = sum(pair.label is not None for pair in pairs)
    if with_label not in (0, len(pairs)):
        raise ValueError(
            f"`pairs` must all have a label, or none. Received: {with_label} of {len(pairs)}"
        )

    sentences = [pair.first for pair in pairs] + [pair.second for pair in pairs]
    pieces = features_lib.RaggedPieces(tokenizer, sentences)
    full_first, full_second = np.split(pieces.lengths, 2)
    first, second = _truncated_lengths(full_first, full_second, max_seq_length - 3)

    row_splits = features_lib.row_splits(first + second + 3)
    first_starts = row_splits[:-1] + 1
    second_starts = first_starts + first + 1
    input_ids = np.empty(row_splits[-1], np.int32)
    input_ids[row_splits[:-1]] = tokenizer.cls_id
    input_ids[second_starts - 1] = tokenizer.sep_id
    input_ids[row_splits[1:] - 1] = tokenizer.sep_id
    lengths = np.concatenate([first, second])
    starts = np.concatenate([first_starts, second_starts])
    input_ids[features_lib.ranges(starts, lengths)] = pieces.cut(lengths)
    token_type_ids = np.zeros_like(input_ids)
    token_type_ids[features_lib.ranges(second_starts, second + 1)] = 1

    if with_label:
        label_of_row = features_lib.label_ids([pair.label for pair in pairs], labels)
    else:
        label_of_row = np.zeros(len(pairs), np.int32)
    logging.info(
        "%d pairs, %d positions; %d pairs truncated to %d",
        len(pairs), len(input_ids),
        np.sum(full_first + full_second > max_seq_length - 3), max_seq_length,
    )  # fmt: skip
    return ClassificationFeatures(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        row_splits=row_splits,
        labels=label_of_row,
        sample_weights=np.full(len(pairs), bool(with_label), np.float32),
        pad_id=tokenizer.pad_id,
        label_names=tuple(labels),
        labels_belong_to="rows",
    )


def _truncated_lengths(
    first: np.ndarray, second: np.ndarray, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lengths that "cut the longer one" ends at, without going piece by piece.

    Args:
        first: pieces of each first sentence, int64 `[N]`.
        second: pieces of each second sentence, int64 `[N]`.
        limit: the most pieces that both may have together.

    Returns:
        The two lengths of each pair, int64 `[N]` each.
    """
    half = (limit + 1) // 2  # ties cost the second sentence a piece
    kept_first = np.minimum(first, np.maximum(limit - second, half))
    return kept_first, np.minimum(second, limit - kept_first)


def predicted_labels(features: ClassificationFeatures, predictions: np.ndarray) -> list[str]:
    """Returns one label a pair, in the order of the file.

    Args:
        features: the features that were predicted.
        predictions: for each row, the label's id, int `[R]`, or logits, float `[R, C]`.

    Raises:
        ValueError: the predictions are not one a row.
    """
    ids = features_lib.predicted_ids(predictions, features.num_rows)
    return np.array(features.label_names, object)[ids].tolist()


def write_predictions(path: str | os.PathLike, labels: Sequence[str]) -> None:
    """Writes one label a line, as XTREME's `evaluate.py` reads it."""
    tsv.write_lines(path, labels)
