import random

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import classification, serving, tagging
from rembert_tf.pipelines.word_splitting import split_words

ODD = ["", "   ", "one", " leading and  trailing ", "a\x00b \x00 c", "½ ﬁ e\u0301", "\U0001f600 x"]


def sentences_of(small_world):
    return [text for texts in small_world.SENTENCES.values() for text in texts]


def assert_rows(rows, features, tokenizer):
    assert rows.input_ids.to_list() == [
        row.tolist() for row in np.split(features.input_ids, features.row_splits[1:-1])
    ]
    assert rows.token_type_ids.to_list() == [
        row.tolist() for row in np.split(features.token_type_ids, features.row_splits[1:-1])
    ]
    assert rows.input_ids.dtype == rows.token_type_ids.dtype == tf.int32
    padded = rows.padded(np.array([1, 0, 1]), tokenizer.pad_id)
    lengths = features.row_lengths[[1, 0, 1]]
    mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
    np.testing.assert_array_equal(padded["attention_mask"], mask)
    assert np.all(padded["input_ids"].numpy()[~mask] == tokenizer.pad_id)
    assert padded["input_ids"].numpy()[0][mask[0]].tolist() == rows.input_ids[1].numpy().tolist()
    assert not padded["token_type_ids"].numpy()[~mask].any()
    assert {value.dtype for value in padded.values()} == {tf.int32}


def test_words_become_the_features_of_the_tagging_reader(tokenizer, small_world):
    sentences = [*sentences_of(small_world), "zero \u200b word", "x", "\ufffd \U0001f600 alone"]
    words = split_words(tf.constant([text.encode() for text in sentences]))
    rows, positions, truncated = serving.word_rows(tokenizer, words.strings, 128)
    features = tagging.make_features(
        [tagging.TaggedSentence(tuple(text.split()), None, 1) for text in sentences],
        tokenizer, ("A",), 128,
    )  # fmt: skip
    assert features.num_rows == len(sentences)  # each fits into one row
    assert_rows(rows, features, tokenizer)
    starts = np.repeat(features.row_splits[:-1], features.words_of_sentence)
    np.testing.assert_array_equal(positions.values, features.word_positions - starts)
    np.testing.assert_array_equal(positions.row_lengths(), features.words_of_sentence)
    assert not np.any(truncated)


@pytest.mark.parametrize("max_seq_length", [3, 4, 7, 12])
def test_words_without_room_are_left_out(tokenizer, max_seq_length):
    texts = ["The old man reads a book in the garden.", "a", "xxxxxxxxxxxxxxxxxxxx b", "a b"]
    words = split_words(tf.constant(texts))
    rows, positions, truncated = serving.word_rows(tokenizer, words.strings, max_seq_length)
    for number, text in enumerate(texts):
        sentence = tagging.TaggedSentence(tuple(text.split()), None, 1)
        features = tagging.make_features([sentence], tokenizer, ("A",), max_seq_length)
        end = features.row_splits[1]  # of the first row
        assert rows.input_ids[number].numpy().tolist() == features.input_ids[:end].tolist()
        expected = features.word_positions[features.word_positions < end]
        assert positions[number].numpy().tolist() == expected.tolist()
        whole = sum(map(len, tokenizer.encode(text.split())))
        assert bool(truncated[number]) == (whole > max_seq_length - 2)


@pytest.mark.parametrize("max_seq_length", [5, 6, 16, 17, 64])
def test_pairs_become_the_features_of_the_classification_reader(
    tokenizer, small_world, max_seq_length
):
    chooser = random.Random(max_seq_length)
    sentences = sentences_of(small_world)

    def text():
        return " ".join(chooser.choices(sentences, k=chooser.randrange(4)))

    pairs = [classification.SentencePair(text(), text(), None, 1) for _ in range(100)]
    pairs += [
        classification.SentencePair(first, second, None, 1)
        for first in ("", "  ", ODD[-1], sentences[0])
        for second in ("", "\x00", sentences[-1])
    ]
    rows, truncated = serving.pair_rows(
        tokenizer,
        tf.constant([pair.first for pair in pairs]),
        tf.constant([pair.second for pair in pairs]),
        max_seq_length,
    )
    features = classification.make_features(pairs, tokenizer, ("A",), max_seq_length)
    assert_rows(rows, features, tokenizer)
    whole = classification.make_features(pairs, tokenizer, ("A",), 1000)
    np.testing.assert_array_equal(truncated, whole.row_lengths > max_seq_length)
    assert 0 < np.sum(truncated) < len(pairs)


def test_texts_are_cut_at_their_end(tokenizer, small_world):
    texts = [*sentences_of(small_world), *ODD]
    rows, truncated = serving.text_rows(tokenizer, tf.constant(texts), 8)
    for row, ids, cut in zip(
        rows.input_ids.to_list(), tokenizer.encode(texts), truncated.numpy(), strict=True
    ):
        assert row == [tokenizer.cls_id, *ids[:6].tolist(), tokenizer.sep_id]
        assert cut == (len(ids) > 6)
    assert set(rows.token_type_ids.values.numpy()) == {0}


def test_each_literal_mask_becomes_the_mask_piece(tokenizer):
    texts = [
        "a [MASK] b",
        "[MASK]",
        "[MASK][MASK] c",
        "",
        "家[MASK]\U0001f600[MASK]",
        "[MASK",
        "[mask]",
    ]
    rows, masks, truncated = serving.masked_rows(tokenizer, tf.constant(texts), 64)
    for number, text in enumerate(texts):
        parts = [ids.tolist() for ids in tokenizer.encode(text.split("[MASK]"))]
        ids = parts[0] + [i for part in parts[1:] for i in (tokenizer.mask_id, *part)]
        row = rows.input_ids[number].numpy().tolist()
        assert row == [tokenizer.cls_id, *ids, tokenizer.sep_id]
        positions = masks.positions[number].numpy().tolist()
        assert positions == [p for p, i in enumerate(row) if i == tokenizer.mask_id]
        starts = masks.starts[number].numpy().tolist()
        assert [text[s : s + 6] for s in starts] == ["[MASK]"] * (len(parts) - 1)
        assert starts == sorted(set(starts))
    assert not np.any(truncated)
    _, masks, truncated = serving.masked_rows(tokenizer, tf.constant(["[MASK]" * 9, "x"]), 6)
    assert masks.positions.to_list() == [[1, 2, 3, 4], []]
    assert masks.starts.to_list() == [[0, 6, 12, 18], []]
    assert truncated.numpy().tolist() == [True, False]


def test_bytes_that_are_no_utf8_become_replacement_characters():
    strings = [b"a\xffb", b"\xe4\xb8", b"\x00 \x01", "é \U0001f600".encode(), b""]
    made = serving.valid_text(tf.constant(strings)).numpy().tolist()
    assert made[0] == "a\ufffdb".encode() and made[1].decode().strip("\ufffd") == ""
    assert made[1] and made[2:] == strings[2:]


def test_pieces_are_spelled_as_the_vocabulary_has_them(tokenizer):
    ids = np.arange(300).reshape(3, 100).astype("int32")
    spelled = [piece.decode() for piece in serving.spell(tokenizer, ids).numpy().ravel()]
    assert spelled == tokenizer.pieces()


def test_graphs_of_open_shape_give_the_same(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def all_of_it(text):
        words = split_words(text)
        return (
            words,
            serving.word_rows(tokenizer, words.strings, 12),
            serving.pair_rows(tokenizer, text, text[::-1], 12),
            serving.masked_rows(tokenizer, text, 12),
        )

    for texts in ([*ODD, "The old [MASK] reads a book in the garden"], []):
        text = tf.constant(texts, tf.string)
        pairs = zip(
            *(
                tf.nest.flatten(function(text), expand_composites=True)
                for function in (all_of_it, all_of_it.python_function)
            ),
            strict=True,
        )
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)
