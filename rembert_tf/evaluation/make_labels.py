"""Makes XTREME's `labels/` folder: bare labels for its own `evaluate.py`, and for ours."""

import contextlib
import dataclasses
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
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


class Made(NamedTuple):
    """What became of a folder of data.

    Attributes:
        written: what was written, in the order of the tasks.
        without_labels: task → languages of which no file tells labels, as XTREME's test files do not.
    """

    written: list[Written]
    without_labels: dict[str, list[str]]


def make_labels(config: MakeLabelsConfig) -> Made:
    """Writes a label file for each task and language that has labels, all or none.

    Raises:
        FileNotFoundError: there is no folder, no file of a task that was asked for, or none in a
            language that was asked for.
        ValueError: `output_dir` is taken; nothing has labels, or nothing of a task or language that was
            asked for; a file is not as it must be; the message names file and line.
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
    written, refusals = [], {}
    with _new_folder(output_dir) as temporary:
        for name, languages in found.items():
            for language in languages:
                try:
                    written.append(_write(TASKS[name], language, folder, temporary))
                except files.NoLabelsError as error:
                    refusals[name, language] = error
        _require_what_was_asked_for(config, written, refusals)
    without_labels: dict[str, list[str]] = {}
    for name, language in refusals:
        without_labels.setdefault(name, []).append(language)
    return Made(written, without_labels)


def table(made: Made) -> str:
    """Returns what was written as a Markdown table, what has no labels, and what XTREME needs beside."""
    written = made.written
    rows = [("task", "language", "made of", "examples", "labels")]
    rows += [(w.task, w.language, w.source, str(w.examples), str(w.labels)) for w in written]
    lines = markdown_tables.table(rows, text_columns=3)
    for name, languages in made.without_labels.items():
        lines.append(
            f"{name}: no labels in {', '.join(languages)}; "
            f"--tasks={name} --languages={languages[0]} says where they were looked for."
        )
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


def _require_what_was_asked_for(
    config: MakeLabelsConfig,
    written: Sequence[Written],
    refusals: Mapping[tuple[str, str], files.NoLabelsError],
) -> None:
    """Raises the refusal of a task or language that was asked for and is nowhere, as `_languages` does for files."""
    tasks, languages = {w.task for w in written}, {w.language for w in written}
    for (task, language), error in refusals.items():
        task_is_wanted = task in config.tasks and task not in tasks
        language_is_wanted = language in config.languages and language not in languages
        if not written or task_is_wanted or language_is_wanted:
            raise error


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
    """Gives a temporary folder, which becomes `path` when the block ends well; else nothing is left of it."""
    parent, name = os.path.split(path)
    existing = parent
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=existing) as temporary:
        folder = os.path.join(temporary, name)  # with the usual rights, which `temporary` has not
        os.mkdir(folder)
        yield folder
        os.makedirs(parent, exist_ok=True)
        os.replace(folder, path)
