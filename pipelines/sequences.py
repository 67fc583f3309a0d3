"""From record files to sequences: an endless stream for training, a few batches for evaluation.

Both are made as functions of tensors that all languages share and that are traced once: a hundred languages with
functions of their own would take minutes to start.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import records
from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.stateless_random import Stream, permutation


def training_stream(
    packer: Packer, shuffle_buffer: int, seed: int
) -> Callable[..., tf.data.Dataset]:
    """Makes the function from the record files of a language to its sequences, for ever.

    Each epoch opens the files in another order and shuffles the sequences in blocks.

    Args:
        packer: Cuts documents into sequences.
        shuffle_buffer: Sequences in a block.
        seed: Seed of the run.

    Returns:
        A function of (word of the language int64 [], paths string [shards], numbers of documents int64 [shards], place
        int64 [2]: the epoch and the sequence in it to begin with), which returns a dataset of int32 [T].
    """

    @tf.function(
        input_signature=[
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None], tf.int64),
            tf.TensorSpec([2], tf.int64),
        ],
        autograph=False,
    )
    def stream(language, paths, documents, place):
        def epoch_of(epoch):
            order = permutation(tf.size(paths), seed, Stream.SHARD_ORDER, language, epoch)
            documents_read = records.read(paths, documents, order)
            blocks = packer.pack(documents_read).rebatch(shuffle_buffer).enumerate()

            def shuffle(number, block):
                key = (seed, Stream.SEQUENCE_ORDER, language, epoch, number)
                return tf.gather(block, permutation(tf.shape(block)[0], *key))

            return blocks.map(shuffle)

        epoch, sequence = tf.unstack(place)
        return (
            tf.data.Dataset.range(epoch, tf.int64.max).flat_map(epoch_of).unbatch().skip(sequence)
        )

    return stream


def heldout_batches(packer: Packer, batch_size: int) -> Callable[..., tf.Tensor]:
    """Makes the function from the record files of a language to batches of its sequences.

    Args:
        packer: Cuts documents into sequences.
        batch_size: `B`.

    Returns:
        A function of (paths string [shards], numbers of documents int64 [shards], int64 [2]: the available and the
        wanted number of sequences), which returns int32 [batches, B, T]: the wanted number, evenly spread, filled up
        with sequences that hold no piece.
    """
    empty = np.full([1, packer.max_seq_length], packer.pad_id, np.int32)
    empty[:, :2] = packer.cls_id, packer.sep_id

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None], tf.int64),
            tf.TensorSpec([2], tf.int64),
        ],
        autograph=False,
    )
    def heldout(paths, documents, numbers):
        available, wanted = tf.unstack(numbers)
        sequences = packer.pack(records.read(paths, documents)).unbatch()
        # Sequence i is taken where i * wanted / available passes a whole number.
        taken = sequences.enumerate().filter(lambda i, _: i * wanted % available < wanted)
        rows = taken.map(lambda _, sequence: sequence).batch(wanted).get_single_element()
        missing = tf.cast(-wanted % batch_size, tf.int32)
        filled = tf.concat([rows, tf.tile(empty, [missing, 1])], axis=0)
        return tf.reshape(filled, [-1, batch_size, packer.max_seq_length])

    return heldout
