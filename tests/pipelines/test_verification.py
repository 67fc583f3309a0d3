import hashlib
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.documents import Document
from rembert_tf.pipelines.verification import verify_records


@pytest.fixture
def copied(records_folder, tmp_path):
    folder = tmp_path / "records"
    shutil.copytree(records_folder, folder)
    return folder


def first_shard(folder, language="el"):
    return sorted((folder / language).glob("train-*.tfrecord"))[0]


def records_of(path):
    return list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())


def replace(path, records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)


def damage(folder):
    """Verifies, and returns what is said."""
    with pytest.raises(ValueError, match="damages, the first: ") as error:
        verify_records(folder)
    return str(error.value)


def trust(folder, path):
    """Makes the manifest agree with the bytes of a file, so that only its content is wrong."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for shard in manifest["languages"][path.parent.name]["train"]["shards"]:
        if shard["file"] == path.name:
            content = path.read_bytes()
            shard.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("processes", [1, 2])
def test_whole_records_pass(records_folder, processes):
    assert len(verify_records(records_folder, processes).languages) == 10


def test_a_flipped_byte_is_named_with_file_record_and_offset(copied):
    path = first_shard(copied)
    first, *_ = records_of(path)
    content = bytearray(path.read_bytes())
    content[16 + len(first) + 20] ^= 1
    path.write_bytes(content)
    trust(copied, path)  # the record's own checksum finds it
    assert f"{path}: record 1, at byte {16 + len(first)}: damaged" in damage(copied)


def test_other_bytes_than_the_manifest_says_are_named(copied):
    path = first_shard(copied)
    original = path.read_bytes()
    path.write_bytes(original[: len(original) // 2])
    assert f"{path}: {len(original) // 2} bytes, where the manifest says {len(original)}" in damage(
        copied
    )
    path.write_bytes(original)
    swapped = records_of(path)[::-1]
    replace(path, swapped)
    assert f"{path}: sha256 " in damage(copied)
    path.unlink()
    assert f"{path}: the manifest names this file, and it is absent" in damage(copied)


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda records, t: records[:-1], "the end, where there must be"),
        (lambda records, t: [*records, records[-1]], "not the document that the index says"),
        (lambda records, t: [b"junk" * 9, *records[1:]], "record 0, at byte 0: not a tf.train.Example"),
        (lambda records, t: [with_id(records[0], t.cls_id), *records[1:]], "no piece of text"),
        (lambda records, t: [with_id(records[0], t.vocab_size), *records[1:]], "no piece of text"),
    ],
    ids=["one less", "one more", "junk", "special", "beyond"],
)  # fmt: skip
def test_content_that_is_not_what_the_manifest_says_is_named(copied, tokenizer, change, problem):
    path = first_shard(copied)
    replace(path, change(records_of(path), tokenizer))
    trust(copied, path)
    message = damage(copied)
    assert f"{path}: record " in message and problem in message


def with_id(record, piece):
    feature = tf.train.Example.FromString(record).features.feature
    ids = list(feature["input_ids"].int64_list.value)
    return Document.of([piece, *ids[1:]], feature["sentence_lengths"].int64_list.value).record


def test_lines_counts_and_files_that_do_not_add_up_are_named(copied):
    content = (copied / "manifest.json").read_text()
    manifest = json.loads(content)
    manifest["languages"]["el"]["lines"]["read"] += 1
    (copied / "manifest.json").write_text(json.dumps(manifest))
    assert f"{copied / 'el'}: of " in damage(copied)
    (copied / "manifest.json").write_text(content)
    counts = np.load(copied / "ru" / "unigram_counts.npy")
    np.save(copied / "ru" / "unigram_counts.npy", counts + 1)
    assert f"{copied / 'ru' / 'unigram_counts.npy'}: not the counts of the records" in damage(
        copied
    )
    np.save(copied / "ru" / "unigram_counts.npy", counts)
    shutil.copy(first_shard(copied), copied / "el" / "train-stray.tfrecord")
    assert "train-stray.tfrecord: the manifest does not name this file" in damage(copied)
    (copied / "el" / "train-stray.tfrecord").unlink()
    (copied / "ru" / "train-lengths.npy").write_bytes(b"no array")
    assert "train-lengths.npy: damaged" in damage(copied)
