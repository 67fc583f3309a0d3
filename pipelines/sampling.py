"""Which language the next example comes from.

A language with n sentences gets the share q ∝ (n / Σn)^α (Chung et al. 2021, A.2, with α = 0.5):
α = 1 follows the data, α = 0 treats all languages alike. The language of example number i is a pure
function of (seed, i), the same in NumPy and in TensorFlow, so any part of a run can be planned,
counted or resumed without reading data.
"""

import os
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from rembert_tf import atomic_files
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32, hash_uint32_numpy

_CHUNK = 1 << 20


def shares(sentences: Mapping[str, int], alpha: float) -> dict[str, float]:
    """Computes the share of each language.

    Args:
        sentences: Sentences by language, all positive.
        alpha: Exponent, 0 to 1.

    Returns:
        Shares by language; they sum to 1.

    Raises:
        ValueError: There is no language, or one without sentences.

    Example:
        >>> shares({"en": 900, "sw": 100}, alpha=0.5)
        {'en': 0.75, 'sw': 0.25}
    """
    empty = [f"{language}={count}" for language, count in sentences.items() if count <= 0]
    if empty or not sentences:
        raise ValueError(
            "`sentences` must be positive for every language, and there must be one. "
            f"Received: {', '.join(empty) or 'sentences={}'}"
        )
    counts = np.array(list(sentences.values()), np.float64)
    weights = (counts / counts.sum()) ** alpha
    return dict(zip(sentences, (weights / weights.sum()).tolist(), strict=True))


def language_of_example(
    seed: int, example_numbers: tf.Tensor, planned: Mapping[str, float]
) -> tf.Tensor:
    """Draws languages, in TensorFlow.

    Args:
        seed: Seed of the run.
        example_numbers: int64 [n].
        planned: Shares by language.

    Returns:
        Index of the language in the order of `planned`, int64 [n].
    """
    draws = tf.cast(hash_uint32(seed, Stream.LANGUAGE, example_numbers), tf.int64)
    return tf.searchsorted(tf.constant(_limits(planned)), draws, side="right", out_type=tf.int64)


def language_of_example_numpy(
    seed: int, example_numbers: np.ndarray, planned: Mapping[str, float]
) -> np.ndarray:
    """Draws languages, in NumPy: the same as `language_of_example`."""
    draws = hash_uint32_numpy(seed, Stream.LANGUAGE, example_numbers).astype(np.int64)
    return np.searchsorted(_limits(planned), draws, side="right")


def counts(seed: int, examples: int, planned: Mapping[str, float]) -> dict[str, int]:
    """Counts how often each language is drawn in the first examples of a run.

    Args:
        seed: Seed of the run.
        examples: Number of examples.
        planned: Shares by language.

    Returns:
        Draws by language.
    """
    total = np.zeros(len(planned), np.int64)
    for start in range(0, examples, _CHUNK):
        numbers = np.arange(start, min(examples, start + _CHUNK))
        total += np.bincount(
            language_of_example_numpy(seed, numbers, planned), minlength=len(planned)
        )
    return dict(zip(planned, total.tolist(), strict=True))


def write_report(
    path: str | os.PathLike, *, sentences: Mapping[str, int], alpha: float, seed: int, examples: int
) -> dict:
    """Writes planned and observed shares as JSON.

    Args:
        path: The file.
        sentences: Sentences by language.
        alpha: Exponent.
        seed: Seed of the run.
        examples: Number of examples that were drawn.

    Returns:
        What was written.
    """
    planned = shares(sentences, alpha)
    drawn = counts(seed, examples, planned)
    report = {
        "language_alpha": alpha,
        "examples": examples,
        "languages": {
            language: {
                "sentences": sentences[language],
                "planned_share": share,
                "observed_share": drawn[language] / examples if examples else None,
                "observed_examples": drawn[language],
            }
            for language, share in planned.items()
        },
    }
    atomic_files.write_json(path, report)
    return report


def _limits(planned: Mapping[str, float]) -> np.ndarray:
    """Returns the inner borders of the languages on the scale of a 32-bit hash, int64 [languages - 1]."""
    return np.round(np.cumsum(list(planned.values()))[:-1] * 2.0**32).astype(np.int64)
