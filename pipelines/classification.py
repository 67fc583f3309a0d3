"""Classification of sentence pairs: pairs to features, and labels back."""

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines import features as features_lib
from rembert_tf.pipelines import pair_files, tsv

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

# XNLI's training file says "contradictory" where its dev and test files say "contradiction".
LABEL_ALIASES = {"contradictory": "contradiction"}


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


def read_pairs(
    path: str | os.PathLike, labels: Sequence[str] | None = None, *, language: str = ""
) -> list[SentencePair]:
    """Reads a file of sentence pairs in any of the formats that `pair_files.py` lists.

    Each line is one pair, so the number of pairs is the number of lines (less a header, which is
    known by its content); it is logged, with the dialect.

    Args:
        path: the file.
        labels: the label set; `None` accepts every label.
        language: code of the language whose pairs are taken from a file that has a column of
            languages; empty takes all of them.

    Returns:
        The pairs, in the order of the file.

    Raises:
        ValueError: another number of columns, or not the same in all lines; a label outside the
            label set; no pair at all. The message begins with `path:line`.
    """
    lines = tsv.read_lines(path)
    parsed, form = pair_files.parse(path, lines)
    pairs = []
    for line in parsed:
        if language and line.language not in (None, language):
            continue
        label = None if line.label is None else line.label.strip(" ")
        if label is not None and (labels is None or label not in labels):
            label = LABEL_ALIASES.get(label, label)
        if None not in (label, labels) and label not in labels:
            raise ValueError(f"{path}:{line.number}: {features_lib.unknown_label(label, labels)}")
        pairs.append(SentencePair(line.first, line.second, label, line.number))
    if not pairs:
        there = sorted({line.language or "" for line in parsed})
        also = f" in {language}, only in {', '.join(there)}" if parsed else ""
        raise ValueError(f"{path}:1: the file holds no sentence pair{also}.")
    logging.info("%s: %d pairs in %d lines, %s", path, len(pairs), len(lines), form)
    return pairs


def read_text(lines: Sequence[str]) -> list[SentencePair]:
    """Makes one pair of each line of plain text: two sentences with a tab between them.

    A line without a tab is a pair whose second sentence is empty.
    """
    pairs = []
    for number, line in enumerate(lines, start=1):
        first, _, second = line.partition("\t")
        pairs.append(SentencePair(first, second, None, number))
    return pairs


def inputs_of(pair: SentencePair) -> tuple[str, ...]:
    """Returns what a model sees of a pair; pairs of one first sentence (a premise) are a group."""
    return pair.first, pair.second


def labels_of(pairs: Sequence[SentencePair]) -> set[str]:
    """Returns all labels that occur."""
    return {pair.label for pair in pairs if pair.label is not None}


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
        outputs_belong_to="rows",
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


def format_line(label: str) -> str:
    """Writes the label of one pair as one line, for plain text."""
    return label


def write_predictions(path: str | os.PathLike, labels: Sequence[str]) -> None:
    """Writes one label a line, as XTREME's `evaluate.py` reads it."""
    tsv.write_lines(path, labels)
