"""One reader a kind of task: what turns its files into features and predictions into files."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from absl import logging

from rembert_tf.pipelines import classification, features, tagging, xtreme

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


class Reader(NamedTuple):
    """The four functions of one kind of task; each module documents its own.

    Attributes:
        read_examples: `(path, labels)` to a list of examples.
        make_features: `(examples, tokenizer, labels, max_seq_length)` to features.
        predictions: `(features, ids or logits)` to one prediction an example.
        write_predictions: `(path, predictions)` writes them in XTREME's layout.
    """

    read_examples: Callable[..., list[Any]]
    make_features: Callable[..., features.Features]
    predictions: Callable[..., list[Any]]
    write_predictions: Callable[..., None]


READERS = {
    "tagging": Reader(
        tagging.read_sentences,
        tagging.make_features,
        tagging.predicted_tags,
        tagging.write_predictions,
    ),
    "classification": Reader(
        classification.read_pairs,
        classification.make_features,
        classification.predicted_labels,
        classification.write_predictions,
    ),
}


def load_features(
    task: xtreme.Task,
    path: str | os.PathLike,
    tokenizer: "RemBertTokenizer",
    max_seq_length: int,
    *,
    max_examples: int = 0,
    seed: int = 0,
) -> features.Features:
    """Reads one file of a task and makes its features.

    Args:
        task: the task.
        path: a file of the task.
        tokenizer: the tokenizer.
        max_seq_length: longest row, special pieces included.
        max_examples: keep this many examples (sentences, pairs), drawn by `seed` and left in the
            order of the file, since the start of a file is often all of one source; 0 keeps all.
        seed: seed of that draw.

    Returns:
        The features of the task's kind.
    """
    reader = READERS[task.kind]
    examples = reader.read_examples(path, task.labels)
    if 0 < max_examples < len(examples):
        logging.info("%s: keeping %d of %d examples", path, max_examples, len(examples))
        kept = np.random.default_rng(seed).choice(len(examples), max_examples, replace=False)
        examples = [examples[number] for number in np.sort(kept)]
    return reader.make_features(examples, tokenizer, task.labels, max_seq_length)
