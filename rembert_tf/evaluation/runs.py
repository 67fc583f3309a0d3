"""Several runs: the mean over seeds with its spread, and two runs side by side."""

import dataclasses
import os
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import TASKS

_SEED = re.compile(r"seed_(\d+)")
_AVERAGED = ("languages", "mean", "gap_to_english")


def with_seeds(folders: Sequence[str]) -> list[str]:
    """Returns the folders; `seed_1`, `seed_2`, ... in place of one that holds them.

    So `rembert-predict` leaves the predictions of several seeds.

    Raises:
        ValueError: a folder holds seeds, and beside them predictions that belong to no seed; or the seeds
            are not 1, 2, ..., so that some may be of another series.
    """
    found = []
    for folder in folders:
        seeds, beside = seeds_and_tasks(folder)
        if seeds and beside:
            raise ValueError(
                f"`prediction_folder` must hold seeds or tasks, not both: move {', '.join(beside)} to a "
                "folder of its own, or into the folder of each seed. "
                f"Received: prediction_folder={folder}"
            )
        if [number for number, _ in seeds] != list(range(1, len(seeds) + 1)):
            raise ValueError(
                "`prediction_folder` must hold seed_1, seed_2, ... without a gap: move away what is left "
                f"of another series. Received: prediction_folder={folder}, which holds "
                f"{', '.join(name for _, name in seeds)}"
            )
        found += [os.path.join(folder, name) for _, name in seeds] or [folder]
    return found


def seeds_and_tasks(folder: str) -> tuple[list[tuple[int, str]], list[str]]:
    """Returns the seeds in a folder of predictions, numbers and names in order, and its tasks."""
    names = [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]
    seeds = sorted((int(match[1]), match[0]) for match in map(_SEED.fullmatch, names) if match)
    return seeds, [task for task in TASKS if task in names]


def mean_of(runs: Sequence[Scores]) -> Scores:
    """Returns the means of several runs' scores, such as seeds, with standard deviations.

    These are sample standard deviations: squares are summed and divided by the number of runs less 1.
    Baselines are those of the first run. A note that not all runs have names the run. Of one run, its
    scores.

    Raises:
        ValueError: the runs differ in their tasks or languages.
    """
    first, *others = runs
    for run in others:
        _require_same(first, run)
    if not others:
        return first
    tasks = {}
    for name, result in first.tasks.items():
        results = [run.tasks[name] for run in runs]
        tasks[name] = result | {
            key: _over([r[key] for r in results], statistics.fmean) for key in _AVERAGED
        }
        tasks[name]["deviation"] = {
            key: _over([r[key] for r in results], statistics.stdev) for key in _AVERAGED
        }
        tasks[name]["runs"] = [{"languages": r["languages"], "mean": r["mean"]} for r in results]
    notes = [
        note
        if all(note in other.notes for other in runs)
        else f"{run.prediction_folders[0]}: {note}"
        for run in runs
        for note in run.notes
    ]
    return dataclasses.replace(
        first,
        prediction_folders=[folder for run in runs for folder in run.prediction_folders],
        tasks=tasks,
        averages=_over([run.averages for run in runs], statistics.fmean),
        partial_averages=_over([run.partial_averages for run in runs], statistics.fmean),
        average_deviations=_over(
            [run.averages | run.partial_averages for run in runs], statistics.stdev
        ),
        notes=list(dict.fromkeys(notes)),
    )


def side_by_side(scores: Scores, path: str, name: str = "") -> Scores:
    """Returns the scores with another run beside them, read from its `scores.json`.

    Args:
        scores: this run.
        path: the other run's file.
        name: what to call the other run; default the name of the file's folder.

    Raises:
        ValueError: the file holds no scores, or of another split, or of other tasks only.
    """
    other = Scores.load(path)
    if other.split != scores.split:
        raise ValueError(
            f"{path}: both runs must be scored on the same split. "
            f"Received: {other.split} there, {scores.split} here"
        )
    tasks, notes = {}, list(scores.notes)
    for task, result in scores.tasks.items():
        theirs = other.tasks.get(task)
        if theirs is None:
            continue
        same = theirs["languages"].keys() == result["languages"].keys()
        deviation = theirs["deviation"] if same else theirs["deviation"] | {"mean": {}}
        tasks[task] = {
            "languages": theirs["languages"],
            "mean": theirs["mean"] if same else {},
            "deviation": deviation,
        }
        if not same:
            notes.append(
                f"{task}: the other run has other languages, so the two means are not compared."
            )
        examples = [
            language
            for language, count in result["examples"].items()
            if theirs["examples"].get(language, count) != count
        ]
        if examples:
            notes.append(
                f"{task}: the other run was scored on other test files, with other numbers of "
                f"examples: {', '.join(examples)}."
            )
    if not tasks:
        raise ValueError(
            f"{path}: the other run must have a task of this one, {', '.join(scores.tasks)}. "
            f"Received: {', '.join(other.tasks)}"
        )
    name = name or os.path.basename(os.path.dirname(os.path.abspath(path)))
    compared = {"name": name, "path": path, "tasks": tasks, "averages": other.averages}
    return dataclasses.replace(scores, compared_with=compared, notes=notes)


def differences_by_language(scores: Scores, task: str) -> dict[str, float]:
    """Returns language → main metric of this run minus that of the other one beside it."""
    result, theirs = scores.tasks[task], scores.compared_with["tasks"][task]["languages"]
    metric = result["main_metric"]
    return {
        language: score[metric] - theirs[language][metric]
        for language, score in result["languages"].items()
        if language in theirs
    }


def _require_same(first: Scores, run: Scores) -> None:
    for what, of_first, of_run in (
        ("tasks", first.tasks.keys(), run.tasks.keys()),
        *(
            (
                f"languages of {name}",
                result["languages"],
                run.tasks.get(name, {}).get("languages", ()),
            )
            for name, result in first.tasks.items()
        ),
    ):
        differing = sorted(set(of_first) ^ set(of_run))
        if differing:
            raise ValueError(
                f"Runs to be averaged must have the same {what}: {run.prediction_folders[0]} and "
                f"{first.prediction_folders[0]} differ in {', '.join(differing)}."
            )


def _over(values: Sequence[Any], combine: Callable[[Sequence[float]], float]) -> Any:
    """Combines numbers that stand at the same place in nested dicts."""
    if isinstance(values[0], Mapping):
        return {key: _over([value[key] for value in values], combine) for key in values[0]}
    return combine(values)
