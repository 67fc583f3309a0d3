"""Batches for fine-tuning and prediction, drawn from features that lie in memory.

Training: the batch of step `s` is a pure function of (seed, `s`, data). Example `n` of the run is
row `shuffle_e(n mod N)` of epoch `e = n // N`, where `shuffle_e` is a permutation that is computed
for one number at a time. The examples of a window of batches are sorted by length before they are
cut into batches, and the batches of a window are shuffled again; no window reaches from one epoch
into the next. So a resumed run starts at any batch at once, and nothing is skipped, buffered or left
out: a batch may hold the end of one epoch and the first examples of the next.

Prediction: rows of similar length share a batch, and `restore` puts the results back in order.
"""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.features import Features, ranges
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32, permutation

# Batches are padded to a multiple of this: few different shapes, and none of them odd.
LENGTH_MULTIPLE = 8


def num_training_batches(num_rows: int, batch_size: int, epochs: float) -> int:
    """Returns how many batches it takes to see each of `num_rows` rows `epochs` times."""
    return math.ceil(epochs * num_rows / batch_size)


def make_training_dataset(
    features: Features, config: FinetuningDataConfig, *, start_batch: int = 0
) -> tf.data.Dataset:
    """Makes an endless dataset of training batches.

    Args:
        features: labelled features.
        config: batch size, padding and seed.
        start_batch: number of the first batch; a resumed run gives the one it stopped at.

    Returns:
        A dataset of `(features, labels, sample_weights)`: a dict of `input_ids`, `attention_mask`
        and `token_type_ids`, int32 `[B, T]`, and `dropout_keys`, uint32 `[B]`; labels int32 and
        weights float32, `[B, T]` for tagging and `[B]` for classification.

    Raises:
        ValueError: no row, or no label.
    """
    if not features.sample_weights.any():
        raise ValueError(
            "`features` must have labels to train on. "
            f"Received: {features.num_rows} rows without any label"
        )
    padder = _Padder(features, pad_to=config.max_seq_length if config.pad_to_max else None)
    plan = _BatchPlan(features, config)

    def make_batch(batch_number):
        examples, rows = plan(batch_number)
        inputs, labels, sample_weights = padder(rows)
        inputs["dropout_keys"] = hash_uint32(config.seed, Stream.DROPOUT, examples)
        return inputs, labels, sample_weights

    dataset = tf.data.Dataset.counter(start_batch).map(
        make_batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
    options = tf.data.Options()
    # There are no files to share out among workers: each takes its part of every batch.
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options).prefetch(tf.data.AUTOTUNE)


class _BatchPlan:
    """Which examples make up a batch: a pure function of its number.

    Epoch `e` begins at batch `ceil(e N / B)`, the first one whose first example is in it. Windows are
    counted from there, so a whole number of epochs ends with a whole window.
    """

    def __init__(self, features: Features, config: FinetuningDataConfig):
        self._num_rows = features.num_rows
        self._batch_size = config.batch_size
        # A window is at most an eighth of an epoch: sorted by length as a whole, a small data set would make batches
        # of like examples. Padded to one length, sequences need no company of their own length.
        eighth = max(1, self._num_rows // (8 * self._batch_size))
        self._window = 1 if config.pad_to_max else min(config.bucket_batches, eighth)
        self._seed = config.seed
        self._row_lengths = tf.constant(features.row_lengths, tf.int32)

    def __call__(self, batch_number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the numbers of the examples of a batch and their rows, int64 `[B]` each."""
        size = self._batch_size
        if self._window == 1:
            examples = batch_number * size + tf.range(size, dtype=tf.int64)
            return examples, self._rows(examples)
        epoch = batch_number * size // self._num_rows
        start = self._first_batch(epoch)
        first = start + (batch_number - start) // self._window * self._window
        end = tf.minimum(first + self._window, self._first_batch(epoch + 1))
        examples = tf.range(first * size, end * size)
        rows = self._rows(examples)
        # Among equals the shuffled order stays: which rows meet in a batch differs in every epoch.
        order = tf.argsort(tf.gather(self._row_lengths, rows), stable=True)
        batches = permutation(tf.cast(end - first, tf.int32), self._seed, Stream.BATCH_ORDER, first)
        chosen = tf.reshape(order, [-1, size])[batches[batch_number - first]]
        return tf.gather(examples, chosen), tf.gather(rows, chosen)

    def _first_batch(self, epoch: tf.Tensor) -> tf.Tensor:
        return -(-epoch * self._num_rows // self._batch_size)

    def _rows(self, examples: tf.Tensor) -> tf.Tensor:
        """Returns the row of each example: every epoch is a permutation of its own, int64."""
        epochs = examples // self._num_rows
        ones = tf.ones_like(epochs)
        # The public `tf.random.experimental.index_shuffle` takes one seed for all numbers only.
        return tf.raw_ops.RandomIndexShuffle(
            index=examples % self._num_rows,
            seed=tf.stack([ones * int(Stream.SEQUENCE_ORDER), ones * self._seed, epochs], axis=1),
            max_index=tf.constant(self._num_rows - 1, tf.int64),
            rounds=4,
        )


@dataclasses.dataclass(frozen=True)
class InferenceBatches:
    """Batches of similar length, and the way back to the order of the features.

    Attributes:
        dataset: batches of `(features, labels, sample_weights)`, without `dropout_keys`. The last
            one is filled up with copies of its last row at weight 0.
        features: what the batches were made of.
        rows_of_batch: the rows that each batch holds, in its order, int64 `[<= B]` each.
    """

    dataset: tf.data.Dataset
    features: Features
    rows_of_batch: list[np.ndarray]

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.rows_of_batch)

    def restore(self, outputs: Iterable[np.ndarray]) -> np.ndarray:
        """Puts what a model returned for each batch into the order of the features.

        Args:
            outputs: one array a batch, in order: `[B, T, ...]` where outputs belong to positions,
                `[B, ...]` where they belong to rows.

        Returns:
            `[S, ...]` or `[R, ...]`: padding is gone, and rows that only filled the last batch too.

        Raises:
            ValueError: not one output a batch.
        """
        outputs = list(outputs)
        if len(outputs) != len(self):
            raise ValueError(
                "`outputs` must hold one array for each batch. "
                f"Received: {len(outputs)} arrays for {len(self)} batches"
            )
        by_position = self.features.outputs_belong_to == "positions"
        lengths = self.features.row_lengths
        parts = []
        for rows, output in zip(self.rows_of_batch, outputs, strict=True):
            output = np.asarray(output)[: len(rows)]
            if by_position:
                output = output[np.arange(output.shape[1]) < lengths[rows, np.newaxis]]
            parts.append(output)
        rows = np.concatenate(self.rows_of_batch)
        if by_position:
            rows = ranges(self.features.row_splits[rows], lengths[rows])
        joined = np.concatenate(parts)
        restored = np.empty_like(joined)
        restored[rows] = joined
        return restored


def make_inference_dataset(
    features: Features, batch_size: int, *, pad_to: int | None = None
) -> InferenceBatches:
    """Makes batches that hold each row once, the longest rows first.

    Args:
        features: labelled or not.
        batch_size: rows in a batch; fewer if there are fewer in all and shapes may vary.
        pad_to: pad every batch to this length (for TPUs); `None` pads to its longest row.

    Returns:
        The batches with the way back, for example:
        `batches.restore(model.predict_on_batch(inputs) for inputs, _, _ in batches.dataset)`.

    Raises:
        ValueError: `batch_size` below 1, or no row.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
    if not features.num_rows:
        raise ValueError("`features` must have rows to predict. Received: 0 rows")
    if pad_to is None:
        batch_size = min(batch_size, features.num_rows)
    # Longest first: what does not fit into memory shows at once, and progress never slows down.
    order = np.argsort(-features.row_lengths, kind="stable")
    rows_of_batch = np.split(order, np.arange(batch_size, len(order), batch_size))
    filled = np.full((len(rows_of_batch), batch_size), order[-1])
    filled.flat[: len(order)] = order
    is_row = np.arange(filled.size).reshape(filled.shape) < len(order)
    padder = _Padder(features, pad_to=pad_to)

    def make_batch(rows, is_row):
        inputs, labels, sample_weights = padder(rows)
        counts = tf.cast(is_row, tf.float32)
        if features.labels_belong_to == "positions":
            counts = counts[:, tf.newaxis]
        return inputs, labels, sample_weights * counts

    dataset = tf.data.Dataset.from_tensor_slices((filled, is_row)).map(
        make_batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
    return InferenceBatches(dataset.prefetch(tf.data.AUTOTUNE), features, rows_of_batch)


class _Padder:
    """Gathers rows by number into padded batches; every array is held by TensorFlow once.

    Args:
        features: the rows.
        pad_to: length of each batch; `None` for its longest row, rounded up to `LENGTH_MULTIPLE`.
    """

    def __init__(self, features: Features, pad_to: int | None):
        self._pad_to = pad_to
        self._pad_id = features.pad_id
        self._by_position = features.labels_belong_to == "positions"
        self._starts = tf.constant(features.row_splits[:-1])
        self._lengths = tf.constant(features.row_lengths)
        self._input_ids = tf.constant(features.input_ids)
        self._token_type_ids = tf.constant(features.token_type_ids)
        self._labels = tf.constant(features.labels)
        self._sample_weights = tf.constant(features.sample_weights)

    def __call__(self, rows: tf.Tensor):
        """Returns `(features, labels, sample_weights)` of rows, int64 `[B]`."""
        lengths = tf.gather(self._lengths, rows)[:, tf.newaxis]
        length = self._pad_to
        if length is None:
            length = -(-tf.reduce_max(lengths) // LENGTH_MULTIPLE) * LENGTH_MULTIPLE
        columns = tf.range(length, dtype=tf.int64)
        is_real = columns < lengths
        where = tf.where(is_real, tf.gather(self._starts, rows)[:, tf.newaxis] + columns, 0)

        def gather(values, padding=0):
            return tf.where(is_real, tf.gather(values, where), tf.cast(padding, values.dtype))

        inputs = {
            "input_ids": gather(self._input_ids, self._pad_id),
            "attention_mask": tf.cast(is_real, tf.int32),
            "token_type_ids": gather(self._token_type_ids),
        }
        if self._by_position:
            return inputs, gather(self._labels), gather(self._sample_weights)
        return inputs, tf.gather(self._labels, rows), tf.gather(self._sample_weights, rows)
