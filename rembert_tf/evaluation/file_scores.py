"""Scores one prediction file against one label file, whatever the task."""

import dataclasses
import functools
from collections.abc import Mapping

from rembert_tf.evaluation import (
    accuracy,
    answer_files,
    files,
    question_answering,
    retrieval_files,
    tagging,
)
from rembert_tf.evaluation.tasks import Task

# Kind of remark → what it says, before the languages and how often it came up in each.
REMARKS: Mapping[str, str] = {
    "blank_lines": (
        "XTREME's evaluate.py would refuse these, where predictions and labels differ in their "
        "numbers of blank lines"
    ),
    "invalid_tags": (
        "predicted I- tags that continue no span. `f1` lets each begin one, `f1_strict` gives it "
        "none; no tag was repaired"
    ),
    "unanswered": "questions without a prediction, which count as wrong, as in XTREME",
    "unknown_questions": "predictions for ids that are no question of the labels, left out",
    "empty_answers": "empty answers, each right only where the gold answer is empty",
    "repeated_pairs": "pairs that come more than once and count once, as in XTREME",
    "nothing_mined": "files without a single pair",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileScores:
    """What one prediction file gives.

    Attributes:
        scores: metric → score in percent.
        examples: pairs, sentences, questions, lines or gold pairs in the label file.
        remarks: kind of remark, a key of `REMARKS` → how often, and the first place.
    """

    scores: dict[str, float]
    examples: int
    remarks: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)


def score_file(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    """Scores a prediction file.

    Args:
        task: the task.
        gold_path: the label file, or one made of data as published.
        predicted_path: the prediction file.
        language: language code, which says how the answers to questions are split into words.

    Raises:
        FileNotFoundError: one of the files is missing.
        ValueError: a file holds what it must not, or the two do not fit; the message names file
            and line, or file and id.
    """
    score = {
        "classification": _score_labels,
        "tagging": _score_tags,
        "question_answering": _score_answers,
        "retrieval": _score_pairs if task.name == "bucc2018" else _score_line_numbers,
    }[task.kind]
    result = score(task, gold_path, predicted_path, language)
    percent = {metric: 100 * value for metric, value in result.scores.items()}
    remarks = {kind: remark for kind, remark in result.remarks.items() if remark[0]}
    return dataclasses.replace(result, scores=percent, remarks=remarks)


def _score_labels(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    gold = accuracy.read_labels(gold_path, task.labels, task.aliases)
    predicted = accuracy.read_labels(predicted_path, task.prediction_labels, task.aliases)
    accuracy.check_same_length(gold_path, gold, predicted_path, predicted)
    return FileScores(scores={"accuracy": accuracy.accuracy(gold, predicted)}, examples=len(gold))


def _score_tags(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    gold_file = tagging.read_tags(gold_path, task.labels)
    predicted_file = tagging.read_tags(predicted_path, task.prediction_labels)
    tagging.check_same_shape(gold_file, predicted_file)
    gold, predicted = gold_file.sentences, predicted_file.sentences
    blank_lines = gold_file.xtreme_sentences != predicted_file.xtreme_sentences
    remarks = {"blank_lines": (int(blank_lines), "")}
    if task.name == "udpos":
        chunks = tagging.udpos_scores_xtreme(gold, predicted)
        scores = {
            "accuracy": tagging.token_accuracy(gold, predicted),
            "udpos_f1_xtreme": chunks.f1,
            "udpos_precision_xtreme": chunks.precision,
            "udpos_recall_xtreme": chunks.recall,
            "udpos_f1_seqeval": tagging.span_scores(gold, predicted).f1,
        }
    else:
        scores = {
            **tagging.span_scores(gold, predicted)._asdict(),
            "f1_strict": tagging.span_scores(gold, predicted, strict=True).f1,
        }
        remarks["invalid_tags"] = (tagging.count_invalid_iob2(predicted), "")
    return FileScores(scores=scores, examples=len(gold), remarks=remarks)


def _score_answers(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    gold = answer_files.read_gold_answers(gold_path)
    predicted = answer_files.read_predicted_answers(predicted_path)
    if not gold.keys() & predicted.keys():
        raise ValueError(
            f"{predicted_path}: none of the {len(predicted)} ids is a question of {gold_path}, "
            f"such as {next(iter(gold))!r}."
        )
    official_words = (
        functools.partial(question_answering.mlqa_words, language=language)
        if task.name == "mlqa"
        else question_answering.squad_words
    )
    corrected_words = functools.partial(question_answering.corrected_words, language=language)
    try:
        official = question_answering.score_answers(gold, predicted, official_words, empty_f1=0.0)
        corrected = question_answering.score_answers(gold, predicted, corrected_words)
    except ValueError as error:
        raise ValueError(f"{predicted_path}: {error}") from None
    unanswered = [key for key in gold if key not in predicted]
    unknown = [key for key in predicted if key not in gold]
    empty = [key for key in gold if not predicted.get(key, "-").strip()]
    return FileScores(
        scores={
            "exact_match": official.exact_match,
            "f1": official.f1,
            "em_f1_mean": (official.exact_match + official.f1) / 2,
            "exact_match_corrected": corrected.exact_match,
            "f1_corrected": corrected.f1,
        },
        examples=len(gold),
        remarks={
            "unanswered": _counted(unanswered),
            "unknown_questions": _counted(unknown),
            "empty_answers": _counted(empty),
        },
    )


def _score_line_numbers(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    gold = retrieval_files.read_line_numbers(gold_path)
    predicted = retrieval_files.read_line_numbers(predicted_path)
    accuracy.check_same_length(gold_path, gold, predicted_path, predicted)
    return FileScores(scores={"accuracy": accuracy.accuracy(gold, predicted)}, examples=len(gold))


def _score_pairs(
    task: Task, gold_path: files.Source, predicted_path: str, language: str
) -> FileScores:
    gold = set(retrieval_files.read_pairs(gold_path))
    if not gold:
        raise ValueError(f"{gold_path}: the file holds no pair.")
    predicted = retrieval_files.read_pairs(predicted_path)
    seen: set[retrieval_files.Pair] = set()
    repeated = []
    for line, pair in enumerate(predicted, start=1):
        if pair in seen:
            repeated.append(f"{predicted_path}:{line}")
        seen.add(pair)
    return FileScores(
        scores=retrieval_files.score_pairs(gold, seen)._asdict(),
        examples=len(gold),
        remarks={
            "repeated_pairs": _counted(repeated),
            "nothing_mined": (int(not predicted), ""),
        },
    )


def _counted(keys: list[str]) -> tuple[int, str]:
    return len(keys), keys[0] if keys else ""
