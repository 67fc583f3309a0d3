import os
import pathlib
import tempfile

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import record_reader
from rembert_tf.pipelines.record_reader import Run

DOCUMENTS = [[[5 + i, 6, 7], [8] * (1 + i % 3)] for i in range(20)]


def serialize(sentences):
    def feature(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    features = {
        "input_ids": feature(sum(sentences, [])),
        "sentence_lengths": feature([len(sentence) for sentence in sentences]),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


@pytest.fixture
def written(tmp_path):
    """A file of 20 documents, and where each record begins in it."""
    path = tmp_path / "all [1] of a]b" / "train.tfrecord"
    path.parent.mkdir()
    offsets, offset = [], 0
    with tf.io.TFRecordWriter(str(path)) as writer:
        for document in DOCUMENTS:
            record = serialize(document)
            writer.write(record)
            offsets.append(offset)
            offset += len(record) + 16
    return path, offsets


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(record_reader, "DOCUMENTS_PER_BLOCK", 6)


def read(*runs):
    blocks = [
        block for run in runs for block in record_reader.read_run(run.path, *map(np.int64, run[1:]))
    ]
    lengths = [row for block in blocks for row in block.sentence_lengths.to_list()]
    return [row for block in blocks for row in block.input_ids.to_list()], lengths


@pytest.mark.parametrize("first, count", [(0, 20), (0, 6), (7, 5), (19, 1), (3, 12), (5, 0)])
def test_runs_are_read(written, first, count):
    path, _ = written
    pieces, lengths = read(Run(str(path), first, count))
    assert pieces == [sum(document, []) for document in DOCUMENTS[first : first + count]]
    assert lengths == [[3, 1 + i % 3] for i in range(first, first + count)]


def content_of(number):
    return lambda content, offsets: flip(content, offsets[number] + 14)


def flip(content, byte):
    return content[:byte] + bytes([content[byte] ^ 1]) + content[byte + 1 :]


def framed(record):
    """The bytes of a file that holds one record, whatever it is, with right checksums."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "one.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            writer.write(record)
        return pathlib.Path(path).read_bytes()


def no_document(*numbers):
    def change(content, offsets):
        records = [content[a:b] for a, b in zip(offsets, [*offsets[1:], None], strict=True)]
        for number in numbers:
            records[number] = framed(b"\xff\xfe no document")
        return b"".join(records)

    return change


DAMAGES = {  # what is done to the file; the first record that cannot be read, its place, and the runs that can
    "one flipped": (content_of(8), 8, 12, [(0, 8), (9, 11)]),
    "first flipped": (content_of(0), 0, 12, [(1, 19)]),
    "last of a block flipped": (content_of(5), 5, 12, [(0, 5), (6, 14)]),
    "last flipped": (content_of(19), 19, 12, [(0, 19)]),
    "two flipped": (
        lambda c, o: flip(flip(c, o[3] + 14), o[4] + 14), 3, 12, [(0, 3), (5, 15)]),
    "length flipped": (lambda c, o: flip(c, o[8] + 1), 8, 0, [(0, 8)]),
    "cut": (lambda c, o: c[: o[10] + 20], 10, 0, [(0, 10)]),
    "cut at a border": (lambda c, o: c[: o[12]], 12, None, [(0, 12)]),
    "no document": (no_document(8), 8, None, [(0, 8), (9, 11)]),
    "first no document": (no_document(0), 0, None, [(1, 19)]),
    "last no document": (no_document(19), 19, None, [(0, 19)]),
    "two no documents": (no_document(5, 7), 5, None, [(0, 5), (6, 1), (8, 12)]),
    "no document, then one flipped": (
        lambda c, o: no_document(4)(flip(c, o[16] + 14), o), 4, None, [(0, 4), (5, 11), (17, 3)]),
    "empty": (lambda c, o: b"", 0, None, []),
    "text": (lambda c, o: b"a text file with the wrong name\n" * 40, 0, 0, []),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_and_can_be_passed_over(written, damage):  # case F11
    path, offsets = written
    change, number, after, runs = damage
    path.write_bytes(change(path.read_bytes(), offsets))
    whole = Run(str(path), 0, 20)
    byte = "" if after is None else f", at byte {offsets[number] + after}"
    with pytest.raises(ValueError) as error, record_reader.naming_damage():
        read(whole)
    assert str(error.value).startswith(f"{path}: record {number}{byte}: damaged. ")

    readable = record_reader.readable_runs(whole)
    assert readable == [Run(str(path), *run) for run in runs]
    pieces, _ = read(*readable)
    kept = [i for first, count in runs for i in range(first, first + count)]
    assert pieces == [sum(DOCUMENTS[i], []) for i in kept]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_that_cannot_be_read_is_one_error(written, is_folder):
    path, _ = written
    path.unlink()
    if is_folder:
        path.mkdir()
    whole = Run(str(path), 0, 20)
    why = "Is a directory" if is_folder else "No such file or directory"
    with pytest.raises(OSError) as error, record_reader.naming_damage():
        read(whole)
    assert str(error.value) == f"{path}: cannot be read: {why}"
    with pytest.raises(OSError) as error:
        record_reader.readable_runs(whole)
    assert why in str(error.value) and str(path) in str(error.value)


def test_an_error_inside_a_function_is_named_too(written):
    path, offsets = written
    path.write_bytes(flip(path.read_bytes(), offsets[8] + 14))

    @tf.function
    def step(iterator):
        next(iterator)
        return next(iterator)

    for problem, message in (
        (f"{path}: record 8, at byte {offsets[8] + 12}: damaged", ValueError),
        (f"{path}: cannot be read: No such file or directory", OSError),
    ):
        blocks = record_reader.read_run(str(path), np.int64(0), np.int64(20))
        with pytest.raises(message) as error, record_reader.naming_damage():
            step(iter(blocks.prefetch(1)))
        assert str(error.value).startswith(problem)
        path.unlink(missing_ok=True)


def test_other_errors_pass_through():
    with pytest.raises(tf.errors.InvalidArgumentError), record_reader.naming_damage():
        tf.debugging.Assert(False, ["something else"])
