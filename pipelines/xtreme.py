"""The tasks of XTREME as data: their kind, languages, labels and where their files lie.

The files are those that XTREME's own download script leaves behind (Hu et al. 2020), one file a
split and language: `<data_dir>/<task>/<split>-<language>.tsv`. Predictions use the same layout
in another folder, which is what XTREME's `evaluate.py` reads.
"""

import dataclasses
import pathlib
import re
from typing import Literal

from absl import logging

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """One task of XTREME.

    Attributes:
        name: folder name of the task, for data and for predictions.
        kind: which reader and which model the task needs.
        languages: the languages that XTREME averages over. Files of other languages are read too.
        labels: label names in the order of their ids.
    """

    name: str
    kind: Literal["tagging", "classification"]
    languages: tuple[str, ...]
    labels: tuple[str, ...]


# The seventeen universal part-of-speech tags, in the alphabetical order of their documentation.
UPOS_TAGS = tuple(
    "ADJ ADP ADV AUX CCONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X".split()
)

TASKS = {
    task.name: task
    for task in (
        Task(
            name="udpos",
            kind="tagging",
            languages=tuple(
                "af ar bg de el en es et eu fa fi fr he hi hu id it ja kk ko mr nl pt ru ta te th "
                "tl tr ur vi yo zh".split()
            ),
            labels=UPOS_TAGS,
        ),
        Task(
            name="xnli",
            kind="classification",
            languages=tuple("ar bg de el en es fr hi ru sw th tr ur vi zh".split()),
            labels=("contradiction", "entailment", "neutral"),
        ),
    )
}


def get_task(name: str) -> Task:
    """Returns the task of this name, or raises a `ValueError` that lists the names."""
    if name not in TASKS:
        raise ValueError(f"`task` must be one of {', '.join(TASKS)}. Received: task={name!r}")
    return TASKS[name]


def split_path(task: Task, folder: str | pathlib.Path, split: str, language: str) -> pathlib.Path:
    """Returns where a split's file lies, in a data folder as well as in a prediction folder.

    Args:
        task: the task.
        folder: the folder that holds one folder a task.
        split: `train`, `dev` or `test`.
        language: language code, such as `en`.

    Returns:
        The path; nothing is said on whether the file exists.
    """
    if split not in SPLITS:
        raise ValueError(f"`split` must be one of {', '.join(SPLITS)}. Received: split={split!r}")
    return pathlib.Path(folder) / task.name / f"{split}-{language}.tsv"


def find_languages(task: Task, folder: str | pathlib.Path, split: str) -> tuple[str, ...]:
    """Returns the languages that have a file of this split, sorted by their code.

    Logs which of XTREME's languages have none: several have no training and no dev file, and a
    partial download is no error either.

    Raises:
        FileNotFoundError: there is no file of this split at all.
    """
    folder_of_task = split_path(task, folder, split, "xx").parent
    names = _file_names(folder_of_task)
    pattern = re.compile(rf"{split}-([^.]+)\.tsv")
    languages = tuple(sorted(match[1] for match in map(pattern.fullmatch, names) if match))
    if not languages:
        raise FileNotFoundError(
            f"No file {split}-<language>.tsv of the task {task.name} in {folder_of_task} "
            f"({_describe(folder_of_task, names)})."
        )
    absent = [language for language in task.languages if language not in languages]
    logging.info(
        "%s %s: files for %d languages (%s)%s", task.name, split, len(languages),
        " ".join(languages), f"; XTREME has also {' '.join(absent)}" if absent else "",
    )  # fmt: skip
    return languages


def find_split(task: Task, folder: str | pathlib.Path, split: str, language: str) -> pathlib.Path:
    """Returns the path of a split's file that exists.

    Raises:
        FileNotFoundError: it does not; the message names the file and what its folder holds.
    """
    path = split_path(task, folder, split, language)
    if not path.is_file():
        names = _file_names(path.parent)
        raise FileNotFoundError(f"No file {path} ({_describe(path.parent, names)}).")
    return path


def _file_names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _describe(folder: pathlib.Path, names: list[str]) -> str:
    """Says in a few words what a folder holds, for a message about a file that is not there."""
    if not folder.is_dir():
        return f"there is no folder {folder}; `data_dir` is the folder that holds one folder a task"
    if not names:
        return "the folder is empty"
    return f"the folder holds {', '.join(names[:8])}" + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
