"""Scores whole folders of predictions, `<folder>/<task>/<split>-<language>.tsv` as in XTREME."""

import dataclasses
import importlib.metadata
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rembert_tf.evaluation import accuracy, tagging
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import GROUPS, TASKS, Task, averages, require_known


def evaluate_folders(
    prediction_folder: str,
    label_folder: str,
    *,
    split: str = "test",
    tasks: Iterable[str] = (),
    baselines: Mapping[str, str] | None = None,
    xtreme_languages: str = "present",
) -> Scores:
    """Scores every task and language that both folders have.

    Args:
        prediction_folder: `<task>/<split>-<language>.tsv`, one label or tag a line.
        label_folder: the same layout; bare labels, or data files with the label in the last column.
        split: `test` or `dev`.
        tasks: which tasks; default those in both folders.
        baselines: name → other prediction folders, scored on the same tasks and languages.
        xtreme_languages: `present`, or `all` to demand exactly XTREME's languages.

    Raises:
        FileNotFoundError: a folder, a task that was asked for, or a language is missing.
        ValueError: a file holds an unknown label, or predictions and labels differ in number.
    """
    baselines, names = baselines or {}, tuple(tasks)
    require_known(names)
    for folder in (prediction_folder, label_folder, *baselines.values()):
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"There is no folder {folder}.")
    scorer = _Scorer(label_folder=label_folder, split=split)
    names = names or scorer.tasks_to_score(prediction_folder)
    results = {
        name: scorer.score_task(TASKS[name], prediction_folder, xtreme_languages == "all")
        for name in names
    }
    return Scores(
        split=split,
        prediction_folder=prediction_folder,
        label_folder=label_folder,
        tasks=results,
        averages=averages({name: r["mean"][r["official_metric"]] for name, r in results.items()}),
        baselines={
            name: scorer.score_baseline(name, folder, results) for name, folder in baselines.items()
        },
        notes=scorer.notes,
        seqeval_version=importlib.metadata.version("seqeval"),
    )


class _Result(NamedTuple):
    """What one prediction file gives."""

    scores: dict[str, float]
    examples: int
    invalid_tags: int = 0
    refused_by_xtreme: bool = False


@dataclasses.dataclass(kw_only=True)
class _Scorer:
    """Scores prediction folders against one label folder and keeps notes for the reader."""

    label_folder: str
    split: str
    notes: list[str] = dataclasses.field(default_factory=list)

    def tasks_to_score(self, prediction_folder: str) -> tuple[str, ...]:
        """Returns the tasks in both folders, XTREME's rule."""
        in_both = [
            name
            for names in GROUPS.values()
            for name in names
            if all(
                os.path.isdir(os.path.join(folder, name))
                for folder in (prediction_folder, self.label_folder)
            )
        ]
        unknown = [name for name in in_both if name not in TASKS]
        if unknown:
            self.notes.append(f"Not scored, only {', '.join(TASKS)} are: {', '.join(unknown)}.")
        known = tuple(name for name in in_both if name in TASKS)
        if not known:
            raise FileNotFoundError(
                f"No task folder ({', '.join(TASKS)}) is in both {prediction_folder} and "
                f"{self.label_folder}."
            )
        return known

    def score_task(self, task: Task, prediction_folder: str, all_languages: bool) -> dict[str, Any]:
        """Returns an entry of `Scores.tasks`."""
        if all_languages:
            languages = self._xtreme_languages(task, prediction_folder)
        else:
            languages = self._languages_in_both(task, prediction_folder)
        results = {x: self._score_language(task, prediction_folder, x) for x in languages}
        self._note_tags(task, results)
        scores = {language: result.scores for language, result in results.items()}
        means = _means(scores)
        others = {language: s for language, s in scores.items() if language != "en"}
        gaps = {}
        if "en" in scores and others:
            gaps = {m: scores["en"][m] - mean for m, mean in _means(others).items()}
        return {
            "group": task.group,
            "main_metric": task.main_metric,
            "official_metric": task.official_metric,
            "languages": scores,
            "mean": means,
            "gap_to_english": gaps,
            "examples": {language: result.examples for language, result in results.items()},
            "missing_languages": [x for x in task.languages if x not in scores],
            "other_languages": [x for x in languages if x not in task.languages],
        }

    def score_baseline(
        self, name: str, folder: str, results: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Returns an entry of `Scores.baselines`, for the tasks and languages in `results`."""
        tasks = {}
        for task in (TASKS[task] for task in results):
            languages = results[task.name]["languages"]
            present = self._languages_in(folder, task)
            scores = {
                x: self._score_language(task, folder, x).scores for x in languages if x in present
            }
            missing = [language for language in languages if language not in present]
            if missing:
                self.notes.append(
                    f"Baseline {name} has no {task.name} predictions for {', '.join(missing)}: its "
                    "mean is left out."
                )
            tasks[task.name] = {"languages": scores, "mean": {} if missing else _means(scores)}
        if not any(task["languages"] for task in tasks.values()):
            raise FileNotFoundError(
                f"Baseline {name}: no {self.split} predictions of {', '.join(tasks)} in {folder}."
            )
        return {"prediction_folder": folder, "tasks": tasks}

    def _xtreme_languages(self, task: Task, prediction_folder: str) -> Sequence[str]:
        for folder in (prediction_folder, self.label_folder):
            present = self._languages_in(folder, task)
            missing = [language for language in task.languages if language not in present]
            if missing:
                raise FileNotFoundError(
                    f"{self._path(folder, task, missing[0])} is missing: XTREME's mean of "
                    f"{task.name} needs {len(task.languages)} languages. Missing here: "
                    f"{', '.join(missing)}."
                )
        return task.languages

    def _languages_in_both(self, task: Task, prediction_folder: str) -> Sequence[str]:
        predicted = self._languages_in(prediction_folder, task)
        labelled = self._languages_in(self.label_folder, task)
        if not predicted & labelled:
            raise FileNotFoundError(
                f"{task.name}: no language has both predictions and labels. Found: "
                f"{len(predicted)} files {self._path(prediction_folder, task, '*')}, "
                f"{len(labelled)} files {self._path(self.label_folder, task, '*')}."
            )
        for languages, what in (
            (predicted - labelled, "predictions but no labels"),
            (labelled - predicted, "labels but no predictions"),
        ):
            if languages:
                self.notes.append(
                    f"{task.name}: not scored, {what}: {', '.join(sorted(languages))}."
                )
        return sorted(predicted & labelled)

    def _languages_in(self, folder: str, task: Task) -> set[str]:
        task_folder = os.path.join(folder, task.name)
        names = os.listdir(task_folder) if os.path.isdir(task_folder) else []
        matches = (re.fullmatch(rf"{self.split}-([^.]+)\.tsv", name) for name in names)
        return {match[1] for match in matches if match}

    def _path(self, folder: str, task: Task, language: str) -> str:
        return os.path.join(folder, task.name, f"{self.split}-{language}.tsv")

    def _score_language(self, task: Task, prediction_folder: str, language: str) -> _Result:
        gold = self._path(self.label_folder, task, language)
        predicted = self._path(prediction_folder, task, language)
        score = _score_tags if task.kind == "tagging" else _score_labels
        return score(task, gold, predicted)

    def _note_tags(self, task: Task, results: Mapping[str, _Result]) -> None:
        refused = [language for language, r in results.items() if r.refused_by_xtreme]
        if refused:
            self.notes.append(
                f"{task.name}: XTREME's evaluate.py would refuse {', '.join(refused)}, where "
                "predictions and labels differ in their numbers of blank lines."
            )
        invalid = {language: r.invalid_tags for language, r in results.items() if r.invalid_tags}
        if invalid:
            self.notes.append(
                f"{task.name}: {sum(invalid.values())} predicted I- tags continue no span "
                f"({', '.join(invalid)}). `f1` lets each begin one, `f1_strict` gives it none; no "
                "tag was repaired."
            )


def _means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns metric → unweighted mean over languages."""
    rows = list(scores.values())
    return {metric: sum(row[metric] for row in rows) / len(rows) for metric in rows[0]}


def _score_labels(task: Task, gold_path: str, predicted_path: str) -> _Result:
    gold = accuracy.read_labels(gold_path, task.labels, task.aliases)
    predicted = accuracy.read_labels(predicted_path, task.prediction_labels, task.aliases)
    accuracy.check_same_length(gold_path, gold, predicted_path, predicted)
    return _Result({"accuracy": 100 * accuracy.accuracy(gold, predicted)}, len(gold))


def _score_tags(task: Task, gold_path: str, predicted_path: str) -> _Result:
    gold_file = tagging.read_tags(gold_path, task.labels)
    predicted_file = tagging.read_tags(predicted_path, task.prediction_labels)
    tagging.check_same_shape(gold_file, predicted_file)
    gold, predicted = gold_file.sentences, predicted_file.sentences
    invalid_tags = 0
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
        invalid_tags = tagging.count_invalid_iob2(predicted)
    return _Result(
        {metric: 100 * score for metric, score in scores.items()},
        len(gold),
        invalid_tags,
        gold_file.xtreme_sentences != predicted_file.xtreme_sentences,
    )
