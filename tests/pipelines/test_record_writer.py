import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.documents import Document
from rembert_tf.pipelines.record_index import RecordIndex
from rembert_tf.pipelines.record_writer import SplitWriter, _disk_errors, shard_number


def documents(count):
    random = np.random.default_rng(count)
    made = []
    for _ in range(count):
        lengths = random.integers(1, 9, 3)
        made.append(Document.of(random.integers(5, 99, lengths.sum()), lengths))
    return made


def test_what_was_written_is_read(tmp_path):
    writer = SplitWriter(tmp_path, "train", tokens_per_shard=60)
    made = documents(23)
    for document in made:
        writer.write(document)
    split = writer.close()
    found, shard_of = [], []
    for number, shard in enumerate(split.shards):
        content = list(tf.data.TFRecordDataset(str(tmp_path / shard.file)).as_numpy_iterator())
        assert shard.documents == len(content)
        found.extend(content)
        shard_of.extend([number] * len(content))
    assert found == [document.record for document in made]
    before = np.cumsum([0, *(len(document.input_ids) for document in made)])[:-1]
    wanted = [shard_number(tokens, 60) for tokens in before.tolist()]
    assert shard_of == np.unique(wanted, return_inverse=True)[1].tolist()
    assert split.documents == 23 and split.sentences == 69
    assert split.tokens == sum(len(document.input_ids) for document in made)
    index = RecordIndex.read(tmp_path, "train")
    assert index.lengths.tolist() == [len(document.input_ids) for document in made]
    lengths = np.concatenate([document.sentence_lengths for document in made])
    np.testing.assert_array_equal(index.sentence_lengths, lengths)
    count = len(split.shards)
    assert count > 3
    names = [f"train-{i:05d}-of-{count:05d}.tfrecord" for i in range(count)]
    assert [shard.file for shard in split.shards] == names
    index_files = ["train-lengths.npy", "train-sentence-lengths.npy"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, *index_files])


def test_documents_longer_than_a_shard_leave_no_number_out(tmp_path):
    writer = SplitWriter(tmp_path, "train", tokens_per_shard=10)
    for pieces in (3, 25, 4, 40, 1):
        writer.write(Document.of([7] * pieces, [pieces]))
    split = writer.close()
    assert [shard.documents for shard in split.shards] == [2, 1, 1, 1][: len(split.shards)]
    assert (
        split.shards[-1].file
        == f"train-{len(split.shards) - 1:05d}-of-{len(split.shards):05d}.tfrecord"
    )


def test_a_split_without_documents_has_no_file(tmp_path):
    split = SplitWriter(tmp_path, "heldout", tokens_per_shard=60).close()
    assert (split.documents, split.sentences, split.tokens, split.shards) == (0, 0, 0, ())
    assert len(RecordIndex.read(tmp_path, "heldout").lengths) == 0


def test_a_record_keeps_ids_and_lengths_of_its_sentences():
    (document,) = documents(1)
    feature = tf.train.Example.FromString(document.record).features.feature
    assert feature["input_ids"].int64_list.value == document.input_ids.tolist()
    assert feature["sentence_lengths"].int64_list.value == document.sentence_lengths.tolist()
    assert Document.of(document.input_ids, document.sentence_lengths).record == document.record


def test_a_file_that_cannot_be_opened_is_an_os_error_with_its_name(tmp_path):
    writer = SplitWriter(tmp_path / "nowhere", "train", tokens_per_shard=60)
    with pytest.raises(OSError, match=r"nowhere/train-00000\.part"):
        writer.write(*documents(1))


def test_a_full_disk_is_called_so(tmp_path):
    with pytest.raises(OSError, match="No space left on device: '.*shard'"):
        with _disk_errors(tmp_path / "shard"), tf.io.TFRecordWriter("/dev/full") as writer:
            writer.write(b"x" * 100_000)
