"""The simplest model of each language, to hold a masked language model against."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.readable_records import open_records
from rembert_tf.pipelines.tokenization import RemBertTokenizer


class BaselineScore(NamedTuple):
    """How well a language's own unigrams predict its masked pieces.

    Attributes:
        cross_entropy: Mean of -ln p over the predictions, in nats.
        accuracy: Share of the predictions that are the most frequent piece.
        predictions: Number of predictions.
    """

    cross_entropy: float
    accuracy: float
    predictions: int


def unigram_baseline(
    config: PretrainingDataConfig, tokenizer: RemBertTokenizer, datasets: dict[str, tf.data.Dataset]
) -> dict[str, BaselineScore]:
    """Scores the simplest model at the very positions of the evaluation: how frequent a piece is in its language.

    The counts are those of the training documents, plus one for each ordinary piece.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        datasets: What `make_evaluation_datasets` returned.

    Returns:
        Scores by language.
    """
    manifest = open_records(config, tokenizer)
    scores = {}
    for language, dataset in datasets.items():
        smoothed = np.zeros(tokenizer.vocab_size)
        ordinary = tokenizer.ordinary_ids
        smoothed[ordinary] = manifest.unigram_counts(language)[ordinary] + 1.0
        labels = np.concatenate(
            [labels[weights > 0] for _, labels, weights in dataset.as_numpy_iterator()]
        )
        total = max(1, len(labels))
        scores[language] = BaselineScore(
            cross_entropy=float(np.sum(np.log(smoothed.sum()) - np.log(smoothed[labels])) / total),
            accuracy=float(np.sum(labels == np.argmax(smoothed)) / total),
            predictions=len(labels),
        )
    return scores
