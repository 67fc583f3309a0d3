"""The share of the pieces that is masked, measured before a run begins: with none, it would train on nothing."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.pipelines import record_reader
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.record_reader import Run

_SEQUENCES = 128


class MaskedShare:
    """Counts the pieces of batches and those of them that are masked."""

    def __init__(self):
        """Begins with nothing."""
        self._pieces = self._predictions = 0

    def add(self, attention_mask: tf.Tensor, weights: tf.Tensor):
        """Counts the pieces of sequences, [CLS] and [SEP] left out.

        Args:
            attention_mask: int32 [..., T].
            weights: Of the predictions, float32 [..., P].
        """
        self._pieces += int(np.sum(attention_mask)) - 2 * attention_mask.shape[:-1].num_elements()
        self._predictions += int(np.sum(weights))

    def check(self, config: PretrainingDataConfig, of: str):
        """Logs the share.

        Args:
            config: The settings.
            of: What was counted: "training" or "held-out" pieces.

        Raises:
            ValueError: It is 0.
        """
        share = 100 * self._predictions / max(1, self._pieces)
        logging.info("%.2f %% of %d %s pieces are masked.", share, self._pieces, of)
        if not self._predictions:
            raise ValueError(
                f"{config.records_dir}: none of {self._pieces} {of} pieces is masked: no word is short enough. "
                f"Received: masking={config.masking!r}, masking_rate={config.masking_rate}"
            )


def check_training(
    config: PretrainingDataConfig,
    packer: Packer,
    runs: Sequence[Run],
    to_batches: Callable,
    rows: int,
):
    """Masks a few sequences from the beginning of each language, and logs the share.

    Args:
        config: The settings.
        packer: Cuts documents into sequences.
        runs: The first run of each language.
        to_batches: What `batch_function` made.
        rows: Rows that it takes.

    Raises:
        OSError: A file cannot be read.
        ValueError: Nothing is masked, or a record is damaged.
    """
    few = -(-_SEQUENCES // len(runs))
    begins = [run._replace(documents=min(few, run.documents)) for run in runs]
    paths, numbers = record_reader.as_tensors(begins)
    documents = tf.data.Dataset.from_tensor_slices((paths, numbers[:, 0], numbers[:, 1])).flat_map(
        record_reader.read_run
    )
    sequences = documents.map(lambda block: packer.pack(*block)[:few]).unbatch().repeat()
    share = MaskedShare()
    with record_reader.naming_damage():
        batches = sequences.batch(rows).batch(-(-_SEQUENCES // rows))
        for several in batches.take(1):
            features, _, weights = to_batches(tf.range(len(several), dtype=tf.int64), several)
            share.add(features["attention_mask"], weights)
    share.check(config, "training")
