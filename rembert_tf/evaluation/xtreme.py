"""Scores whole folders of predictions, laid out as in XTREME, into one `Scores`."""

import dataclasses
import importlib.metadata
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rembert_tf.evaluation import files, layout, runs
from rembert_tf.evaluation.file_scores import REMARKS, FileScores, score_file
from rembert_tf.evaluation.label_folder import LabelFolder
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import GROUPS, TASKS, Task, averages, require_known


def evaluate_folders(
    prediction_folders: str | Sequence[str],
    label_folder: str,
    *,
    split: str = "test",
    tasks: Iterable[str] = (),
    baselines: Mapping[str, str] | None = None,
    xtreme_languages: str = "present",
) -> Scores:
    """Scores every task and language that both folders have.

    Args:
        prediction_folders: `<task>/<split>-<language>.tsv` (`.json` for questions), see `layout`;
            of several runs, such as seeds, which are then averaged, a list, or a folder that holds
            `seed_1`, `seed_2`, ...
        label_folder: the same layout: bare labels, or data files with the label in the last column.
            Or data sets as their authors publish them, see `label_folder`.
        split: `test` or `dev`.
        tasks: which tasks; default those in both folders.
        baselines: name → other prediction folders, scored on the same tasks and languages.
        xtreme_languages: `present`, or `all` to demand exactly XTREME's languages.

    Raises:
        FileNotFoundError: a folder, a task that was asked for, or a language is missing.
        ValueError: a file holds what it must not, predictions and labels do not fit each other, no
            language of a task has labels, runs differ in their tasks or languages, or a folder of seeds
            holds something else.
    """
    if isinstance(prediction_folders, str):
        prediction_folders = [prediction_folders]
    baselines, names = baselines or {}, tuple(tasks)
    require_known(names)
    for folder in (*prediction_folders, label_folder, *baselines.values()):
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"There is no folder {folder}.")
    scored, labels = [], LabelFolder(label_folder, split)
    for folder in runs.with_seeds(prediction_folders):
        scorer = _Scorer(labels=labels, split=split)
        scored.append(scorer.score(folder, names, xtreme_languages == "all"))
    return _Scorer(labels=labels, split=split).with_baselines(runs.mean_of(scored), baselines)


@dataclasses.dataclass(kw_only=True)
class _Scorer:
    """Scores one run, or baselines, against one label folder; keeps notes for the reader."""

    labels: LabelFolder
    split: str
    notes: list[str] = dataclasses.field(default_factory=list)

    def score(self, prediction_folder: str, names: Sequence[str], all_languages: bool) -> Scores:
        """Returns the scores of one run."""
        names = names or self._tasks_to_score(prediction_folder)
        results = {
            name: self._score_task(TASKS[name], prediction_folder, all_languages) for name in names
        }
        complete = {
            name: result["mean"][result["official_metric"]]
            for name, result in results.items()
            if not result["missing_languages"]
        }
        present = {name: r["mean"][r["official_metric"]] for name, r in results.items()}
        official = averages(complete)
        return Scores(
            split=self.split,
            prediction_folders=[prediction_folder],
            label_folder=self.labels.path,
            tasks=results,
            averages=official,
            partial_averages={n: s for n, s in averages(present).items() if n not in official},
            notes=self.notes,
            seqeval_version=importlib.metadata.version("seqeval"),
        )

    def with_baselines(self, scores: Scores, baselines: Mapping[str, str]) -> Scores:
        """Returns the scores with baselines, name → folder, beside them."""
        scored = {
            name: self._score_baseline(name, folder, scores.tasks)
            for name, folder in baselines.items()
        }
        return dataclasses.replace(scores, baselines=scored, notes=[*scores.notes, *self.notes])

    def _tasks_to_score(self, prediction_folder: str) -> tuple[str, ...]:
        """Returns the tasks in both folders, XTREME's rule."""
        in_both = []
        for task in (TASKS[name] for names in GROUPS.values() for name in names):
            if not os.path.isdir(os.path.join(prediction_folder, task.name)):
                continue
            if os.path.isdir(os.path.join(self.labels.path, task.name)) or self.labels.find(task):
                in_both.append(task.name)
            elif layout.find_predictions(prediction_folder, task, self.split):
                self.notes.append(
                    f"{task.name}: not scored, predictions but no labels. {self.labels.places(task)}"
                )
        if not in_both:
            raise FileNotFoundError(
                f"No task folder ({', '.join(TASKS)}) is in both {prediction_folder} and "
                f"{self.labels.path}, and no data set as published is in the latter. "
                f"{' '.join(self.notes)}".strip()
            )
        return tuple(in_both)

    def _score_task(
        self, task: Task, prediction_folder: str, all_languages: bool
    ) -> dict[str, Any]:
        """Returns an entry of `Scores.tasks`."""
        predicted = layout.find_predictions(prediction_folder, task, self.split)
        labelled = self.labels.find(task)
        if all_languages:
            self._require_xtreme_languages(
                task, {prediction_folder: predicted, self.labels.path: labelled}
            )
            gold = {x: self.labels.read(task, x) for x in task.languages}
        else:
            gold = self._gold_of_languages_in_both(task, prediction_folder, predicted, labelled)
        results = {x: score_file(task, gold[x], predicted[x], x) for x in gold}
        made = [str(source) for source in gold.values() if isinstance(source, files.MadeFile)]
        if made:
            self.notes.append(f"{task.name}: labels made from data as published, {made[0]} first.")
        self._note_remarks(task, results)
        scores = {language: result.scores for language, result in results.items()}
        averaged = {language: scores[language] for language in _averaged(task, scores)}
        means = _means(averaged)
        others = {language: s for language, s in averaged.items() if language != "en"}
        gaps = {}
        if "en" in averaged and others:
            gaps = {m: averaged["en"][m] - mean for m, mean in _means(others).items()}
        return {
            "group": task.group,
            "main_metric": task.main_metric,
            "official_metric": task.official_metric,
            "languages": scores,
            "mean": means,
            "gap_to_english": gaps,
            "examples": {language: result.examples for language, result in results.items()},
            "missing_languages": [x for x in task.languages if x not in scores],
            "other_languages": [x for x in scores if x not in task.languages],
            "deviation": {},
        }

    def _score_baseline(
        self, name: str, folder: str, results: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Returns an entry of `Scores.baselines`, for the tasks and languages in `results`."""
        tasks = {}
        for task in (TASKS[task] for task in results):
            languages = results[task.name]["languages"]
            predicted = layout.find_predictions(folder, task, self.split)
            scores = {
                x: score_file(task, self.labels.read(task, x), predicted[x], x).scores
                for x in languages
                if x in predicted
            }
            averaged = _averaged(task, languages)
            missing = [language for language in averaged if language not in predicted]
            if missing:
                self.notes.append(
                    f"Baseline {name} has no {task.name} predictions for {', '.join(missing)}: its "
                    "mean is left out."
                )
            mean = {} if missing else _means({x: scores[x] for x in averaged})
            tasks[task.name] = {"languages": scores, "mean": mean}
        if not any(task["languages"] for task in tasks.values()):
            raise FileNotFoundError(
                f"Baseline {name}: no {self.split} predictions of {', '.join(tasks)} in {folder}."
            )
        return {"prediction_folder": folder, "tasks": tasks}

    def _require_xtreme_languages(self, task: Task, found: Mapping[str, Mapping[str, Any]]) -> None:
        for folder, paths in found.items():
            missing = [language for language in task.languages if language not in paths]
            if missing:
                path = layout.prediction_path(folder, task, self.split, missing[0])
                raise FileNotFoundError(
                    f"{path} is missing: XTREME's mean of {task.name} needs "
                    f"{len(task.languages)} languages. Missing here: {', '.join(missing)}."
                )

    def _gold_of_languages_in_both(
        self,
        task: Task,
        prediction_folder: str,
        predicted: Mapping[str, str],
        labelled: Mapping[str, Any],
    ) -> dict[str, files.Source]:
        gold, refusals = {}, []
        for language in sorted(predicted.keys() & labelled.keys()):
            try:
                gold[language] = self.labels.read(task, language)
            except files.NoLabelsError as error:
                refusals.append(error)
        if refusals and not gold:
            raise refusals[0]
        if not gold:
            where = [
                layout.prediction_path(folder, task, self.split, "*")
                for folder in (prediction_folder, self.labels.path)
            ]
            raise FileNotFoundError(
                f"{task.name}: no language has both predictions and labels. Found: "
                f"{len(predicted)} files {where[0]}, {len(labelled)} files {where[1]}. "
                f"{self.labels.places(task)}"
            )
        for languages, what in (
            (predicted.keys() - gold.keys(), "predictions but no labels"),
            (labelled.keys() - predicted.keys(), "label files but no predictions"),
        ):
            if languages:
                self.notes.append(
                    f"{task.name}: not scored, {what}: {', '.join(sorted(languages))}."
                )
        return gold

    def _note_remarks(self, task: Task, results: Mapping[str, FileScores]) -> None:
        for kind, sentence in REMARKS.items():
            places = [
                f"{language} {count}" + (f" (first: {first})" if first else "")
                for language, (count, first) in (
                    (language, result.remarks.get(kind, (0, "")))
                    for language, result in results.items()
                )
                if count
            ]
            if places:
                self.notes.append(f"{task.name}: {sentence}: {', '.join(places)}.")


def _averaged(task: Task, languages: Collection[str]) -> Collection[str]:
    """Returns the languages that means are over: XTREME's where all are there, or else all that are there."""
    return task.languages if set(task.languages) <= set(languages) else languages


def _means(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Returns metric → unweighted mean over languages."""
    rows = list(scores.values())
    return {metric: sum(row[metric] for row in rows) / len(rows) for metric in rows[0]}
