"""Makes XTREME's `labels/` folder: bare labels for its own `evaluate.py`, and for ours."""

import contextlib
import dataclasses
import os
import pathlib
import shutil
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rembert_tf.evaluation import (
    accuracy,
    answer_files,
    files,
    layout,
    markdown_tables,
    retrieval_files,
    tagging,
)
from rembert_tf.evaluation.label_folder import LabelFolder
from rembert_tf.evaluation.tasks import TASKS, Task, require_known


@dataclasses.dataclass(frozen=True, kw_only=True)
class MakeLabelsConfig:
    """What `rembert-make-labels` reads and writes."""

    data_dir: str = dataclasses.field(
        metadata={
            "help": "Folder of the data, as for rembert-finetune: data sets as published, or XTREME's files "
            "with labels."
        }
    )
    output_dir: str = dataclasses.field(
        metadata={
            "help": "Folder to write: <task>/<split>-<language>.tsv (.json for questions). It must be new "
            "or empty."
        }
    )
    tasks: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "Tasks; default: all that have files in data_dir."}
    )
    languages: tuple[str, ...] = dataclasses.field(
        default=(), metadata={"help": "Languages; default: all that have files, XTREME's or not."}
    )
    split: Literal["test", "dev"] = dataclasses.field(
        default="test", metadata={"help": "Which labels to write."}
    )

    def __post_init__(self):
        require_known(self.tasks)


class Written(NamedTuple):
    """A label file that was written.

    Attributes:
        task: name of the task.
        language: language code.
        source: the file it was made of.
        examples: how many pairs, sentences, questions, lines or gold pairs it has.
        labels: how many labels, tags, answers, line numbers or gold pairs.
    """

    task: str
    language: str
    source: str
    examples: int
    labels: int


def make_labels(config: MakeLabelsConfig) -> list[Written]:
    """Writes a label file for each task and language, all or none.

    Returns:
        What was written, in the order of the tasks.

    Raises:
        FileNotFoundError: there is no folder, no file of a task that was asked for, or none in a
            language that was asked for.
        ValueError: `output_dir` is taken; a file has no labels or is not as it must be; the message
            names file and line.
    """
    output_dir = os.path.realpath(config.output_dir)
    if os.path.lexists(output_dir) and not (
        os.path.isdir(output_dir) and not os.listdir(output_dir)
    ):
        raise ValueError(
            f"`output_dir` must be a new or an empty folder. Received: output_dir={config.output_dir}"
        )
    if not os.path.isdir(config.data_dir):
        raise FileNotFoundError(f"There is no folder {config.data_dir}.")
    folder = LabelFolder(config.data_dir, config.split)
    found = _languages(folder, config)
    with _new_folder(output_dir) as temporary:
        return [
            _write(TASKS[name], language, folder, temporary)
            for name, languages in found.items()
            for language in languages
        ]


def table(written: Sequence[Written]) -> str:
    """Returns what was written as a Markdown table, and which of XTREME's languages are missing."""
    rows = [("task", "language", "made of", "examples", "labels")]
    rows += [(w.task, w.language, w.source, str(w.examples), str(w.labels)) for w in written]
    lines = markdown_tables.table(rows, text_columns=3)
    for name in dict.fromkeys(w.task for w in written):
        there = {w.language for w in written if w.task == name}
        missing = [language for language in TASKS[name].languages if language not in there]
        if missing:
            lines.append(f"{name}: XTREME's evaluate.py needs also {', '.join(missing)}.")
    return "\n".join(lines)


def _languages(folder: LabelFolder, config: MakeLabelsConfig) -> dict[str, list[str]]:
    """Returns task → languages to write."""
    languages = {}
    for name in config.tasks or TASKS:
        found = folder.find(TASKS[name])
        languages[name] = [x for x in sorted(found) if x in (config.languages or found)]
        if not languages[name] and config.tasks:
            where = (
                f" in {', '.join(config.languages)}, only in {', '.join(sorted(found))}"
                if found
                else ""
            )
            raise FileNotFoundError(
                f"No {config.split} file of {name}{where}. {folder.places(TASKS[name])}"
            )
    there = {x for languages_of_task in languages.values() for x in languages_of_task}
    absent = [language for language in config.languages if language not in there]
    if absent or not there:
        raise FileNotFoundError(
            f"No {config.split} file of {', '.join(config.tasks or TASKS)} "
            f"{'in ' + ', '.join(absent) + ' ' if absent else ''}is in {config.data_dir}."
        )
    return languages


def _write(task: Task, language: str, folder: LabelFolder, output_dir: str) -> Written:
    source = folder.read(task, language)
    examples, labels, lines = _label_lines(task, source)
    path = pathlib.Path(layout.prediction_path(output_dir, task, folder.split, language))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return Written(task.name, language, str(source), examples, labels)


def _label_lines(task: Task, source: files.Source) -> tuple[int, int, list[str]]:
    """Returns numbers of examples and labels, and the lines of a label file, checked by the readers that score."""
    if task.kind == "classification":
        labels = accuracy.read_labels(source, task.labels, task.aliases)
        return len(labels), len(labels), labels
    if task.kind == "tagging":
        sentences = tagging.read_tags(source, task.labels).sentences
        lines = [line for tags in sentences for line in (*tags, "")][:-1]
        return len(sentences), sum(map(len, sentences)), lines
    if task.kind == "question_answering":
        gold = answer_files.read_gold_answers(source)
        return len(gold), sum(map(len, gold.values())), files.read_lines(source)
    if task.name == "bucc2018":
        pairs = retrieval_files.read_pairs(source)
        if not pairs:
            raise ValueError(f"{source}: the file holds no pair.")
        return len(pairs), len(pairs), ["\t".join(pair) for pair in pairs]
    numbers = retrieval_files.read_line_numbers(source)
    return len(numbers), len(numbers), [str(number) for number in numbers]


@contextlib.contextmanager
def _new_folder(path: str) -> Iterator[str]:
    """Gives a temporary folder beside `path`, which takes that name when the block ends well."""
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, f".{name}.incomplete")
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
