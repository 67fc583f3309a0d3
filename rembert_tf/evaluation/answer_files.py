"""Question files (SQuAD's JSON in its published variants) and prediction files (id → answer)."""

import collections
import json
from typing import Any

from rembert_tf.evaluation import files


def read_gold_answers(path: str) -> dict[str, list[str]]:
    """Reads question id → gold answers from a JSON file as SQuAD 1.1, XQuAD, MLQA, TyDiQA have it.

    The file is an object with `data`, or the bare list (XTREME reads both). Where an id comes again
    (XTREME's TyDiQA training files), the questions are `id`, `id#2`, `id#3` and so on, leaving out
    what is the id of another question, as `rembert-predict` writes them
    (`pipelines/answer_spans.py`): each question has an answer of its own.

    Raises:
        NoLabelsError: every answer is empty, as in the test files that XTREME's download script
            blanks.
        ValueError: the file is no such JSON; the message names file and id.
    """
    value = _load(path)
    documents = value.get("data") if isinstance(value, dict) else value
    if not isinstance(documents, list):
        raise ValueError(
            f"{path}: a label file of questions is a list of documents, or an object with `data`."
        )
    questions = _questions(path, documents)
    keys = _keys([str(question["id"]) for question in questions])
    gold = {
        key: _answers(path, key, question) for key, question in zip(keys, questions, strict=True)
    }
    if not gold:
        raise ValueError(f"{path}: the file holds no question.")
    if not any(answer.strip() for answers in gold.values() for answer in answers):
        raise files.NoLabelsError(
            f"{path}: none of the {len(gold)} questions has an answer: this is a test file without "
            "labels, as XTREME's download script leaves it, or its answers were taken out."
        )
    return gold


def read_predicted_answers(path: str) -> dict[str, str]:
    """Reads question id → answer from a JSON object.

    Raises:
        ValueError: the file is no JSON object, an id comes twice, or an answer is no string. The
            message names file and id.
    """
    answers = _load(path)
    if not isinstance(answers, dict):
        raise ValueError(
            f"{path}: predicted answers are a JSON object, question id → answer. "
            f"Received: {type(answers).__name__}"
        )
    for key, answer in answers.items():
        if not isinstance(answer, str):
            raise ValueError(
                f"{path}: question {key!r}: an answer must be a string, and the empty string if "
                f"there is none. Received: {json.dumps(answer)[:40]}"
            )
    return answers


def _load(path: str) -> Any:
    def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            repeated = next(key for key in keys if keys.count(key) > 1)
            raise ValueError(f"{path}: {repeated!r} comes twice in the same JSON object.")
        return value

    text = "\n".join(files.read_lines(path))
    try:
        return json.loads(text, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: this is not JSON ({error.msg}).") from None


def _questions(path: str, documents: list[Any]) -> list[dict[str, Any]]:
    try:
        questions = [
            question
            for document in documents
            for paragraph in document["paragraphs"]
            for question in paragraph["qas"]
        ]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: documents must hold `paragraphs`, and these `qas`, as in SQuAD. "
            f"Received: {type(error).__name__}: {error}"
        ) from None
    for number, question in enumerate(questions, start=1):
        if not isinstance(question, dict) or "id" not in question:
            raise ValueError(f"{path}: question number {number} has no `id`.")
    return questions


def _keys(ids: list[str]) -> list[str]:
    """Returns the ids, with `#2`, `#3` and so on where one comes again."""
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


def _answers(path: str, key: str, question: dict[str, Any]) -> list[str]:
    answers = question.get("answers")
    texts = [a.get("text") if isinstance(a, dict) else None for a in answers or ()]
    if not isinstance(answers, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            f"{path}: question {key!r}: `answers` must be a list of objects with a string `text`."
        )
    return texts
