"""Gold labels from data sets as their authors publish them, in the layout of XTREME's label files.

Files are found and read by the same tables and readers of `rembert_tf.pipelines` that fine-tuning and
prediction use, so that labels have the order and number of the predictions: rows of XNLI in one language,
multiword tokens of Universal Dependencies as one word, Tatoeba's English lines sorted. None of these modules
imports TensorFlow.
"""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence

from rembert_tf.evaluation import accuracy, answer_files, files
from rembert_tf.evaluation.tasks import Task
from rembert_tf.pipelines import pair_files, retrieval_files, task_files, tsv, word_files, xtreme
from rembert_tf.pipelines.conllu import NO_TAG


def find(folder: str, task: Task, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields languages and files that may tell their labels, several times where there are several places.

    No file is read: one that holds all languages, as XNLI's does, is yielded for each of the task's.

    Args:
        folder: what a data set was unpacked into, the `data_dir` of `rembert-finetune`.
        task: the task.
        split: `test` or `dev`.

    Yields:
        A language and its files: one, of Universal Dependencies one a treebank, in XTREME's order.

    Raises:
        ValueError: the files of a language lie in two places, such as two releases of the treebanks.
    """
    for pattern in patterns(task, split):
        place = dataclasses.replace(xtreme.TASKS[task.name], files={split: (pattern,)})
        for language in task_files.languages_with_files(place, folder, split):
            yield language, tuple(map(str, task_files.find_files(place, folder, split, language)))


def patterns(task: Task, split: str) -> tuple[str, ...]:
    """Returns where the data set may lie, as in `pipelines/xtreme.py`.

    XTREME's layout is left out, and SQuAD, which XQuAD's and MLQA's models are selected by: its questions are no labels
    of theirs.
    """
    found = xtreme.TASKS[task.name].files.get(split, ())
    if task.name == "bucc2018":  # the pairs lie beside the sentences
        return tuple(pattern.removesuffix("{language}") + "gold" for pattern in found)
    return tuple(p for p in found if not p.startswith((f"{task.name}/{split}-", "squad/")))


def read(task: Task, paths: Sequence[str], language: str) -> files.Source:
    """Returns the labels: the file itself where XTREME's label file is the same, or one made of it.

    Args:
        task: the task.
        paths: files that `find` yielded.
        language: language code.

    Raises:
        files.NoLabelsError: the files tell no labels.
        ValueError: a file is not as it must be, or a label is none of the task; the message names
            file and line.
    """
    if task.kind == "question_answering":
        answer_files.read_gold_answers(paths[0])
        return paths[0]
    if task.name == "bucc2018":
        return paths[0]
    if task.kind == "classification":
        lines = _labels(task, paths[0], language)
    elif task.kind == "tagging":
        lines = _tags(task, paths, language)
    else:
        lines = _line_numbers(paths[0], language)
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return files.MadeFile(paths[0] + others, "".join(f"{line}\n" for line in lines))


def _labels_by_language(path: str) -> Mapping[str | None, list[tuple[int, str | None]]]:
    """Returns lines and labels of a file of sentence pairs, by its column of languages if it has one."""
    return _read_pairs(path, os.stat(path).st_mtime_ns)


@functools.lru_cache(maxsize=1)  # one file holds XNLI's fifteen languages
def _read_pairs(path: str, changed: int) -> Mapping[str | None, list[tuple[int, str | None]]]:
    del changed
    rows: dict[str | None, list[tuple[int, str | None]]] = {}
    for pair in pair_files.parse(path, tsv.read_lines(path))[0]:
        rows.setdefault(pair.language, []).append((pair.number, pair.label))
    return rows


def _labels(task: Task, path: str, language: str) -> list[str]:
    by_language = _labels_by_language(path)
    rows = by_language.get(language) or by_language.get(None)
    if not rows:
        raise files.NoLabelsError(f"{path}: no row of this file is in {language}.")
    labels = []
    for number, label in rows:
        if label is None:
            raise files.NoLabelsError(f"{path}:{number}: no column of labels.")
        label = task.aliases.get(label.strip(" "), label.strip(" "))
        if label not in task.labels:
            raise ValueError(accuracy.unknown_label_message(path, number, label, task.labels))
        labels.append(label)
    return labels


def _tags(task: Task, paths: Sequence[str], language: str) -> list[str]:
    lines: list[str] = []
    for path in paths:
        sentences, _ = word_files.parse(path, tsv.read_lines(path), language)
        words = [word for sentence in sentences for word in sentence]
        if words and all(word.tag in ("", NO_TAG) for word in words):
            raise files.NoLabelsError(
                f"{path}:{words[0].number}: the words of this file have no tags."
            )
        for word in words:
            if word.tag not in task.labels:
                raise ValueError(
                    accuracy.unknown_label_message(path, word.number, word.tag, task.labels)
                )
        for sentence in sentences:
            lines += [*(word.tag for word in sentence), ""]
    if not lines:
        raise files.NoLabelsError(f"{', '.join(paths)}: the words of all sentences are withheld.")
    return lines[:-1]


def _line_numbers(path: str, language: str) -> list[str]:
    (sentences,) = retrieval_files.read_sentences(pathlib.Path(path), language=language)
    if sentences.gold is None:
        raise files.NoLabelsError(
            f"{path}:1: XTREME's copy of the English lines is sorted, and no file tells which line "
            "translates which."
        )
    return [str(line) for line in sentences.gold]
