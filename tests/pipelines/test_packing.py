import collections

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.packing import Packer

PAD, CLS, SEP = 0, 2, 3


def make(packing, max_seq_length):
    return Packer(
        packing=packing, max_seq_length=max_seq_length, cls_id=CLS, sep_id=SEP, pad_id=PAD
    )


def pack(packer, documents, at_once=2):
    """Packs lists of ids; int32 [sequences, T]."""
    batches = [documents[i : i + at_once] for i in range(0, len(documents), at_once)]
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(batches, dtype=tf.int32))
    return np.concatenate(list(packer.pack(ragged).as_numpy_iterator()))


def test_documents_are_cut_one_by_one():
    packer = make("document", 5)
    assert pack(packer, [[10, 11], [20, 21, 22, 23], [30]]).tolist() == [
        [CLS, 10, 11, SEP, PAD],
        [CLS, 20, 21, 22, SEP],
        [CLS, 23, SEP, PAD, PAD],
        [CLS, 30, SEP, PAD, PAD],
    ]


def test_contiguous_sequences_are_filled_across_documents():
    packer = make("contiguous", 6)
    assert pack(packer, [[10, 11], [20, 21, 22, 23], [30]]).tolist() == [
        [CLS, 10, 11, SEP, 20, SEP],
        [CLS, 21, 22, 23, SEP, SEP],
        [CLS, 30, SEP, SEP, PAD, PAD],
    ]


@pytest.mark.parametrize("max_seq_length", [3, 8, 64])
@pytest.mark.parametrize("packing", ["document", "contiguous"])
def test_no_piece_is_lost_or_doubled_and_the_count_is_right(packing, max_seq_length):
    random = np.random.default_rng(0)
    documents = [random.integers(10, 500, n).tolist() for n in random.integers(1, 200, 37)]
    packer = make(packing, max_seq_length)
    sequences = pack(packer, documents, at_once=5)
    assert len(sequences) == packer.count([len(document) for document in documents])
    pieces = sequences[sequences >= 10].tolist()
    assert pieces == sum(documents, [])  # in order, so the multisets are equal too
    assert (sequences[:, 0] == CLS).all()
    length = (sequences != PAD).sum(axis=1)
    assert (sequences[np.arange(len(length)), length - 1] == SEP).all()
    separators = collections.Counter(sequences[:, 1:].ravel().tolist())[SEP]
    assert separators == len(sequences) + (len(documents) if packing == "contiguous" else 0)
    if packing == "contiguous":
        assert (length[:-1] == max_seq_length).all()


@pytest.mark.parametrize("packing", ["document", "contiguous"])
def test_no_documents_give_no_sequences(packing):
    assert make(packing, 8).count(np.zeros(0, np.int32)) == 0
