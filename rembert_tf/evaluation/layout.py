"""Where predictions and labels lie: `<folder>/<task>/<split>-<language>.<suffix>`, as in XTREME."""

import glob
import os
import re

from rembert_tf.evaluation.tasks import Task


def prediction_path(folder: str, task: Task, split: str, language: str) -> str:
    """Returns where predictions lie; labels too, if they are in XTREME's own layout."""
    return os.path.join(folder, task.name, f"{split}-{language}.{task.suffix}")


def find_predictions(folder: str, task: Task, split: str) -> dict[str, str]:
    """Returns language → path of the prediction files that exist; of label files in the same layout."""
    names = glob.glob(f"{split}-*.{task.suffix}", root_dir=os.path.join(folder, task.name))
    expression = re.compile(rf"{re.escape(split)}-([^./]+)\.{task.suffix}")
    matches = (expression.fullmatch(name) for name in names)
    return {match[1]: os.path.join(folder, task.name, match[0]) for match in matches if match}
