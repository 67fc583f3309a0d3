"""Questions on texts: SQuAD's JSON in the variants that XTREME's question sets and their kin are published in.

    {"data": [{"paragraphs": [{"context": ..., "qas": [{"id": ..., "question": ..., "answers":
        [{"text": ..., "answer_start": ...}]}]}]}], "version": ...}

Accepted too: the bare list in place of the object; answers that are missing, an empty list, or the empty text that
XTREME puts in place of them (withheld: such a question has none); ids and places that are numbers or strings (TQuAD).
Places that count bytes of UTF-8 or units of UTF-16 are found out by the answer's text and turned into code points.
SQuAD 2.0's unanswerable questions are refused.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """A gold answer.

    Attributes:
        text: as the file has it.
        start: its first code point in the context; `None` where the context does not hold it at the place that the file
            names.
    """

    text: str
    start: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """A question on a text; without answers, they are withheld.

    The id is the file's own. Some files repeat ids (XTREME's TyDiQA training files): each
    question is an example of its own all the same.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]


def read_questions(
    path: str | os.PathLike, labels: Sequence[str] | None = None, *, language: str = ""
) -> list[Question]:
    """Reads a file of questions, and logs how many, and how many answers are not where the file says.

    Args:
        path: the file.
        labels: without meaning for questions.
        language: without meaning here.

    Returns:
        All questions, in the order of the file.

    Raises:
        ValueError: the file is no JSON, or not of the form above; it holds no question, or one that SQuAD 2.0 calls
            impossible. The message begins with the file and the place in it.
    """
    questions = [_question(path, *entry) for entry in _entries(path)]
    if not questions:
        raise ValueError(f"{path}: the file holds no question.")
    answered = [question for question in questions if question.answers]
    misplaced = [q for q in answered if any(answer.start is None for answer in q.answers)]
    logging.info(
        "%s: %d questions, %d with answers, %d texts, %d ids come more than once", path, len(questions),
        len(answered), len({question.context for question in questions}),
        len(questions) - len({question.id for question in questions}),
    )  # fmt: skip
    if misplaced:
        logging.warning(
            "%s: answers of %d questions are not where the file says, the first one of question %s: %r",
            path, len(misplaced), misplaced[0].id,
            next(answer.text for answer in misplaced[0].answers if answer.start is None),
        )  # fmt: skip
    return questions


def read_text(lines: Sequence[str]) -> list[Question]:
    """Makes a question of each line `question<TAB>text`; a line without a tab asks about nothing."""
    parts = [line.partition("\t") for line in lines]
    return [Question(str(n), text[0], text[2], ()) for n, text in enumerate(parts, start=1)]


def inputs_of(question: Question) -> tuple[str, str]:
    """Returns what a model sees of a question: its context, then its words."""
    return question.context, question.question


def labels_of(questions: Sequence[Question]) -> set[str]:
    """Returns no label: questions have answers."""
    del questions
    return set()


def _entries(path: str | os.PathLike) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Gives each question's place in the file, its context, and its JSON object."""
    value = _load(path)
    documents = value.get("data") if isinstance(value, dict) else value
    for document, outer in _objects(path, documents, "data"):
        for paragraph, inner in _objects(path, document.get("paragraphs"), f"{outer}.paragraphs"):
            context = _text(path, inner, paragraph, "context")
            for question, place in _objects(path, paragraph.get("qas"), f"{inner}.qas"):
                yield place, context, question


def _load(path: str | os.PathLike) -> Any:
    data = pathlib.Path(path).read_bytes()
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}:{line}: the file must be UTF-8. Received: byte 0x{data[error.start]:02x}"
        ) from None
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}:{error.lineno}: column {error.colno}: this is not JSON ({error.msg})."
        ) from None


def _question(
    path: str | os.PathLike, place: str, context: str, question: dict[str, Any]
) -> Question:
    if question.get("is_impossible"):
        raise ValueError(
            f"{path}: {place}: questions without an answer (SQuAD 2.0) are not supported. "
            f"Received: is_impossible=true, id={question.get('id')!r}"
        )
    number = question.get("id")
    if not isinstance(number, str | int):
        raise ValueError(
            f"{path}: {place}: `id` must be a string or a number. Received: {number!r}"
        )
    answers = []
    for answer, inner in _objects(path, question.get("answers") or [], f"{place}.answers"):
        text = _text(path, inner, answer, "text")
        if text:
            answers.append(Answer(text, _start(path, inner, answer, context, text)))
    return Question(str(number), _text(path, place, question, "question"), context, tuple(answers))


def _start(
    path: str | os.PathLike, place: str, answer: dict[str, Any], context: str, text: str
) -> int | None:
    """Returns the code point at which the answer begins, or `None` if it is not where the file says."""
    try:
        start = int(answer.get("answer_start"))
    except (TypeError, ValueError):
        raise ValueError(
            f"{path}: {place}: `answer_start` must be a whole number. "
            f"Received: {answer.get('answer_start')!r}"
        ) from None
    if start < 0:
        return None
    if context.startswith(text, start):
        return start
    for encoding, unit in (("utf-8", 1), ("utf-16-le", 2)):
        before = context.encode(encoding, "surrogatepass")[: start * unit]
        start_by_unit = len(before.decode(encoding, "ignore"))
        if context.startswith(text, start_by_unit):
            return start_by_unit
    return None


def _objects(path: str | os.PathLike, value: Any, place: str) -> Iterator[tuple[dict, str]]:
    """Gives the objects of a list, each with its place."""
    if not isinstance(value, list):
        raise ValueError(
            f"{path}: {place} must be a list, as in SQuAD. Received: {_shortened(value)}"
        )
    for number, item in enumerate(value):
        if not isinstance(item, dict):
            raise ValueError(
                f"{path}: {place}[{number}] must be an object, as in SQuAD. "
                f"Received: {_shortened(item)}"
            )
        yield item, f"{place}[{number}]"


def _text(path: str | os.PathLike, place: str, item: dict[str, Any], key: str) -> str:
    if not isinstance(item.get(key), str):
        raise ValueError(
            f"{path}: {place}: `{key}` must be a string. Received: {_shortened(item.get(key))}"
        )
    return item[key]


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
