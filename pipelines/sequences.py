"""From record files to sequences: an endless stream for training, a few batches for evaluation.

Both are made as functions of tensors that all languages share and that are traced once: a hundred languages with
functions of their own would take minutes to start.

    an epoch:  runs, in an order of its own
                -> a few of them read in turn, block of documents by block of documents
                -> sequences, shuffled in blocks of `shuffle_buffer`

How many sequences each block of documents gives is known from the index of the records, so `Epochs` finds the place of
any sequence by arithmetic, and what lies before it is not parsed.
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import record_reader
from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.record_index import RecordIndex
from rembert_tf.pipelines.record_reader import DOCUMENTS_PER_BLOCK, Run
from rembert_tf.pipelines.stateless_random import Stream, permutation

_RUNS_IN_TURN = 4


class Epochs:
    """The sequences of one language, epoch after epoch: how many there are, and where each is found.

    Attributes:
        sequences: Number of sequences in an epoch.
    """

    def __init__(self, packer: Packer, index: RecordIndex, runs: Sequence[Run]):
        """Counts the sequences.

        Args:
            packer: Cuts documents into sequences.
            index: Lengths of the documents of all runs, one run after the other.
            runs: The records.
        """
        documents = np.array([run.documents for run in runs], np.int64)
        self._blocks = -(-documents // DOCUMENTS_PER_BLOCK)
        self._run = np.repeat(np.arange(len(runs)), self._blocks)
        self._number = np.arange(len(self._run)) - np.repeat(
            np.cumsum(self._blocks) - self._blocks, self._blocks
        )
        sizes = np.minimum(
            documents[self._run] - self._number * DOCUMENTS_PER_BLOCK, DOCUMENTS_PER_BLOCK
        )
        self._counts = packer.counts(index, sizes)
        self.sequences = int(self._counts.sum())

    def place(self, order: np.ndarray, sequence: int) -> tuple[int, int, int]:
        """Finds a sequence of an epoch.

        Args:
            order: The order in which the runs are read, integers [runs].
            sequence: Number of the sequence, before they are shuffled.

        Returns:
            The number of runs, in that order, to leave out; the number of blocks of documents to leave out in each of
            the next few, which are read in turn; and the number of sequences before all that.
        """
        place_of_run = np.argsort(order)[self._run]
        group = place_of_run // _RUNS_IN_TURN
        reading_order = np.lexsort((place_of_run, self._number, group))
        before = np.cumsum(self._counts[reading_order]) - self._counts[reading_order]
        block = reading_order[np.searchsorted(before, sequence, side="right") - 1]
        in_turn = (group == group[block]) & (self._number == self._number[block])
        start = before[np.isin(reading_order, np.flatnonzero(in_turn))].min()
        return int(group[block]) * _RUNS_IN_TURN, int(self._number[block]), int(start)


def training_stream(
    packer: Packer, shuffle_buffer: int, seed: int
) -> Callable[[int, Sequence[Run], Epochs, int], tf.data.Dataset]:
    """Makes the function from the record files of a language to its sequences, for ever.

    Args:
        packer: Cuts documents into sequences.
        shuffle_buffer: Sequences in a block.
        seed: Seed of the run.

    Returns:
        A function of (word of the language, runs, their epochs, number of the first sequence), which returns a dataset
        of int32 [T].
    """

    @tf.function(
        input_signature=[
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None, 2], tf.int64),
            tf.TensorSpec([6], tf.int64),
        ],
        autograph=False,
    )
    def stream(language, paths, numbers, place):
        first_epoch, runs, blocks, sequences, shuffled, rest = tf.unstack(place)

        def epoch_of(epoch):
            is_first = tf.cast(epoch == first_epoch, tf.int64)
            order = _order(seed, language, epoch, tf.size(paths))[is_first * runs :]
            documents = _read_in_turn(
                tf.gather(paths, order), tf.gather(numbers, order), is_first * blocks
            )
            packed = documents.map(lambda block: packer.pack(*block))
            # What was left out is replaced by as many empty rows as make the borders of the shuffled blocks right.
            before = is_first * sequences
            filler = tf.zeros([before % shuffle_buffer, packer.max_seq_length], tf.int32)
            whole = tf.data.Dataset.from_tensors(filler).concatenate(packed).rebatch(shuffle_buffer)
            first = is_first * shuffled

            def shuffle(number, block):
                key = (seed, Stream.SEQUENCE_ORDER, language, epoch, first + number)
                return tf.gather(block, permutation(tf.shape(block)[0], *key))

            return whole.skip(first - before // shuffle_buffer).enumerate().map(shuffle)

        epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
        return epochs.flat_map(epoch_of).unbatch().skip(rest)

    def stream_from(word: int, runs: Sequence[Run], epochs: Epochs, sequence: int):
        epoch, sequence = divmod(sequence, epochs.sequences)
        shuffled, rest = divmod(sequence, shuffle_buffer)
        language = tf.constant(word, tf.int64)
        order = _order(seed, language, tf.constant(epoch, tf.int64), len(runs)).numpy()
        place = [epoch, *epochs.place(order, shuffled * shuffle_buffer), shuffled, rest]
        return stream(language, *record_reader.as_tensors(runs), tf.constant(place, tf.int64))

    return stream_from


def heldout_batches(packer: Packer, batch_size: int) -> Callable[..., tf.Tensor]:
    """Makes the function from the record files of a language to batches of its sequences.

    Args:
        packer: Cuts documents into sequences.
        batch_size: `B`.

    Returns:
        A function of (paths string [runs], first record and number of records int64 [runs, 2], int64 [2]: the available
        and the wanted number of sequences), which returns int32 [batches, B, T]: the wanted number, evenly spread,
        filled up with sequences that hold no piece.
    """
    empty = np.full([1, packer.max_seq_length], packer.pad_id, np.int32)
    empty[:, :2] = packer.cls_id, packer.sep_id

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None, 2], tf.int64),
            tf.TensorSpec([2], tf.int64),
        ],
        autograph=False,
    )
    def heldout(paths, numbers, wanted_of):
        available, wanted = tf.unstack(wanted_of)
        runs = tf.data.Dataset.from_tensor_slices((paths, numbers[:, 0], numbers[:, 1]))
        documents = runs.flat_map(record_reader.read_run)
        sequences = documents.map(lambda block: packer.pack(*block)).unbatch()
        # Sequence i is taken where i * wanted / available passes a whole number.
        taken = sequences.enumerate().filter(lambda i, _: i * wanted % available < wanted)
        rows = taken.map(lambda _, sequence: sequence).batch(wanted).get_single_element()
        missing = tf.cast(-wanted % batch_size, tf.int32)
        filled = tf.concat([rows, tf.tile(empty, [missing, 1])], axis=0)
        return tf.reshape(filled, [-1, batch_size, packer.max_seq_length])

    return heldout


def _order(seed: int, language: tf.Tensor, epoch: tf.Tensor, runs) -> tf.Tensor:
    """Returns the order of the runs in an epoch, int32 [runs]."""
    return permutation(runs, seed, Stream.SHARD_ORDER, language, epoch)


def _read_in_turn(paths: tf.Tensor, numbers: tf.Tensor, left_out: tf.Tensor) -> tf.data.Dataset:
    """Reads a few runs at once, one block of documents of each in turn, then the next few.

    Args:
        paths: string [runs].
        numbers: First record and number of records, int64 [runs, 2].
        left_out: How many blocks to leave out of each of the first few, int64 [].

    Returns:
        Dataset of `Documents`.
    """
    in_first_turn = tf.range(tf.size(paths)) < _RUNS_IN_TURN
    documents = tf.where(in_first_turn, left_out * DOCUMENTS_PER_BLOCK, 0)
    runs = tf.data.Dataset.from_tensor_slices(
        (paths, numbers[:, 0] + documents, tf.maximum(numbers[:, 1] - documents, 0))
    )

    def in_turn(*few):
        return tf.data.Dataset.from_tensor_slices(few).interleave(
            record_reader.read_run, cycle_length=_RUNS_IN_TURN, block_length=1
        )

    return runs.batch(_RUNS_IN_TURN).flat_map(in_turn)
