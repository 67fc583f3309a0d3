"""Records on disk, written: shards of about equal size, their checksums and their index."""

import array
import contextlib
import dataclasses
import errno
import hashlib
import os
import pathlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.documents import Document
from rembert_tf.pipelines.manifest import Shard, Split, SplitRecords
from rembert_tf.pipelines.record_index import RecordIndex

PART = ".part"


def shard_number(tokens_before: int, tokens_per_shard: int) -> int:
    """Returns the shard of a document that begins after so many pieces of its split.

    Numbers may be left out where a document is longer than a shard: shards are numbered anew when all are there.
    """
    return tokens_before // tokens_per_shard


class ShardWriter:
    """Writes one shard under a temporary name."""

    def __init__(self, path: pathlib.Path):
        """Creates the file.

        Raises:
            OSError: It cannot be written.
        """
        self._path, self._documents = path, 0
        with _disk_errors(path):
            self._file = tf.io.TFRecordWriter(str(path))

    def write(self, document: Document):
        """Writes a document.

        Raises:
            OSError: The disk is full.
        """
        with _disk_errors(self._path):
            self._file.write(document.record)
        self._documents += 1

    def close(self) -> Shard:
        """Closes the file and returns what it holds.

        Raises:
            OSError: The disk is full.
        """
        with _disk_errors(self._path):
            self._file.close()
        with open(self._path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Shard(
            file=self._path.name,
            documents=self._documents,
            bytes=self._path.stat().st_size,
            sha256=digest,
        )


class SplitWriter:
    """Writes the documents of one split into shards.

    The caller owns the folder and gives it its final name when everything in it is complete.

    Example:
        >>> writer = SplitWriter(empty_folder, "train", tokens_per_shard=1000)
        >>> writer.write(Document.of([5, 6, 7, 8], [3, 1]))
        >>> writer.close().shards[0].file
        'train-00000-of-00001.tfrecord'
    """

    def __init__(self, folder: pathlib.Path, split: Split, tokens_per_shard: int):
        """Writes into `folder`; each shard gets about `tokens_per_shard` pieces."""
        self._folder, self._split, self._tokens_per_shard = folder, split, tokens_per_shard
        self._number, self._writer = -1, None
        self._shards: list[Shard] = []
        self._tokens = 0
        self._lengths, self._sentence_lengths = array.array("i"), array.array("i")

    def write(self, document: Document):
        """Writes one document."""
        number = shard_number(self._tokens, self._tokens_per_shard)
        if number != self._number:
            self._close_shard()
            path = self._folder / f"{self._split}-{number:05d}{PART}"
            self._number, self._writer = number, ShardWriter(path)
        self._writer.write(document)
        self._tokens += len(document.input_ids)
        self._lengths.append(len(document.input_ids))
        self._sentence_lengths.frombytes(document.sentence_lengths.tobytes())

    def close(self) -> SplitRecords:
        """Closes the last shard, gives all their names, and returns what was written."""
        self._close_shard()
        index = RecordIndex(
            np.array(self._lengths, np.int32), np.array(self._sentence_lengths, np.int32)
        )
        return finish_split(self._folder, self._split, self._shards, index)

    def _close_shard(self):
        if self._writer is not None:
            self._shards.append(self._writer.close())
            self._writer = None


def finish_split(
    folder: pathlib.Path, split: Split, shards: Sequence[Shard], index: RecordIndex
) -> SplitRecords:
    """Gives the shards of a split their names and writes their index.

    Args:
        folder: Folder of the language.
        split: The split.
        shards: Its shards under their temporary names, in order.
        index: The index of all their documents.
    """
    named = []
    for number, shard in enumerate(shards):
        name = f"{split}-{number:05d}-of-{len(shards):05d}.tfrecord"
        os.rename(folder / shard.file, folder / name)
        named.append(dataclasses.replace(shard, file=name))
    index.write(folder, split)
    return SplitRecords(
        documents=len(index.lengths),
        sentences=len(index.sentence_lengths),
        tokens=int(index.lengths.sum(dtype=np.int64)),
        shards=tuple(named),
    )


@contextlib.contextmanager
def _disk_errors(path: pathlib.Path) -> Iterator[None]:
    """Turns TensorFlow's file errors into OSError."""
    kinds = {
        tf.errors.ResourceExhaustedError: errno.ENOSPC,
        tf.errors.PermissionDeniedError: errno.EACCES,
    }
    try:
        yield
    except tf.errors.OpError as error:
        number = kinds.get(type(error))
        text = error.message if number is None else os.strerror(number)
        raise OSError(number or errno.EIO, text, str(path)) from error
