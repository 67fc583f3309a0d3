import collections

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.record_index import RecordIndex

PAD, CLS, SEP = 0, 2, 3
PACKINGS = ("document", "sentences", "contiguous")


def make(packing, max_seq_length):
    return Packer(
        packing=packing, max_seq_length=max_seq_length, cls_id=CLS, sep_id=SEP, pad_id=PAD
    )


def pack(packer, documents):
    """Packs one block of documents, lists of sentences; int32 [sequences, T]."""
    pieces = [sum(document, []) for document in documents]
    lengths = [[len(sentence) for sentence in document] for document in documents]
    ragged = (tf.ragged.constant(x, dtype=tf.int32, ragged_rank=1) for x in (pieces, lengths))
    return packer.pack(*ragged).numpy()


def count(packer, documents, blocks):
    lengths = [[len(sentence) for sentence in document] for document in documents]
    return packer.counts(RecordIndex.of_lengths(lengths), np.array(blocks)).tolist()


def random_documents(longest, seed=0):
    random = np.random.default_rng(seed)
    return [
        [random.integers(10, 500, n).tolist() for n in random.integers(1, longest, sentences)]
        for sentences in random.integers(1, 12, 37)
    ]


def test_documents_are_cut_one_by_one():
    documents = [[[10, 11]], [[20, 21], [22, 23]], [[30]]]
    assert pack(make("document", 5), documents).tolist() == [
        [CLS, 10, 11, SEP, PAD],
        [CLS, 20, 21, 22, SEP],
        [CLS, 23, SEP, PAD, PAD],
        [CLS, 30, SEP, PAD, PAD],
    ]


def test_whole_sentences_of_one_document_share_a_sequence():
    documents = [[[10, 11], [12], [13, 14]], [[20]], [[30, 31, 32, 33, 34], [35, 36], [37]]]
    assert pack(make("sentences", 6), documents).tolist() == [
        [CLS, 10, 11, 12, SEP, PAD],  # 13, 14 would not fit
        [CLS, 13, 14, SEP, PAD, PAD],
        [CLS, 20, SEP, PAD, PAD, PAD],  # another document
        [CLS, 30, 31, 32, 33, SEP],  # a sentence longer than a sequence is cut
        [CLS, 34, 35, 36, 37, SEP],
    ]


def test_contiguous_sequences_are_filled_across_documents():
    documents = [[[10, 11]], [[20, 21], [22, 23]], [[30]]]
    assert pack(make("contiguous", 6), documents).tolist() == [
        [CLS, 10, 11, SEP, 20, SEP],
        [CLS, 21, 22, 23, SEP, SEP],
        [CLS, 30, SEP, PAD, PAD, PAD],
    ]


def test_no_contiguous_sequence_is_without_text():  # not even where a block of documents fills its last one
    packer = make("contiguous", 6)
    for documents in ([[[10, 11, 12, 13]]], [[[10]], [[20, 21]]], [[[10, 11, 12, 13]], [[20]]]):
        packed = pack(packer, documents)
        assert ((packed >= 10).any(axis=1)).all()
        assert count(packer, documents, [len(documents)]) == [len(packed)]
    assert pack(packer, [[[10, 11, 12, 13]]]).tolist() == [[CLS, 10, 11, 12, 13, SEP]]


@pytest.mark.parametrize("max_seq_length", [3, 8, 64])
@pytest.mark.parametrize("packing", PACKINGS)
def test_no_piece_is_lost_or_doubled_and_the_count_is_right(packing, max_seq_length):
    documents = random_documents(longest=2 * max_seq_length)
    packer = make(packing, max_seq_length)
    blocks = [20, 1, 16]
    starts = np.cumsum([0, *blocks])
    packed = [pack(packer, documents[a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    assert count(packer, documents, blocks) == [len(block) for block in packed]
    sequences = np.concatenate(packed)
    pieces = sequences[sequences >= 10].tolist()
    assert pieces == sum(sum(documents, []), [])  # in order, so the multisets are equal too
    assert (sequences[:, 0] == CLS).all()
    length = (sequences != PAD).sum(axis=1)
    assert (sequences[np.arange(len(length)), length - 1] == SEP).all()
    separators = collections.Counter(sequences[:, 1:].ravel().tolist())[SEP]
    between = len(documents) - len(blocks) if packing == "contiguous" else 0
    assert separators == len(sequences) + between
    if packing == "contiguous":  # only the last sequence of a block is padded
        assert all(((block != PAD).all(axis=1))[:-1].all() for block in packed)


@pytest.mark.parametrize("packing", ["document", "sentences"])
def test_no_sequence_holds_two_documents(packing):
    documents = random_documents(longest=9)
    numbered = [
        [[10 + number] * len(s) for s in document] for number, document in enumerate(documents)
    ]
    for row in pack(make(packing, 16), numbered).tolist():
        assert len({piece for piece in row if piece >= 10}) == 1


def test_sentences_are_cut_only_where_they_must_be_and_sequences_are_full():
    documents, room = random_documents(longest=20, seed=1), 14
    expected = []
    for document in documents:  # plain greedy filling
        row = []
        for sentence in document:
            parts = [sentence[i : i + room] for i in range(0, len(sentence), room)]
            for part in parts:
                if len(row) + len(part) > room:
                    expected.append(row)
                    row = []
                row = row + part
        expected.append(row)
    made = pack(make("sentences", room + 2), documents)
    assert [[piece for piece in row if piece >= 10] for row in made.tolist()] == expected


@pytest.mark.parametrize("packing", PACKINGS)
def test_no_documents_give_no_sequences(packing):
    assert count(make(packing, 8), [], []) == []
