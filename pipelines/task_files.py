"""Where the files of XTREME's tasks lie, and where predictions go.

Files are found as XTREME's own download script leaves them (Hu et al. 2020), `<data_dir>/<task>/
<split>-<language>.tsv`, or else as their authors publish them. Predictions have the first layout, in
another folder, which is what XTREME's `evaluate.py` reads.
"""

import pathlib
import re

from absl import logging

from rembert_tf.pipelines import xtreme

_LANGUAGE = r"(?P<language>[A-Za-z]{2,3}(?:-[A-Za-z]+)*)"
_TWO_LETTERS = {three: two for two, three in xtreme.THREE_LETTERS.items()}


def prediction_path(
    task: xtreme.Task, folder: str | pathlib.Path, split: str, language: str
) -> pathlib.Path:
    """Returns where the predictions for a split lie in a prediction folder: `task/split-language`.

    Args:
        task: the task.
        folder: the folder that holds one folder a task.
        split: `train`, `dev` or `test`.
        language: language code, such as `en`.
    """
    _patterns(task, split)
    extension = "json" if task.kind == "question_answering" else "tsv"
    return pathlib.Path(folder) / task.name / f"{split}-{language}.{extension}"


def find_files(
    task: xtreme.Task, folder: str | pathlib.Path, split: str, language: str
) -> tuple[pathlib.Path, ...]:
    """Returns the files of a split in one language: most often one, of UD one a treebank.

    Args:
        task: the task.
        folder: the data folder.
        split: `train`, `dev`, `test`, or `translate_train`.
        language: language code, such as `en`.

    Raises:
        ValueError: the task has no such split, or two of the files have the same name, as in two releases of UD.
        FileNotFoundError: there is no such file; the message names the first path that was tried, and
            what its folder holds, or the language in which the task has such files.
    """
    patterns = _patterns(task, split)
    for pattern in patterns:
        path, _, only = pattern.partition("#")
        if only in ("", language):
            found = pathlib.Path(folder).glob(_with_language(path, language))
            found = sorted(found, key=lambda path: (path.name, path))  # XTREME's order of treebanks
            if found := tuple(path for path in found if path.is_file()):
                if len({path.name for path in found}) < len(found):
                    raise ValueError(
                        f"{task.name}: the {split} files of {language} must lie in one place, not in two "
                        f"releases. Received: {', '.join(map(str, found))}"
                    )
                return found
    first, _, only = patterns[0].partition("#")
    if all(pattern.partition("#")[2] not in ("", language) for pattern in patterns):
        instead = "dev_file" if split == "dev" else "train_files"
        raise FileNotFoundError(
            f"{first} is in {only} only; give `{instead}`. Received: language={language!r}"
        )
    wanted = pathlib.Path(folder, _with_language(first, language))
    beside = pathlib.Path(folder, patterns[0]).parent
    raise FileNotFoundError(f"No file {wanted} ({_describe(beside)}).")


def find_languages(task: xtreme.Task, folder: str | pathlib.Path, split: str) -> tuple[str, ...]:
    """Returns the languages that have a file of this split, sorted by their code.

    Logs which of XTREME's languages have none: several have no training and no dev file, and a
    partial download is no error either.

    Raises:
        ValueError: the task has no such split.
        FileNotFoundError: there is no file of this split at all.
    """
    languages = languages_with_files(task, folder, split)
    if not languages:
        pattern = _patterns(task, split)[0].partition("#")[0]
        first = pathlib.Path(folder, pattern.format(language="<language>"))
        raise FileNotFoundError(
            f"No file {first.name} of the task {task.name} in {first.parent} "
            f"({_describe(first.parent)})."
        )
    absent = [language for language in task.languages if language not in languages]
    logging.info(
        "%s %s: files for %d languages (%s)%s", task.name, split, len(languages),
        " ".join(languages), f"; XTREME has also {' '.join(absent)}" if absent else "",
    )  # fmt: skip
    return languages


def languages_with_files(
    task: xtreme.Task, folder: str | pathlib.Path, split: str
) -> tuple[str, ...]:
    """Returns the languages that have a file of this split, sorted by their code; perhaps none.

    Raises:
        ValueError: the task has no such split.
    """
    languages = set()
    for pattern in _patterns(task, split):
        path, _, only = pattern.partition("#")
        expression = path_expression(pattern)
        for found in pathlib.Path(folder).glob(_with_language(path, "*")):
            match = found.is_file() and expression.fullmatch(found.relative_to(folder).as_posix())
            if match and "{language3}" in path:
                languages.add(_TWO_LETTERS.get(match["language"], match["language"]))
            elif match and "language" in expression.groupindex:
                languages.add(match["language"])
            elif match:
                languages.update([only] if only else task.languages)
    return tuple(sorted(languages))


def path_expression(pattern: str) -> re.Pattern:
    """Returns the regular expression of one of `Task.files`, with a group `language`."""
    expression = re.escape(pattern.partition("#")[0].replace("{language3}", "{language}"))
    expression = expression.replace(r"\*", "[^/]*").replace(r"\{language\}", _LANGUAGE, 1)
    return re.compile(expression.replace(r"\{language\}", "(?P=language)"))


def _with_language(path: str, language: str) -> str:
    three_letters = xtreme.THREE_LETTERS.get(language, language)
    return path.format(language=language, language3=three_letters)


def _patterns(task: xtreme.Task, split: str) -> tuple[str, ...]:
    splits = (*xtreme.SPLITS, xtreme.TRANSLATE_TRAIN)
    if split not in splits:
        raise ValueError(f"`split` must be one of {', '.join(splits)}. Received: split={split!r}")
    if split not in task.files:
        raise ValueError(
            f"{task.name} has no {split} files, only {', '.join(task.files)}. "
            f"Received: task={task.name!r}"
        )
    return task.files[split]


def _describe(folder: pathlib.Path) -> str:
    """Says in a few words what a folder holds, for a message about a file that is not there."""
    if not folder.is_dir():
        return f"there is no folder {folder}; `data_dir` is the folder that holds one folder a task"
    names = sorted(path.name for path in folder.iterdir())
    if not names:
        return "the folder is empty"
    return f"the folder holds {', '.join(names[:8])}" + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
