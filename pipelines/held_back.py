"""Test files stay out of training and selection: they are known by their name and by their content.

A best step that is chosen on the test file is a score that nobody else can reach. So a file that is
given to train on or to select by is refused if it is called a test file, or if more than half of a
test file stands in it.
"""

import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rembert_tf.pipelines import task_files, xtreme
from rembert_tf.pipelines.readers import Reader

_TEST = re.compile(r"(?<![a-z])test(?![a-z])")


def check(
    task: xtreme.Task,
    reader: Reader,
    examples: Sequence[Any],
    paths: Iterable[pathlib.Path],
    test_files: Iterable[pathlib.Path],
    language: str,
) -> None:
    """Refuses examples that are those of a test file.

    Args:
        task: the task.
        reader: the reader of its kind.
        examples: what was read, to train on or to select by.
        paths: the files that it was read from.
        test_files: the test files to compare with; those that cannot be read are left out.
        language: code of the language of all of them.

    Raises:
        ValueError: a file has the name of a test file, or `examples` hold more than half of one.
    """
    paths = list(paths)
    for path in paths:
        if has_test_name(task, path):
            raise ValueError(
                f"{path}: a test file by its name; training and the choice of the best step must "
                "not see it"
            )
    given = {reader.inputs_of(example) for example in examples}
    for test_file in test_files:
        try:
            test = {reader.inputs_of(e) for e in reader.read_examples(test_file, language=language)}
        except (ValueError, OSError):
            continue
        shared = len(given & test)
        if 2 * shared > min(len(given), len(test)):
            raise ValueError(
                f"{', '.join(map(str, paths))}: {shared} of {len(given)} different examples stand in "
                f"the test file {test_file}; training and the choice of the best step must not see it"
            )


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


def find_test_files(
    task: xtreme.Task, data_dir: str, chosen: Iterable[pathlib.Path], language: str
) -> Iterator[pathlib.Path]:
    """Yields the task's test files in a language, and those beside files that the user chose."""
    if data_dir:
        try:
            yield from task_files.find_files(task, data_dir, "test", language)
        except FileNotFoundError:
            pass
    for folder in sorted({path.resolve().parent for path in chosen}):
        for path in sorted(folder.iterdir()):
            if path.is_file() and has_test_name(task, path):
                yield path
