"""What a fine-tuning run reads: training examples, dev examples and labels, and never a test file."""

import dataclasses
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import logging

from rembert_tf.pipelines import held_back, task_files, xtreme
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.readers import Reader, get_reader
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32_numpy, word_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningData:
    """The data of a run.

    Attributes:
        task: the task.
        reader: the reader of its kind.
        train: examples to train on.
        dev: examples to select the best step by.
        labels: label names in the order of their ids; none for a task without classes.
        files: all files that were read for training and selection.
    """

    task: xtreme.Task
    reader: Reader
    train: list[Any]
    dev: list[Any]
    labels: tuple[str, ...]
    files: tuple[pathlib.Path, ...]


def load(config: FinetuningDataConfig) -> FinetuningData:
    """Reads the files that a configuration names.

    With `dev_fraction`, dev data are held out of the files in `train_language`; translations are trained on as a
    whole, also those of what was held out. A dev file that was found in `data_dir` is read without the examples of a
    test file that it holds; one that the user named is refused (see `held_back`).

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: a file is malformed, or has no labels; or it is a test file, by its name or by its
            content; or there is no rule by which to score answers in `train_language`.
    """
    task = xtreme.get_task(config.task)
    reader = get_reader(task.kind)
    language = config.train_language
    _check_language(task, language)
    train_files = _train_files(config, task)
    translations = _translations(config, task)
    dev_files = _dev_files(config, task)
    labels = config.labels or task.labels
    read_any = labels in ((), ("data",))

    def read(files):
        return [
            example
            for path, code in files
            for example in reader.read_examples(path, None if read_any else labels, language=code)
        ]

    train, dev = read(train_files), read(dev_files)
    if not dev_files:
        train, dev = _hold_out(train, reader, config)
    train += read(translations)
    train_paths = [path for path, _ in (*train_files, *translations)]
    dev_paths = [path for path, _ in dev_files]
    chosen = [pathlib.Path(path) for path in (*config.train_files, config.dev_file) if path]
    held_back.refuse_test_names(task, train_paths + dev_paths)
    test_files = held_back.read_test_files(task, reader, config.data_dir, chosen, language)
    held_back.refuse_test_examples(reader, train, train_paths, test_files)
    if dev_files and not config.dev_file:
        dev = held_back.without_test_examples(reader, dev, dev_paths, test_files)
    else:
        held_back.refuse_test_examples(reader, dev, dev_paths or train_paths, test_files)
    if labels == ("data",):
        labels = tuple(sorted(reader.labels_of(itertools.chain(train, dev))))
        xtreme.check_labels(task, labels)
        logging.info("%d labels in the data: %s", len(labels), ", ".join(labels))
    return FinetuningData(
        task=task,
        reader=reader,
        train=_drawn(train, config),
        dev=dev,
        labels=labels,
        files=(*train_paths, *dev_paths),
    )


def _check_language(task: xtreme.Task, language: str) -> None:
    """Raises before training what the first evaluation would: answers need a rule that splits them into words."""
    if task.kind == "question_answering" and language not in xtreme.ANSWER_LANGUAGES:
        raise ValueError(
            f"`train_language` of {task.name} must be one whose answers can be scored: "
            f"{', '.join(xtreme.ANSWER_LANGUAGES)}. Received: train_language={language!r}"
        )


def _train_files(config: FinetuningDataConfig, task: xtreme.Task) -> list[tuple[pathlib.Path, str]]:
    """Returns the training files in `train_language`, each with it."""
    language = config.train_language
    if config.train_files:
        return [(pathlib.Path(path), language) for path in config.train_files]
    found = task_files.find_files(task, config.data_dir, "train", language)
    return [(path, language) for path in found]


def _translations(
    config: FinetuningDataConfig, task: xtreme.Task
) -> list[tuple[pathlib.Path, str]]:
    """Returns the machine-translated training files, each with its language."""
    return [
        (path, code)
        for code in config.translate_train
        for path in task_files.find_files(task, config.data_dir, xtreme.TRANSLATE_TRAIN, code)
    ]


def _dev_files(config: FinetuningDataConfig, task: xtreme.Task) -> list[tuple[pathlib.Path, str]]:
    """Returns the dev files, each with its language; none where the dev data are held out."""
    language = config.train_language
    if config.dev_fraction:
        return []
    if config.dev_file:
        return [(pathlib.Path(config.dev_file), language)]
    if "dev" not in task.files:
        raise ValueError(
            f"{task.name} has no dev files: hold out a share of the training data with "
            "`dev_fraction`, or give a `dev_file`. Received: dev_fraction=0"
        )
    found = task_files.find_files(task, config.data_dir, "dev", language)
    return [(path, language) for path in found]


def _hold_out(
    examples: Sequence[Any], reader: Reader, config: FinetuningDataConfig
) -> tuple[list[Any], list[Any]]:
    """Splits examples by a hash of their group, which neither their order nor their number changes."""
    groups = [reader.inputs_of(example)[0] for example in examples]
    words = np.array([word_of(group) for group in groups], np.int64)
    bits = hash_uint32_numpy(int(Stream.DEV_FRACTION), words)
    held_out = bits < config.dev_fraction * 2**32
    train = [example for example, out in zip(examples, held_out, strict=True) if not out]
    dev = [example for example, out in zip(examples, held_out, strict=True) if out]
    if not train or not dev:
        raise ValueError(
            f"`dev_fraction` of {len(set(groups))} premises, texts or sentences leaves {len(train)} "
            f"examples to train on and {len(dev)} to select by. "
            f"Received: dev_fraction={config.dev_fraction}"
        )
    logging.info("%d examples held out as dev data, %d to train on", len(dev), len(train))
    return train, dev


def _drawn(examples: list[Any], config: FinetuningDataConfig) -> list[Any]:
    """Draws `max_train_examples`, which keep the order of the file: its start is often all alike."""
    if not 0 < config.max_train_examples < len(examples):
        return examples
    logging.info("training on %d of %d examples", config.max_train_examples, len(examples))
    generator = np.random.default_rng(config.seed)
    kept = generator.choice(len(examples), config.max_train_examples, replace=False)
    return [examples[number] for number in np.sort(kept)]
