"""From batches of sequences to the features, labels and weights that a masked language model is trained on."""

from collections.abc import Callable

import tensorflow as tf

from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.masking import DynamicMasking
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_PIECES_AT_ONCE = 1 << 16


def batches_at_once(config: PretrainingDataConfig) -> int:
    """Returns how many batches are best masked together: of a small one, calling the operations is most of the cost."""
    return max(1, _PIECES_AT_ONCE // (config.batch_size * config.max_seq_length))


def batch_function(
    config: PretrainingDataConfig, tokenizer: RemBertTokenizer, *, seed: int, rows: range
) -> Callable:
    """Makes the function from sequences to masked batches; a batch does not depend on those beside it.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        seed: Seed of masks and dropout.
        rows: Which rows of each batch to make.

    Returns:
        A function of (batch numbers int64 [K], sequences int32 [K, rows, T]), which returns features, labels and
        weights as `make_pretraining_dataset` says, each `[K, ...]`.
    """
    masking = DynamicMasking.of(config, tokenizer, seed=seed)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int64),
            tf.TensorSpec([None, len(rows), config.max_seq_length], tf.int32),
        ],
        autograph=False,
    )
    def to_batches(numbers, sequences):
        examples = numbers[:, tf.newaxis] * config.batch_size + tf.range(
            rows.start, rows.stop, dtype=tf.int64
        )
        examples = tf.reshape(examples, [-1])
        sequences = tf.reshape(sequences, [-1, config.max_seq_length])
        masked = masking(sequences, examples)
        features = {
            "input_ids": masked["input_ids"],
            "attention_mask": tf.cast(sequences != tokenizer.pad_id, tf.int32),
            "token_type_ids": tf.zeros_like(sequences),
            "masked_lm_positions": masked["masked_lm_positions"],
            "dropout_keys": hash_uint32(seed, Stream.DROPOUT, examples),
        }
        made = features, masked["masked_lm_ids"], masked["masked_lm_weights"]
        return tf.nest.map_structure(
            lambda part: tf.reshape(part, [-1, len(rows), *part.shape[1:]]), made
        )

    return to_batches


def rows_of_worker(batch_size: int, worker: int, workers: int) -> range:
    """Returns the rows of each batch that a worker makes.

    The rows of all workers are disjoint and cover the batch, as evenly as can be.

    Args:
        batch_size: `B`.
        worker: Number of the worker, from 0.
        workers: Number of workers.

    Returns:
        The rows.

    Raises:
        ValueError: There is no such worker, or a batch has fewer rows than there are workers.

    Example:
        >>> [rows_of_worker(10, worker, 3) for worker in range(3)]
        [range(0, 3), range(3, 6), range(6, 10)]
    """
    if not 0 <= worker < workers:
        raise ValueError(
            f"`worker` must be from 0 to workers - 1. Received: worker={worker}, workers={workers}"
        )
    if workers > batch_size:
        raise ValueError(
            f"`workers` must not exceed the rows of a batch, {batch_size}. Received: workers={workers}"
        )
    return range(worker * batch_size // workers, (worker + 1) * batch_size // workers)


def check_rows(batch_size: int, rows: list[range]):
    """Checks what workers say they make: disjoint rows that cover the batch.

    Args:
        batch_size: `B`.
        rows: The rows of each worker.

    Raises:
        ValueError: A row is made twice or by none.

    Example:
        >>> check_rows(4, [range(0, 2), range(2, 4)])
    """
    made = [0] * batch_size
    for row in (row for part in rows for row in part):
        if not 0 <= row < batch_size:
            raise ValueError(f"Row {row} is none of a batch of {batch_size}. Received: rows={rows}")
        made[row] += 1
    for row, times in enumerate(made):
        if times != 1:
            raise ValueError(
                f"Each row of a batch must be made by one worker; row {row} is made by {times}. "
                f"Received: rows={rows}"
            )
