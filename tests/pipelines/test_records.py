import collections

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import records
from rembert_tf.pipelines.manifest import Manifest


def documents(count):
    random = np.random.default_rng(count)
    return [
        [random.integers(5, 99, n).astype(np.int32) for n in random.integers(1, 9, 3)]
        for _ in range(count)
    ]


@pytest.fixture
def written(tmp_path):
    """A folder with 23 documents in shards, the documents, and what the writer said."""
    writer = records.SplitWriter(tmp_path, "train", tokens_per_shard=60)
    made = documents(23)
    for document in made:
        writer.write(document)
    return tmp_path, [np.concatenate(document).tolist() for document in made], writer.close()


def shards(folder, split):
    return records.as_tensors([(str(folder / s.file), s.documents) for s in split.shards])


def read(dataset):
    return [ids for batch in dataset for ids in batch.to_list()]


def test_what_was_written_is_read(written):
    folder, made, split = written
    assert read(records.read(*shards(folder, split))) == made
    assert split.documents == 23 and split.sentences == 69
    assert split.tokens == sum(map(len, made))
    assert np.load(folder / "train-lengths.npy").tolist() == list(map(len, made))
    names = [shard.file for shard in split.shards]
    count = len(names)
    assert count > 3
    assert names == [f"train-{i:05d}-of-{count:05d}.tfrecord" for i in range(count)]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "train-lengths.npy"])


def test_another_order_of_shards_gives_the_same_documents(written):
    folder, made, split = written
    order = tf.range(len(split.shards))[::-1]
    shuffled = read(records.read(*shards(folder, split), order))
    assert shuffled != made
    assert collections.Counter(map(tuple, shuffled)) == collections.Counter(map(tuple, made))


def test_a_record_keeps_the_lengths_of_its_sentences():
    (document,) = documents(1)
    example = tf.train.Example.FromString(records.serialize(document))
    feature = example.features.feature
    assert feature["input_ids"].int64_list.value == np.concatenate(document).tolist()
    assert feature["sentence_lengths"].int64_list.value == [len(ids) for ids in document]
    assert records.serialize(document) == records.serialize(document)


def test_a_file_that_cannot_be_opened_is_an_os_error_with_its_name(tmp_path):
    writer = records.SplitWriter(tmp_path / "nowhere", "train", tokens_per_shard=60)
    with pytest.raises(OSError, match=r"nowhere/train-00000\.part"):
        writer.write(*documents(1))


def flip(content):
    return content[:-10] + bytes([content[-10] ^ 1]) + content[-9:]


@pytest.mark.parametrize(
    "damage, record",
    [
        (flip, 2),
        (lambda content: content[: len(content) // 2], 1),
        (lambda content: b"", 0),
        (lambda content: b"just a text file with the wrong name\n" * 9, 0),
    ],
    ids=["flipped", "cut", "empty", "text"],
)
def test_damaged_records_are_named(tmp_path, damage, record):  # case F11
    writer = records.SplitWriter(tmp_path, "train", tokens_per_shard=10_000)
    for document in documents(3):
        writer.write(document)
    split = writer.close()
    path = tmp_path / split.shards[0].file
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=rf"damaged record \d of {path}"
    ) as error:
        read(records.read(*shards(tmp_path, split)))
    found = int(str(error.value).split("damaged record ")[1][0])
    assert found == record or damage is not flip and found <= 2


def test_a_manifest_comes_back_as_it_was_written(records_folder, tmp_path):
    manifest = Manifest.read(records_folder)
    manifest.check_sizes()
    content = (records_folder / "manifest.json").read_bytes()
    manifest.write()
    assert (records_folder / "manifest.json").read_bytes() == content
    assert Manifest.read(records_folder) == manifest
    assert list(manifest.select(["ru", "en"]).languages) == ["en", "ru"]
    assert manifest.select([]) == manifest


def test_manifests_that_cannot_be_used_are_refused(records_folder, tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match="manifest.json: no such file; .* cut short"):
        Manifest.read(tmp_path)
    for content in ("{", '{"format": 99}', '{"format": 1}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(ValueError, match="manifest.json: not a manifest of records"):
            Manifest.read(tmp_path)
    manifest = Manifest.read(records_folder)
    with pytest.raises(ValueError, match="`languages` must be among ar, .* Received: languages=sw"):
        manifest.select(["sw", "en"])
    manifest.check_vocabulary(tokenizer.fingerprint)
    with pytest.raises(ValueError, match="built with another vocabulary"):
        manifest.check_vocabulary("0" * 64)
