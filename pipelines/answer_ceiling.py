"""How many questions a perfect model could answer exactly, and what keeps it from the others."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines.features import Features
from rembert_tf.pipelines.flat_spans import pieces_of_characters
from rembert_tf.pipelines.question_answering import QuestionAnsweringFeatures, make_features
from rembert_tf.pipelines.squad_files import Answer, Question

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerCeiling:
    """Numbers of questions; a question with several answers is lost to what stands in the way of the nearest.

    Attributes:
        questions: those with an answer.
        reachable: those of which an answer can come out exactly.
        boundaries: the answer begins or ends inside a piece, or holds no text.
        length: it has more pieces than `max_answer_length`.
        windows: no window holds it as a whole.
        place: the context does not hold it where the file says.
    """

    questions: int
    reachable: int
    boundaries: int
    length: int
    windows: int
    place: int

    @property
    def exact_match(self) -> float:
        """The highest share of answers that match, from 0 to 1; 0 without a question."""
        return self.reachable / max(1, self.questions)

    def __str__(self) -> str:
        """Returns one line, in percent."""
        percent = 100 / max(1, self.questions)
        return (
            f"at most {percent * self.reachable:.1f} % of {self.questions} answers exactly; lost to piece "
            f"boundaries {percent * self.boundaries:.1f}, to `max_answer_length` {percent * self.length:.1f}, to "
            f"windows {percent * self.windows:.1f}, to places that do not fit {percent * self.place:.1f}"
        )


def answer_ceiling(
    questions: Sequence[Question],
    tokenizer: "RemBertTokenizer",
    *,
    max_seq_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
    max_answer_length: int = 30,
    words: Callable[[str], list[str]] = str.split,
) -> AnswerCeiling:
    """Finds out what perfect logits would reach.

    Args:
        questions: the questions; those without an answer are left out.
        tokenizer: the tokenizer.
        max_seq_length: see `question_answering.make_features`.
        doc_stride: see there.
        max_query_length: see there.
        max_answer_length: pieces in an answer.
        words: what must be the same of two answers, such as an evaluation's rule; by default all but spaces.

    Raises:
        ValueError: as `make_features` does.
    """
    features = make_features(
        [question for question in questions if question.answers],
        tokenizer,
        max_seq_length=max_seq_length,
        doc_stride=doc_stride,
        max_query_length=max_query_length,
    )
    return ceiling_of_features(features, max_answer_length=max_answer_length, words=words)


def log_ceiling(features: Features, max_answer_length: int) -> None:
    """Logs what perfect logits would reach; nothing for other features, and where answers are withheld."""
    if isinstance(features, QuestionAnsweringFeatures):
        ceiling = ceiling_of_features(features, max_answer_length=max_answer_length)
        if ceiling.questions:
            logging.info("a perfect model answers %s", ceiling)


def ceiling_of_features(
    features: QuestionAnsweringFeatures,
    *,
    max_answer_length: int = 30,
    words: Callable[[str], list[str]] = str.split,
) -> AnswerCeiling:
    """Finds out what perfect logits for these features would reach; the arguments are those of `answer_ceiling`."""
    questions = features.questions
    answers = [
        (number, answer)
        for number, question in enumerate(questions)
        for answer in question.answers
        if answer.start is not None
    ]
    number, start, end = _places(answers)
    pieces = features.pieces
    first, last = pieces_of_characters(pieces, features.text_of_question[number], start, end)
    starts, ends = np.append(pieces.starts, 0)[first], np.append(pieces.ends, 0)[last]
    cuts = zip(answers, starts.tolist(), ends.tolist(), strict=True)
    is_whole = [
        words(questions[number].context[cut_start:cut_end]) == words(answer.text)
        for (number, answer), cut_start, cut_end in cuts
    ]
    # The last window that begins before the answer reaches furthest behind it.
    rows = (features.question_of_row << 32) + features.window_pieces
    row = np.searchsorted(rows, (number << 32) + first, side="right") - 1
    limits = features.window_pieces + features.window_lengths
    obstacle = np.select(
        [
            first < 0,
            ~np.array(is_whole, bool),
            last - first >= max_answer_length,
            last >= limits[row],
        ],
        [4, 1, 2, 3],
        default=0,
    )
    nearest = np.full(len(questions), 4)
    np.minimum.at(nearest, number, obstacle)
    nearest = nearest[[len(question.answers) > 0 for question in questions]]
    reachable, boundaries, length, windows, place = np.bincount(nearest, minlength=5).tolist()
    return AnswerCeiling(
        questions=len(nearest),
        reachable=reachable,
        boundaries=boundaries,
        length=length,
        windows=windows,
        place=place,
    )


def _places(answers: Sequence[tuple[int, Answer]]) -> np.ndarray:
    """Returns question, start and end of each answer, int64 `[3, A]`."""
    places = [(number, a.start, a.start + len(a.text)) for number, a in answers]
    return np.array(places, np.int64).reshape(-1, 3).T
