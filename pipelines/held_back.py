"""Test files stay out of training and selection: they are known by their name and by their content.

A best step that is chosen on the test file is a score that nobody else can reach. So a file to train on or to select
by is refused if it is called a test file, or if its content is that of one: if more than half of a test file stands in
it, or more than half of it stands in a test file. Only published dev files that hold a test file, as SQuAD's hold all
of XQuAD's English questions, are read without those examples.
"""

import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from absl import logging

from rembert_tf.pipelines import task_files, xtreme
from rembert_tf.pipelines.readers import Reader

_TEST = re.compile(r"(?<![a-z])test(?![a-z])")


class TestFile(NamedTuple):
    """A test file and what a model sees of its examples, `Reader.inputs_of`."""

    path: pathlib.Path
    inputs: frozenset[tuple[str, ...]]


def read_test_files(
    task: xtreme.Task,
    reader: Reader,
    data_dir: str,
    chosen: Iterable[pathlib.Path],
    language: str,
) -> list[TestFile]:
    """Reads the test files that examples are to be compared with; those that cannot be read are left out.

    Args:
        task: the task.
        reader: the reader of its kind.
        data_dir: the data folder, or "".
        chosen: files that the user named. Their content may be anything: they are compared with the test files of
            every language, and with those that lie beside them.
        language: code of the language of the files that were found in `data_dir`.
    """
    read = []
    for path, code in _find_test_files(task, data_dir, list(chosen), language):
        try:
            examples = reader.read_examples(path, language=code)
        except (ValueError, OSError):
            continue
        read.append(TestFile(path, frozenset(map(reader.inputs_of, examples))))
    return read


def refuse_test_names(task: xtreme.Task, paths: Iterable[pathlib.Path]) -> None:
    """Raises a `ValueError` if a file to train on or to select by has the name of a test file."""
    for path in paths:
        if has_test_name(task, path):
            raise ValueError(
                f"{path}: a test file by its name; training and the choice of the best step must "
                "not see it"
            )


def refuse_test_examples(
    reader: Reader,
    examples: Sequence[Any],
    paths: Iterable[pathlib.Path],
    test_files: Iterable[TestFile],
) -> None:
    """Refuses examples that are those of a test file.

    Args:
        reader: the reader of their kind.
        examples: what was read, to train on or to select by.
        paths: the files that it was read from.
        test_files: the test files to compare with.

    Raises:
        ValueError: more than half of `examples` stand in a test file, or they hold more than half of one.
    """
    given = {reader.inputs_of(example) for example in examples}
    for path, shared in _overlaps(given, test_files):
        raise ValueError(
            f"{', '.join(map(str, paths))}: {len(shared)} of {len(given)} different examples stand in "
            f"the test file {path}; training and the choice of the best step must not see it"
        )


def without_test_examples(
    reader: Reader,
    examples: Sequence[Any],
    paths: Iterable[pathlib.Path],
    test_files: Iterable[TestFile],
) -> list[Any]:
    """Leaves out the examples of a test file where `refuse_test_examples` would refuse all, and logs how many.

    Fewer that are the same are chance, such as sentences of two words, and stay.

    Raises:
        ValueError: no example is left.
    """
    kept = list(examples)
    for path, shared in _overlaps({reader.inputs_of(example) for example in examples}, test_files):
        rest = [example for example in kept if reader.inputs_of(example) not in shared]
        logging.info("%d dev examples left out: they stand in %s", len(kept) - len(rest), path)
        kept = rest
        if not kept:
            raise ValueError(
                f"{', '.join(map(str, paths))}: all {len(examples)} examples stand in the test file {path}; "
                "the choice of the best step must not see it"
            )
    return kept


def _overlaps(
    given: set[tuple[str, ...]], test_files: Iterable[TestFile]
) -> Iterator[tuple[pathlib.Path, set[tuple[str, ...]]]]:
    """Yields each test file that shares more than half of the smaller side, with what is shared."""
    for path, inputs in test_files:
        shared = given & inputs
        if 2 * len(shared) > min(len(given), len(inputs)):
            yield path, shared


def has_test_name(task: xtreme.Task, path: pathlib.Path) -> bool:
    """Tells whether a file is called a test file, here or where a link leads to."""
    names = {path.name, path.resolve().name}
    expressions = [
        task_files.path_expression(pattern.rpartition("/")[2]) for pattern in task.files["test"]
    ]
    return any(
        _TEST.search(name.lower()) or any(expression.fullmatch(name) for expression in expressions)
        for name in names
    )


def _find_test_files(
    task: xtreme.Task, data_dir: str, chosen: Sequence[pathlib.Path], language: str
) -> Iterator[tuple[pathlib.Path, str]]:
    """Yields the test files, each with the language to read of it; "" for all."""
    found = set()
    if data_dir:
        try:
            present = task_files.find_languages(task, data_dir, "test")
        except FileNotFoundError:
            present = ()
        for code in present if chosen else set(present) & {language}:
            for path in task_files.find_files(task, data_dir, "test", code):
                found.add(path.resolve())
                yield path, code
    for folder in sorted({path.resolve().parent for path in chosen}):
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.resolve() not in found and has_test_name(task, path):
                yield path, ""
