"""XTREME's official scores as JSON, under the names that its `evaluate.py` gives them."""

import json
from typing import Any

from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import TASKS


def official_json(scores: Scores) -> str:
    """Returns XTREME's official scores under XTREME's names: averages, then task → metric.

    Averages of groups and of all tasks are there only where XTREME gives them. A task that lacks
    some of XTREME's languages names them under `missing_languages`, one that has others besides
    names these under `other_languages`; these are in its averages only where some of XTREME's are
    missing. Of several runs these are the means, and `standard_deviation` holds the same names once
    more (n - 1), for each task and for XTREME's averages.
    """
    official: dict[str, Any] = dict(scores.averages)
    for name, result in scores.tasks.items():
        official[name] = _official_scores(name, result)
        for key in ("missing_languages", "other_languages"):
            if result[key]:
                official[name][key] = result[key]
        if result["deviation"]:
            official[name]["standard_deviation"] = _official_scores(name, result["deviation"])
    if scores.average_deviations:
        official["standard_deviation"] = {n: scores.average_deviations[n] for n in scores.averages}
    return json.dumps(official, indent=2) + "\n"


def _official_scores(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Returns `languages` and `mean` of a task under XTREME's names."""
    task = TASKS[name]
    official: dict[str, Any] = {
        theirs: {language: values[ours] for language, values in result["languages"].items()}
        for theirs, ours in task.official.items()
    }
    official |= {f"avg_{theirs}": result["mean"][ours] for theirs, ours in task.official.items()}
    return official | {"avg_metric": result["mean"][task.official_metric]}
