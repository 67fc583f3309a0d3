"""Where predictions and labels lie: `<folder>/<task>/<split>-<language>.<suffix>`, as in XTREME."""

import glob
import os
import re

from rembert_tf.evaluation.tasks import Task

_STANDARD = "{split}-{language}"


def prediction_path(folder: str, task: Task, split: str, language: str) -> str:
    """Returns where predictions lie; labels too, if they are in XTREME's own layout."""
    name = _STANDARD.format(split=split, language=language)
    return os.path.join(folder, task.name, f"{name}.{task.suffix}")


def find_predictions(folder: str, task: Task, split: str) -> dict[str, str]:
    """Returns language → path of the prediction files that exist."""
    return _find(folder, task, split, f"{_STANDARD}.{task.suffix}")


def find_labels(folder: str, task: Task, split: str) -> dict[str, str]:
    """Returns language → path of the label files that exist.

    A file named as XTREME names labels comes before one that is named as the data set is published
    (such as `xquad.de.json`).
    """
    found: dict[str, str] = {}
    for pattern in (f"{_STANDARD}.{task.suffix}", *task.label_files):
        found = _find(folder, task, split, pattern) | found
    return found


def _find(folder: str, task: Task, split: str, pattern: str) -> dict[str, str]:
    task_folder = os.path.join(glob.escape(folder), task.name)
    paths = glob.glob(os.path.join(task_folder, pattern.format(split=split, language="*")))
    first, *others = re.escape(pattern.format(split=split, language="\0")).split("\0")
    expression = first + r"(?P<language>[^./]+)" + others[0]
    expression += "".join(f"(?P=language){other}" for other in others[1:])
    matches = (re.fullmatch(f".*/{expression}", path.replace(os.sep, "/")) for path in paths)
    return {match["language"]: match[0] for match in matches if match}
