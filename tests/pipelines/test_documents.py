import numpy as np

from rembert_tf.pipelines.documents import Document, split_documents, split_long


def documents(count, sentences=1):
    return [Document.of([number] * sentences, [1] * sentences) for number in range(count)]


def held_out(made, fraction):
    return [
        int(d.input_ids[0]) for split, d in split_documents(made, fraction) if split == "heldout"
    ]


def test_long_documents_are_split_between_sentences():
    assert list(split_long([3, 4, 5, 3, 20, 3], max_tokens=8)) == [[3, 4], [5, 3], [20], [3]]
    assert list(split_long([], 8)) == []


def test_every_kth_document_is_held_out():
    assert held_out(documents(25), 0.1) == [1, 11, 21]
    assert held_out(documents(2), 0.1) == [1]
    assert held_out(documents(5), 0.5) == [1, 3]
    assert held_out(documents(25), 0.0) == []
    assert len(list(split_documents(documents(25), 0.01))) == 25


def test_a_single_document_is_cut():
    def parts(sentences, fraction):
        split = split_documents(documents(1, sentences), fraction)
        return [(name, len(document.sentence_lengths)) for name, document in split]

    assert parts(30, 0.1) == [("train", 27), ("heldout", 3)]
    assert parts(2, 0.01) == [("train", 1), ("heldout", 1)]
    assert parts(1, 0.1) == [("train", 1)]  # nothing to cut
    assert parts(2, 0.0) == [("train", 2)]


def test_a_cut_loses_nothing():
    whole = Document.of(np.arange(10), [2, 3, 5])
    first, second = whole.cut(2)
    assert first.input_ids.tolist() == list(range(5)) and first.sentence_lengths.tolist() == [2, 3]
    assert second.record == Document.of(np.arange(5, 10), [5]).record
