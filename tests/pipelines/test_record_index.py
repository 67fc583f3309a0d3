import numpy as np
import pytest

from rembert_tf.pipelines.record_index import RecordIndex

LENGTHS = [[3, 1], [4], [1, 1, 2], [7]]


def test_documents_know_their_sentences():
    index = RecordIndex.of_lengths(LENGTHS)
    assert index.lengths.tolist() == [4, 4, 4, 7]
    assert index.sentences_per_document().tolist() == [2, 1, 3, 1]
    kept = index.keep(np.array([True, False, True, False]))
    assert kept.lengths.tolist() == [4, 4] and kept.sentence_lengths.tolist() == [3, 1, 1, 1, 2]


def test_an_index_comes_back_as_it_was_written(tmp_path):
    index = RecordIndex.of_lengths(LENGTHS)
    index.write(tmp_path, "train")
    found = RecordIndex.read(tmp_path, "train")
    assert found.lengths.tolist() == index.lengths.tolist()
    assert found.sentence_lengths.tolist() == index.sentence_lengths.tolist()


def test_a_damaged_index_is_named(tmp_path):
    RecordIndex.of_lengths(LENGTHS).write(tmp_path, "train")
    path = tmp_path / "train-sentence-lengths.npy"
    RecordIndex.of_lengths(LENGTHS[1:]).write(tmp_path, "heldout")
    content = path.read_bytes()
    path.write_bytes((tmp_path / "heldout-sentence-lengths.npy").read_bytes())
    with pytest.raises(ValueError, match=f"{path}: does not fit train-lengths.npy"):
        RecordIndex.read(tmp_path, "train")
    for damaged in (content[:40], b"", b"no array"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{path}: damaged"):
            RecordIndex.read(tmp_path, "train")
    path.unlink()
    with pytest.raises(FileNotFoundError, match=str(path)):
        RecordIndex.read(tmp_path, "train")
