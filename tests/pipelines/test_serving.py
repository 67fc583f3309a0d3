import random
import sys

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import classification, serving, tagging

AWKWARD = [
    "",
    "   ",
    "one",
    " leading and  trailing ",
    "tab\tnew\nline\r\nform\x0cfeed",
    "no\u00a0break ideographic\u3000space next\u0085line",
    "zero\u200bwidth joiner\u200dkept mark\ufeff",
    "emoji \U0001f469\u200d\U0001f52c \U0001f1ea\U0001f1fa end",
    "e\u0301 \u0301 alone  क्षि",
    "a\x00b \x00 c",
    "\u2028line\u2029paragraph\u205fmath\u1680ogham",
]
INVALID = [b"\xff", b"ab\xffcd \xfe\xfe x", b"cut \xe4\xb8", b"\xc0\x80 \xed\xa0\x80", b"\x80 \x80"]


def python_words(text):
    """Words with first code point and end, by Python's own split."""
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        yield word, start, end


def split(text):
    words = serving.split_words(tf.constant(text, tf.string))
    for row in zip(*(part.to_list() for part in words), strict=True):
        yield [(word.decode(), start, end) for word, start, end in zip(*row, strict=True)]


def test_words_and_offsets_are_those_of_python():
    for text, words in zip(AWKWARD, split([text.encode() for text in AWKWARD]), strict=True):
        assert words == list(python_words(text)), repr(text)


def test_every_code_point_separates_exactly_where_python_does():
    code_points = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    texts = [
        "".join(f"x{chr(c)}" for c in code_points[start : start + 5000])
        for start in range(0, len(code_points), 5000)
    ]
    words = serving.split_words(tf.constant([text.encode() for text in texts]))
    assert words.strings.to_list() == [[w.encode() for w in text.split()] for text in texts]


@pytest.mark.parametrize("text", INVALID)
def test_bytes_that_are_no_utf8_are_replaced(text):
    """How many U+FFFD a broken sequence becomes is the decoder's choice; the rest stays in place."""
    (words,) = split([text])
    assert "".join(word for word, _, _ in words).replace("\ufffd", "") == "".join(
        text.decode(errors="ignore").split()
    )
    assert any("\ufffd" in word for word, _, _ in words)
    assert all(end - start == len(word) for word, start, end in words)
    assert len(words) == len(text.decode(errors="replace").split())


def test_no_string_at_all():
    words = serving.split_words(tf.zeros([0], tf.string))
    assert words.strings.to_list() == words.starts.to_list() == words.ends.to_list() == []


def test_graphs_of_open_shape_give_the_same(tokenizer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def both(text):
        words = serving.split_words(text)
        return words, serving.word_features(tokenizer, words.strings, 12)

    text = tf.constant([text.encode() for text in AWKWARD] + INVALID)
    in_graph = both(text)
    words = serving.split_words(text)
    eager = (words, serving.word_features(tokenizer, words.strings, 12))
    in_graph, eager = (tf.nest.flatten(made, expand_composites=True) for made in (in_graph, eager))
    for a, b in zip(in_graph, eager, strict=True):
        np.testing.assert_array_equal(a, b)


def padded(features, name, filling):
    rows = np.split(getattr(features, name), features.row_splits[1:-1])
    width = max(map(len, rows))
    return [list(row) + [filling] * (width - len(row)) for row in rows]


def assert_rows(made, features, tokenizer):
    np.testing.assert_array_equal(
        made["input_ids"], padded(features, "input_ids", tokenizer.pad_id)
    )
    np.testing.assert_array_equal(made["token_type_ids"], padded(features, "token_type_ids", 0))
    lengths = features.row_lengths
    np.testing.assert_array_equal(
        made["attention_mask"], np.arange(lengths.max()) < lengths[:, np.newaxis]
    )
    assert {value.dtype for value in made.values()} == {tf.int32}


def test_words_become_the_features_of_the_tagging_reader(tokenizer, small_world):
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    sentences += ["zero \u200b word", "x", "\ufffd \U0001f600 alone"]
    words = serving.split_words(tf.constant([text.encode() for text in sentences]))
    made, positions, truncated = serving.word_features(tokenizer, words.strings, 128)
    features = tagging.make_features(
        [tagging.TaggedSentence(tuple(text.split()), None, 1) for text in sentences],
        tokenizer, ("A",), 128,
    )  # fmt: skip
    assert features.num_rows == len(sentences)  # each fits into one row
    assert_rows(made, features, tokenizer)
    starts = np.repeat(features.row_splits[:-1], features.words_of_sentence)
    np.testing.assert_array_equal(positions[positions >= 0], features.word_positions - starts)
    np.testing.assert_array_equal(tf.reduce_sum(tf.cast(positions >= 0, tf.int32), axis=1),
                                  features.words_of_sentence)  # fmt: skip
    assert not np.any(truncated)


@pytest.mark.parametrize("max_seq_length", [3, 4, 7, 12])
def test_words_beyond_the_limit_have_no_position(tokenizer, max_seq_length):
    text = "The old man reads a book in the garden."
    words = serving.split_words(tf.constant([text, "a"]))
    made, positions, truncated = serving.word_features(tokenizer, words.strings, max_seq_length)
    whole, all_positions, _ = serving.word_features(tokenizer, words.strings, 128)
    expected = np.where(all_positions.numpy() <= max_seq_length - 2, all_positions, -1)
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(
        made["input_ids"][:, :-1], whole["input_ids"][:, : max_seq_length - 1]
    )
    assert made["input_ids"].shape[1] == max_seq_length
    assert int(made["input_ids"][0, -1]) == tokenizer.sep_id
    assert truncated.numpy().tolist() == [True, False]


@pytest.mark.parametrize("max_seq_length", [5, 6, 16, 17, 64])
def test_pairs_become_the_features_of_the_classification_reader(
    tokenizer, small_world, max_seq_length
):
    chooser = random.Random(max_seq_length)
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]

    def text():
        return " ".join(chooser.choices(sentences, k=chooser.randrange(4)))

    pairs = [classification.SentencePair(text(), text(), None, 1) for _ in range(100)]
    pairs += [
        classification.SentencePair(first, second, None, 1)
        for first in ("", "  ", AWKWARD[7], sentences[0])
        for second in ("", "\x00", sentences[-1])
    ]
    made, truncated = serving.pair_features(
        tokenizer,
        tf.constant([pair.first for pair in pairs]),
        tf.constant([pair.second for pair in pairs]),
        max_seq_length,
    )
    features = classification.make_features(pairs, tokenizer, ("A",), max_seq_length)
    assert_rows(made, features, tokenizer)
    whole = classification.make_features(pairs, tokenizer, ("A",), 1000)
    np.testing.assert_array_equal(truncated, whole.row_lengths > max_seq_length)
    assert 0 < np.sum(truncated) < len(pairs)
