"""The best answers to each question, from the logits of all its windows (Devlin et al. 2019, 4.2).

An answer is a stretch of pieces of one window. Its score is the start logit of its first piece plus the end logit of
its last one, and scores are comparable across windows. Windows overlap, so a piece has several start logits: the one
counts that was computed in the window where the piece has the most context (BERT's rule). The text is cut out of the
user's own context, from the first character of the first piece to the last one of the last.
"""

import collections
import dataclasses
import itertools
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rembert_tf import atomic_files
from rembert_tf.pipelines.features import ranges, row_splits
from rembert_tf.pipelines.question_answering import QuestionAnsweringFeatures


class Candidate(NamedTuple):
    """One answer: a slice of the context by code points, its logits, its share of the n-best."""

    text: str
    start: int
    end: int
    start_logit: float
    end_logit: float
    probability: float


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerPrediction:
    """The answers to a question, best first; empty only if its context holds no text.

    Attributes:
        id: the question's id in the file.
        n_best: at most `n_best_size` answers.
    """

    id: str
    n_best: tuple[Candidate, ...]

    @property
    def text(self) -> str:
        """The best answer."""
        return self.n_best[0].text if self.n_best else ""


def predictions(
    features: QuestionAnsweringFeatures,
    outputs: np.ndarray,
    *,
    n_best_size: int = 20,
    max_answer_length: int = 30,
) -> list[AnswerPrediction]:
    """Returns the best answers to each question, in the order of the questions.

    Args:
        features: the features that were predicted.
        outputs: start and end logit of each position, float `[S, 2]`.
        n_best_size: answers a question, at least 1.
        max_answer_length: pieces in an answer, at least 1.

    Raises:
        ValueError: a setting below 1, or outputs of another shape or not finite.
    """
    outputs = _checked(features, outputs, n_best_size, max_answer_length)
    # Position p of the C positions in windows is piece pieces[p] of row rows[p]; its window ends at limits[p].
    lengths = features.window_lengths
    rows = np.repeat(np.arange(features.num_rows), lengths)
    start_logits, end_logits = outputs[ranges(features.windows, lengths)].T
    pieces = ranges(features.window_pieces, lengths)
    limits = row_splits(lengths)[1:][rows]
    is_text = features.pieces.ends[pieces] > features.pieces.starts[pieces]
    may_start = is_text & _has_most_context(features)
    end_logits = np.where(is_text, end_logits, -np.inf)

    starts = np.flatnonzero(may_start)
    sums = start_logits[starts] + _best_ends(end_logits, limits, starts, max_answer_length)
    questions = features.question_of_row[rows]
    # The n best answers begin at n starts or fewer: those whose best answers are the best.
    starts = starts[_first_of_each(questions[starts], -sums, n_best_size)]
    ends = starts[:, np.newaxis] + np.arange(max_answer_length)
    inside = ends < limits[starts, np.newaxis]
    ends = np.where(inside, ends, starts[:, np.newaxis])
    sums = np.where(inside, start_logits[starts, np.newaxis] + end_logits[ends], -np.inf)
    which, column = np.nonzero(np.isfinite(sums))
    starts, ends, sums = starts[which], ends[which, column], sums[which, column]
    kept = _first_of_each(questions[starts], -sums, n_best_size)
    starts, ends = starts[kept], ends[kept]

    counts = np.bincount(questions[starts], minlength=len(features.questions))
    columns = (
        features.pieces.starts[pieces[starts]].tolist(),
        features.pieces.ends[pieces[ends]].tolist(),
        start_logits[starts].tolist(),
        end_logits[ends].tolist(),
        _shares(questions[starts], sums[kept], len(counts)).tolist(),
    )
    answers = zip(*columns, strict=True)
    return [
        AnswerPrediction(
            question.id,
            tuple(
                Candidate(question.context[start:end], start, end, *numbers)
                for start, end, *numbers in itertools.islice(answers, count)
            ),
        )
        for question, count in zip(features.questions, counts.tolist(), strict=True)
    ]


def _checked(
    features: QuestionAnsweringFeatures,
    outputs: np.ndarray,
    n_best_size: int,
    max_answer_length: int,
) -> np.ndarray:
    for name, value in (("n_best_size", n_best_size), ("max_answer_length", max_answer_length)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    outputs = np.asarray(outputs, np.float32)
    if outputs.shape != (len(features.input_ids), 2) or not np.isfinite(outputs).all():
        raise ValueError(
            f"`outputs` must be finite logits [{len(features.input_ids)}, 2]. "
            f"Received: shape {list(outputs.shape)}, {np.sum(~np.isfinite(outputs))} not finite"
        )
    return outputs


def _has_most_context(features: QuestionAnsweringFeatures) -> np.ndarray:
    """Returns, for each position in a window, whether no other window gives its piece more context, bool `[C]`.

    Context is the smaller of the numbers of pieces on its two sides; ties go to the longer window, then to the first.
    """
    lengths = features.window_lengths
    first_rows = np.searchsorted(features.question_of_row, features.question_of_row)
    offsets = features.window_pieces - features.window_pieces[first_rows]
    # Each question's pieces get numbers of their own, also where questions share a text.
    is_last = np.diff(features.question_of_row, append=len(features.questions)) > 0
    text_lengths = (offsets + lengths)[is_last]
    numbers = row_splits(text_lengths)[features.question_of_row] + offsets
    best = np.full(text_lengths.sum(), -1.0)
    best_row = np.zeros(len(best), np.int64)
    number_of_window = np.arange(features.num_rows) - first_rows
    for rows in _groups(number_of_window):
        left = ranges(np.zeros_like(rows), lengths[rows])
        length = np.repeat(lengths[rows], lengths[rows])
        context = np.minimum(left, length - 1 - left) + 0.01 * length
        piece = ranges(numbers[rows], lengths[rows])
        better = context > best[piece]
        best[piece[better]] = context[better]
        best_row[piece[better]] = np.repeat(rows, lengths[rows])[better]
    return best_row[ranges(numbers, lengths)] == np.repeat(np.arange(features.num_rows), lengths)


def _groups(values: np.ndarray) -> list[np.ndarray]:
    """Returns the places of all 0s, of all 1s, and so on."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.cumsum(np.bincount(values))[:-1])


def _best_ends(
    end_logits: np.ndarray, limits: np.ndarray, starts: np.ndarray, max_answer_length: int
) -> np.ndarray:
    """Returns the highest end logit that an answer from each start can have, float `[starts]`."""
    best = end_logits[starts]
    room = limits[starts] - starts
    for length in range(1, max_answer_length):
        fits = np.flatnonzero(room > length)
        best[fits] = np.maximum(best[fits], end_logits[starts[fits] + length])
    return best


def _first_of_each(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Returns the places of the `count` smallest values of each group, smallest first, group by group.

    Args:
        groups: the group of each value, ascending, int64 `[N]`.
        values: float `[N]`; of equal ones the first is the smaller.
        count: how many of each group; fewer where it has fewer.
    """
    order = np.lexsort((values, groups))
    rank = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return order[rank < count]


def _shares(groups: np.ndarray, scores: np.ndarray, num_groups: int) -> np.ndarray:
    """Returns the softmax of the scores of each group, whose first one is the highest, float64 `[N]`."""
    powers = np.exp(scores.astype(np.float64) - scores[np.searchsorted(groups, groups)])
    return powers / np.bincount(groups, powers, num_groups)[groups]


def write_predictions(path: str | os.PathLike, answers: Sequence[AnswerPrediction]):
    """Writes a JSON object, question id to answer, as SQuAD's and XTREME's evaluation read it.

    Where an id comes again, `#2` is added to it, then `#3` and so on, leaving out what is the id of another question:
    every question keeps its answer. `evaluation/answer_files.py` gives gold answers the same keys.
    """
    _write(path, answers, [answer.text for answer in answers])


def write_n_best(path: str | os.PathLike, answers: Sequence[AnswerPrediction]):
    """Writes a JSON object, question id to list of answers, with BERT's names for what each of them has."""
    n_best = [[candidate._asdict() for candidate in answer.n_best] for answer in answers]
    _write(path, answers, n_best)


def _write(path: str | os.PathLike, answers: Sequence[AnswerPrediction], values: list) -> None:
    keys = _keys([answer.id for answer in answers])
    atomic_files.write_json(path, dict(zip(keys, values, strict=True)))


def format_line(answer: AnswerPrediction) -> str:
    """Returns the answer on one line: each run of spaces and line breaks as one space."""
    return " ".join(answer.text.split())


def _keys(ids: Sequence[str]) -> list[str]:
    taken = set(ids)
    times: collections.Counter[str] = collections.Counter()
    keys = []
    for key in ids:
        times[key] += 1
        if times[key] == 1:
            keys.append(key)
            continue
        while f"{key}#{times[key]}" in taken:
            times[key] += 1
        keys.append(f"{key}#{times[key]}")
        taken.add(keys[-1])
    return keys
