"""From record files to blocks of documents; a record that cannot be read shows, with file and offset, or is skipped.

A run is a number of readable records that follow each other in a file: all of them, where nothing is damaged.
TensorFlow's own error for a damaged record names no file, and its `ignore_errors` loses the rest of the file without a
word, and never ends where the file cannot be opened. Here each block knows how many records it must have, and each file
is opened once beforehand.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

DOCUMENTS_PER_BLOCK = 256

_DAMAGED = re.compile(r"\[damaged record (\d+) of (.+)\]")  # a path may hold brackets too
_UNREADABLE = re.compile(
    r"([^{}\n]+); (No such file or directory|Permission denied|Is a directory)"
)
_OUT_OF_TURN = re.compile(r"\[(The tf\.data service .+)\]")  # of data_service.in_order
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
        `tf.errors.InvalidArgumentError`, which names file and record; where the file cannot be opened, with another
        `tf.errors.OpError`, which names the file; see `naming_damage`.
    """
    found = tf.data.TFRecordDataset(path).skip(first).take(documents)
    blocks = found.ignore_errors(log_warning=False).batch(DOCUMENTS_PER_BLOCK)
    missing = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string)).repeat()
    # A block with a record that is no document is lost here: the number of the next one is not the one that is due.
    parsed = blocks.concatenate(missing).enumerate().map(
        lambda number, serialized: (number, tf.size(serialized, tf.int64), _parse(serialized))
    ).ignore_errors(log_warning=False)  # fmt: skip
    starts = tf.data.Dataset.range(0, documents, DOCUMENTS_PER_BLOCK)

    def check(start, block):
        number, size, found = block
        expected = tf.minimum(documents - start, DOCUMENTS_PER_BLOCK)
        read = tf.where(number * DOCUMENTS_PER_BLOCK == start, size, 0)
        record = tf.strings.as_string(first + start + read)
        report = tf.strings.join(["damaged record ", record, " of ", path])
        with tf.control_dependencies([tf.debugging.Assert(read == expected, [report])]):
            return tf.nest.map_structure(tf.identity, found, expand_composites=True)

    checked = tf.data.Dataset.zip(starts, parsed).map(check)
    # Not by one more input of the zip: it goes on to ask the others, of which one would never end.
    return _once_opened(path).flat_map(lambda _: checked)


def check_files(paths: Iterable[str]):
    """Opens each file once.

    Raises:
        OSError: One is absent or cannot be read.
    """
    for path in paths:
        with open(path, "rb") as file:
            file.read(1)


@contextlib.contextmanager
def naming_damage() -> Iterator[None]:
    """Turns the error of a damaged record into a ValueError of one line.

    It says "PATH: record 17, at byte 4711: damaged". A file that cannot be opened becomes an OSError; a batch that a
    tf.data service gives out of turn, a ValueError. Put it around whatever iterates over the records, a whole `fit` if
    need be.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if found := _DAMAGED.search(str(error)):
            path, number = found[2], _first_damaged(found[2], int(found[1]))
            raise ValueError(
                f"{path}: record {number}{at_byte(path, number)}: damaged. Build the records anew, or pass over it "
                "with --skip_damaged."
            ) from error
        if found := _UNREADABLE.search(str(error)):
            raise OSError(f"{found[1].strip()}: cannot be read: {found[2]}") from error
        if found := _OUT_OF_TURN.search(str(error)):
            raise ValueError(found[1]) from error
        raise


def readable_runs(run: Run) -> list[Run]:
    """Finds the records of a run that can be read, by reading all of them.

    A record whose content is damaged or is no document is passed over; where its length is damaged, the file cannot be
    followed further.

    Returns:
        Shorter runs, in order; `run` itself where nothing is damaged.

    Raises:
        OSError: The file is absent or cannot be read.
    """
    check_files([run.path])
    runs, start, end, before = [], run.first, run.first + run.documents, None
    while start < end:
        count, is_document = _count_documents(run.path, start, end)
        if count:
            runs.append(Run(run.path, start, count))
            start += count
        if not is_document:
            start += 1
        elif start < end:
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
    except tf.errors.OpError as error:
        found = _OFFSET.search(str(error))
        return int(found[1]) if found else 0
    return None


def _once_opened(path: tf.Tensor) -> tf.data.Dataset:
    """Returns a dataset of one element, string []; iterating fails where the file cannot be opened."""
    opened = tf.data.FixedLengthRecordDataset(path, record_bytes=1, buffer_size=1).take(1)
    return opened.filter(lambda _: tf.constant(False)).concatenate(
        tf.data.Dataset.from_tensors(path)
    )


def _parse(serialized: tf.Tensor) -> Documents:
    """Parses records, string [documents]."""
    names = Documents._fields
    features = tf.io.parse_example(
        serialized, {name: tf.io.RaggedFeature(tf.int64) for name in names}
    )
    return Documents(*(tf.cast(features[name], tf.int32) for name in names))


def _count_documents(path: str, start: int, end: int) -> tuple[int, bool]:
    """Returns how many records from `start` on are readable documents, and False where a readable other one follows."""
    records = tf.data.TFRecordDataset(path).skip(start).take(end - start)
    blocks = records.ignore_errors(log_warning=False).batch(DOCUMENTS_PER_BLOCK)
    count = 0
    for block in blocks.as_numpy_iterator():
        parsed = _parsed_of(block)
        count += parsed
        if parsed < len(block):
            return count, False
    return count, True


def _parsed_of(block: np.ndarray) -> int:
    """Returns how many of the first records of a block, bytes [n], are documents."""
    try:
        _parse(block)
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # TensorFlow quotes the record
        half = len(block) // 2
        parsed = _parsed_of(block[:half]) if half else 0
        return parsed if parsed < half or not half else half + _parsed_of(block[half:])
    return len(block)


def _first_damaged(path: str, start: int) -> int:
    """Returns the first record from `start` on that cannot be read or parsed, of a block of which one cannot."""
    for run in readable_runs(Run(path, start, DOCUMENTS_PER_BLOCK)):
        if run.first == start:
            return start + run.documents
    return start
