"""From record files to blocks of documents; a record that cannot be read shows, with file and offset, or is skipped.

A run is a number of readable records that follow each other in a file: all of them, where nothing is damaged.
TensorFlow's own error for a damaged record names no file, and its `ignore_errors` loses the rest of the file without a
word. Here each block knows how many records it must have.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

DOCUMENTS_PER_BLOCK = 256

_DAMAGED = re.compile(r"\[damaged record (\d+) of ([^\]]+)\]")
_OFFSET = re.compile(r"(?:corrupted|truncated) record at (\d+)")


class Run(NamedTuple):
    """Readable records that follow each other in a file.

    Attributes:
        path: The file.
        first: Number of the first one in the file.
        documents: How many there are.
    """

    path: str
    first: int
    documents: int


class Documents(NamedTuple):
    """A block of documents.

    Attributes:
        input_ids: Ragged int32 [documents, (pieces)].
        sentence_lengths: Pieces of each sentence, ragged int32 [documents, (sentences)].
    """

    input_ids: tf.RaggedTensor
    sentence_lengths: tf.RaggedTensor


def as_tensors(runs: Sequence[Run]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the paths, string [runs], and the first record and number of records, int64 [runs, 2]."""
    numbers = [[run.first, run.documents] for run in runs]
    return (
        tf.constant([run.path for run in runs], tf.string),
        tf.reshape(tf.constant(numbers, tf.int64), [-1, 2]),
    )


def read_run(path: tf.Tensor, first: tf.Tensor, documents: tf.Tensor) -> tf.data.Dataset:
    """Reads a run.

    Args:
        path: The file, string [].
        first: Its first record to read, int64 []. What is passed over costs next to nothing, and may be damaged.
        documents: How many to read, int64 [].

    Returns:
        Dataset of `Documents`, blocks of `DOCUMENTS_PER_BLOCK`. Where a record is damaged, iterating fails with
        `tf.errors.InvalidArgumentError`, which names file and record; see `naming_damage`.
    """
    found = tf.data.TFRecordDataset(path).skip(first).take(documents)
    blocks = found.ignore_errors(log_warning=False).batch(DOCUMENTS_PER_BLOCK)
    missing = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string)).repeat()
    starts = tf.data.Dataset.range(0, documents, DOCUMENTS_PER_BLOCK)

    def parse(start, serialized):
        expected = tf.minimum(documents - start, DOCUMENTS_PER_BLOCK)
        read = tf.size(serialized, tf.int64)
        number = tf.strings.as_string(first + start + read)
        report = tf.strings.join(["damaged record ", number, " of ", path])
        with tf.control_dependencies([tf.debugging.Assert(read == expected, [report])]):
            serialized = tf.identity(serialized)
        names = Documents._fields
        features = tf.io.parse_example(
            serialized, {name: tf.io.RaggedFeature(tf.int64) for name in names}
        )
        return Documents(*(tf.cast(features[name], tf.int32) for name in names))

    return tf.data.Dataset.zip(starts, blocks.concatenate(missing)).map(parse)


@contextlib.contextmanager
def naming_damage() -> Iterator[None]:
    """Turns the error of a damaged record into a ValueError of one line.

    It says "PATH: record 17, at byte 4711: damaged". Put it around whatever iterates over the records, a whole `fit` if
    need be.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if found := _DAMAGED.search(str(error)):
            number, path = int(found[1]), found[2]
            raise ValueError(
                f"{path}: record {number}{at_byte(path, number)}: damaged. Build the records anew, or pass over it "
                "with --skip_damaged."
            ) from error
        raise


def readable_runs(run: Run) -> list[Run]:
    """Finds the records of a run that can be read, by reading all of them.

    A record whose content is damaged is passed over; where its length is, the file cannot be followed further.

    Returns:
        Shorter runs, in order; `run` itself where nothing is damaged.
    """
    runs, start, end, before = [], run.first, run.first + run.documents, None
    while start < end:
        records = tf.data.TFRecordDataset(run.path).skip(start).take(end - start)
        blocks = records.ignore_errors(log_warning=False).batch(DOCUMENTS_PER_BLOCK)
        if count := sum(len(block) for block in blocks.as_numpy_iterator()):
            runs.append(Run(run.path, start, count))
            start += count
        if start < end:
            offset = _damage_at(run.path, start)
            if (
                offset is None or offset == before
            ):  # the end of the file; or of what can be followed
                break
            before = offset
            start += 1
    return runs


def at_byte(path: str, number: int) -> str:
    """Returns ", at byte N", where reading record `number` of a file fails; nothing where the file just ends."""
    offset = _damage_at(path, number)
    return "" if offset is None else f", at byte {offset}"


def _damage_at(path: str, number: int) -> int | None:
    try:
        for _ in tf.data.TFRecordDataset(path).skip(number).take(1):
            pass
    except (tf.errors.DataLossError, tf.errors.OutOfRangeError) as error:
        found = _OFFSET.search(str(error))
        return int(found[1]) if found else 0
    return None
