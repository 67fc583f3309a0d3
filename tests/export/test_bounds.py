"""However many strings and however long, what goes through tokenizer and model at once is bounded."""

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.export.text_signatures import text_signatures
from rembert_tf.pipelines import serving, string_groups
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.tokenization import RemBertTokenizer

SIGNATURES = [
    ("classifier", "serve_pairs", 2), ("tagger", "serve_text", 1), ("tagger", "serve_words", 1),
    ("tagger", "serve_pieces", 1), ("questions", "serve_text", 2), ("masked_lm", "fill_mask", 1),
    ("encoder", "embed", 1),
]  # fmt: skip


@pytest.fixture
def seen(monkeypatch):
    """Shapes of the batches for the model, and bytes of the strings that are split into pieces at once."""
    batches, sizes = [], []
    padded = serving.Rows.padded

    def padded_and_seen(rows, numbers, pad_id):
        features = padded(rows, numbers, pad_id)
        (shape,) = tf.numpy_function(
            lambda ids: batches.append(ids.shape) or np.array(ids.shape, np.int64),
            [features["input_ids"]], [tf.int64],
        )  # fmt: skip
        features["input_ids"] = tf.reshape(features["input_ids"], tf.ensure_shape(shape, [2]))
        return features

    def with_sizes(function):
        def seen_first(tokenizer, strings):
            (strings,) = tf.numpy_function(
                lambda given: sizes.append(sum(map(len, given))) or given, [strings], [tf.string]
            )
            return function(tokenizer, tf.ensure_shape(strings, [None]))

        return seen_first

    monkeypatch.setattr(serving.Rows, "padded", padded_and_seen)
    for cls in (RemBertTokenizer, SpanTokenizer):
        monkeypatch.setattr(cls, "tokenize", with_sizes(cls.tokenize))
    return batches, sizes


@pytest.mark.parametrize("name, signature, inputs", SIGNATURES)
def test_neither_rows_nor_bytes_pile_up(
    models, tokenizer, settings, small_world, seen, name, signature, inputs
):
    batches, sizes = seen
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    long = " ".join(sentences[:40])  # some 1,600 bytes
    texts = [*sentences, *[long] * 200, "", "[MASK]"]
    assert sum(len(text.encode()) for text in texts) > string_groups.MOST_BYTES
    columns = texts
    if signature == "serve_words":
        columns = np.array([(text.split() + [""] * 150)[:150] for text in texts], object)
    ask = text_signatures(models[name], tokenizer, settings)[0][signature]
    answer = ask(*[tf.constant(columns)] * inputs)
    assert len(sizes) > 1 and 0 < max(sizes) <= string_groups.MOST_BYTES
    assert max(rows for rows, _ in batches) == settings.rows_per_batch
    assert max(width for _, width in batches) <= settings.max_seq_length
    few = ask(*[tf.constant(columns[-5:])] * inputs)
    for key, value in few.items():
        last = answer[key][-5:].numpy()
        if value.shape.rank > 1:
            last = last[:, : value.shape[1]]
        if value.dtype.is_floating:
            np.testing.assert_allclose(value, last, atol=1e-5)
        else:
            assert np.array_equal(value, last), key


def test_windows_of_a_long_context_go_through_the_model_a_few_at_a_time(
    models, tokenizer, settings, seen
):
    batches, sizes = seen
    ask = text_signatures(models["questions"], tokenizer, settings)[0]["serve_text"]
    context = "The old man reads a book. " * 2_000
    answer = ask(tf.constant(["who?"]), tf.constant([context]))
    assert answer["answer"][0] != b"" and max(sizes) == len(context)
    assert sum(rows for rows, _ in batches) > 1_000
    assert max(rows for rows, _ in batches) == settings.rows_per_batch
