import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import string_groups
from rembert_tf.pipelines.string_groups import in_groups


@pytest.fixture(autouse=True)
def rows_count_nothing(monkeypatch):
    monkeypatch.setattr(string_groups, "_ROW", 0)


# Bytes of neighbours, 16 more a string: 20, 20, 20, 66, 16, 16, 16, 516, 17
TEXTS = ["abcd", "efgh", "ijkl", "m" * 50, "", "", "", "n" * 500, "o"]


def run(texts, most_bytes):
    """Returns the texts, the size of each one's group, and its characters, all made group by group."""

    def function(text, other):
        characters = tf.strings.unicode_split(text, "UTF-8")
        twice = characters.with_values(tf.stack([characters.values] * 2, axis=1))
        size = tf.fill(tf.shape(text), tf.size(text))
        return {"text": text + other, "size": size, "characters": characters, "twice": twice}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def call(text):
        made = in_groups(function, text, tf.fill(tf.shape(text), ""), most_bytes=most_bytes)
        assert made["text"].shape.as_list() == [None]
        assert made["twice"].shape.as_list() == [None, None, 2]
        return made

    return call(tf.constant(texts, tf.string))


# The second, empty input counts 16 a string, too.
@pytest.mark.parametrize(
    "most_bytes, sizes",
    [
        (1, [1] * 9),
        (108, [3, 3, 3, 1, 3, 3, 3, 1, 1]),
        (180, [3, 3, 3, 4, 4, 4, 4, 1, 1]),
        (10**6, [9] * 9),
    ],
)
def test_neighbours_are_joined_until_they_are_too_many_bytes(most_bytes, sizes):
    made = run(TEXTS, most_bytes)
    assert made["text"].numpy().tolist() == [text.encode() for text in TEXTS]
    assert made["size"].numpy().tolist() == sizes
    characters = [[c.encode() for c in text] for text in TEXTS]
    assert made["characters"].to_list() == characters
    assert made["twice"].to_list() == [[[c, c] for c in row] for row in characters]


def test_no_string_at_all_is_one_empty_group():
    made = run([], 10)
    assert all(value.shape[0] == 0 for value in made.values())
    assert made["twice"].values.shape == (0, 2)


def test_rows_of_words_are_kept_together():
    words = np.array([["a", "b", ""], ["c", "", ""], ["d" * 99, "e", "f"], ["", "", ""]], object)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.string)])
    def call(words):
        function = lambda rows: {  # noqa: E731
            "words": rows, "size": tf.fill(tf.shape(rows)[:1], tf.shape(rows)[0])
        }  # fmt: skip
        return in_groups(function, words, most_bytes=100)

    made = call(tf.constant(words))
    np.testing.assert_array_equal(made["words"].numpy().astype(str), words.astype(str))
    assert made["size"].numpy().tolist() == [2, 2, 1, 1]
    assert call(tf.zeros([0, 3], tf.string))["words"].shape == (0, 3)


def test_inputs_of_different_numbers_are_refused():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def call(one, other):
        return in_groups(lambda a, b: {"a": a, "b": b}, one, other)

    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.constant(["a", "b"]), tf.constant(["c"]))
