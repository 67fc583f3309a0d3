"""Records on disk: one document of piece ids a record, written and read.

A record is a `tf.train.Example` with the features `input_ids` (the ids of all its sentences,
without special pieces) and `sentence_lengths` (how many ids each sentence has). Nothing is masked on disk.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import re
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.manifest import Shard, Split, SplitRecords, lengths_file

_DAMAGED = re.compile(r"\[(damaged record \d+ of [^\]]+)\]")
_DOCUMENTS_AT_ONCE = 64
_SHARDS_AT_ONCE = 4
_DOCUMENTS_IN_TURN = 16


class SplitWriter:
    """Writes the documents of one split into shards of about equal size.

    The caller owns the folder and gives it its final name when everything in it is complete.

    Example:
        >>> writer = SplitWriter(empty_folder, "train", tokens_per_shard=1000)
        >>> writer.write([np.array([5, 6, 7]), np.array([8])])  # one document, two sentences
        >>> writer.close().shards[0].file
        'train-00000-of-00001.tfrecord'
    """

    def __init__(self, folder: pathlib.Path, split: Split, tokens_per_shard: int):
        """Writes into `folder`; a shard is closed once it holds `tokens_per_shard` pieces."""
        self._folder, self._split, self._tokens_per_shard = folder, split, tokens_per_shard
        self._shards: list[tuple[pathlib.Path, int]] = []
        self._file: tf.io.TFRecordWriter | None = None
        self._tokens_in_file = 0
        self._sentences = 0
        self._lengths: list[int] = []

    def write(self, sentences: Sequence[np.ndarray]):
        """Writes one document.

        Args:
            sentences: Ids of each sentence, int32 [pieces].
        """
        if self._file is None:
            self._shards.append((self._folder / f"{self._split}-{len(self._shards):05d}.part", 0))
        path, documents = self._shards[-1]
        with _disk_errors(path):
            if self._file is None:
                self._file = tf.io.TFRecordWriter(str(path))
            self._file.write(serialize(sentences))
        self._shards[-1] = (path, documents + 1)
        self._lengths.append(sum(map(len, sentences)))
        self._sentences += len(sentences)
        self._tokens_in_file += self._lengths[-1]
        if self._tokens_in_file >= self._tokens_per_shard:
            self._close_file()

    def close(self) -> SplitRecords:
        """Closes the last shard, gives all their names, and returns what was written."""
        self._close_file()
        np.save(self._folder / lengths_file(self._split), np.array(self._lengths, np.int32))
        shards = []
        for number, (part, documents) in enumerate(self._shards):
            path = part.with_name(f"{self._split}-{number:05d}-of-{len(self._shards):05d}.tfrecord")
            os.rename(part, path)
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            shards.append(
                Shard(file=path.name, documents=documents, bytes=path.stat().st_size, sha256=digest)
            )
        return SplitRecords(
            documents=len(self._lengths),
            sentences=self._sentences,
            tokens=sum(self._lengths),
            shards=tuple(shards),
        )

    def _close_file(self):
        if self._file is not None:
            with _disk_errors(self._shards[-1][0]):
                self._file.close()
            self._file, self._tokens_in_file = None, 0


def serialize(sentences: Sequence[np.ndarray]) -> bytes:
    """Serializes one document, the same bytes each time.

    Args:
        sentences: Ids of each sentence, int32 [pieces].

    Returns:
        A serialized `tf.train.Example`.
    """
    features = {
        "input_ids": np.concatenate(sentences),
        "sentence_lengths": np.array([len(ids) for ids in sentences]),
    }
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=values.tolist()))
                for name, values in features.items()
            }
        )
    )
    return example.SerializeToString(deterministic=True)


def as_tensors(shards: Sequence[tuple[str, int]]) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the paths, string [shards], and numbers of documents, int64 [shards], of record files."""
    return (
        tf.constant([path for path, _ in shards], tf.string),
        tf.constant([count for _, count in shards], tf.int64),
    )


def read(paths: tf.Tensor, documents: tf.Tensor, order: tf.Tensor | None = None) -> tf.data.Dataset:
    """Reads documents, a few at once.

    Args:
        paths: Record files, string [shards].
        documents: How many documents each holds, int64 [shards].
        order: Order in which to open the files, int32 [shards]; a few of them are then read in turn.
            Without it, one after the other as they are.

    Returns:
        Dataset of ragged int32 [documents, (pieces)]. Where a record is damaged, iterating fails with
        `tf.errors.InvalidArgumentError`, which names file and record; see `naming_damage`.
    """
    if order is None:
        files = tf.data.Dataset.from_tensor_slices((paths, documents)).flat_map(_read_file)
    else:
        files = tf.data.Dataset.from_tensor_slices(
            (tf.gather(paths, order), tf.gather(documents, order))
        )
        files = files.interleave(
            _read_file, cycle_length=_SHARDS_AT_ONCE, block_length=_DOCUMENTS_IN_TURN
        )
    return files.batch(_DOCUMENTS_AT_ONCE).map(_parse)


@contextlib.contextmanager
def naming_damage() -> Iterator[None]:
    """Turns the error of a damaged record into a ValueError of one line: "damaged record 17 of PATH".

    Put it around whatever iterates over the records, a whole `fit` if need be.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        if found := _DAMAGED.search(str(error)):
            raise ValueError(found[1]) from error
        raise


def _read_file(path: tf.Tensor, documents: tf.Tensor) -> tf.data.Dataset:
    """Reads (path, number, record); an empty record stands for each one that cannot be read.

    TensorFlow's own error for a damaged record names no file; `ignore_errors` alone would lose the rest of the file
    without a word. Here the missing records show, with file and number.
    """
    found = tf.data.TFRecordDataset(path).ignore_errors(log_warning=False)
    missing = tf.data.Dataset.from_tensors("").repeat()
    numbers = tf.data.Dataset.range(documents)
    return tf.data.Dataset.zip(numbers, found.concatenate(missing)).map(
        lambda number, record: (path, number, record)
    )


def _parse(paths: tf.Tensor, numbers: tf.Tensor, serialized: tf.Tensor) -> tf.RaggedTensor:
    damaged = tf.strings.length(serialized) == 0
    first = tf.argmax(damaged)
    report = tf.strings.join(
        ["damaged record ", tf.strings.as_string(numbers[first]), " of ", paths[first]]
    )
    with tf.control_dependencies(
        [tf.debugging.Assert(tf.logical_not(tf.reduce_any(damaged)), [report])]
    ):
        serialized = tf.identity(serialized)
    features = tf.io.parse_example(serialized, {"input_ids": tf.io.RaggedFeature(tf.int64)})
    return tf.cast(features["input_ids"], tf.int32)


@contextlib.contextmanager
def _disk_errors(path: pathlib.Path) -> Iterator[None]:
    """Turns TensorFlow's file errors into OSError."""
    try:
        yield
    except tf.errors.OpError as error:
        if isinstance(error, tf.errors.ResourceExhaustedError):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        raise OSError(errno.EIO, error.message, str(path)) from error
