"""What is particular to one layer."""

import math

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from rembert_tf.layers import activations, initializers
from rembert_tf.layers.embeddings import Embeddings
from rembert_tf.layers.masked_lm_head import MaskedLMHead
from rembert_tf.layers.self_attention import SelfAttention

RANDOM = np.random.default_rng(0)


def test_activations_against_the_formulas():
    x = np.linspace(-6, 6, 101).astype("float32")
    exact = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x]
    np.testing.assert_allclose(activations.get("gelu")(x), exact, atol=1e-6)
    tanh = [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in x]
    np.testing.assert_allclose(activations.get("gelu_new")(x), tanh, atol=1e-6)
    with pytest.raises(ValueError, match="Received: hidden_act='relu'"):
        activations.get("relu")


def test_gelu_is_made_of_ops_that_onnx_has():
    function = tf.function(activations.gelu).get_concrete_function(tf.TensorSpec((4, 8)))
    types = {op.type for op in function.graph.get_operations()}
    assert "Erf" in types and "Erfc" not in types


def test_fresh_weights():
    draw = initializers.truncated_normal(0.02)
    values = np.array(draw((500, 500), dtype="float32"))
    assert abs(values).max() <= 0.04 + 1e-6
    assert 0.015 < values.std() < 0.02
    other = np.array(initializers.truncated_normal(0.02)((500, 500), dtype="float32"))
    assert np.mean(values == other) < 0.01


def test_embeddings_add_up_and_are_normalized():
    layer = Embeddings(20, 8, max_position_embeddings=6)
    ids, types = np.array([[3, 7, 3]]), np.array([[0, 1, 1]])
    outputs = layer(ids, types)
    words, places, kinds = (
        table.numpy()
        for table in (
            layer.word_embeddings,
            layer.position_embeddings,
            layer.token_type_embeddings,
        )
    )
    total = words[ids] + places[np.arange(3)] + kinds[types]
    expected = (total - total.mean(-1, keepdims=True)) / total.std(-1, keepdims=True)
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
    assert not np.allclose(outputs, layer(ids))


def test_embeddings_cast_what_was_gathered_and_not_the_table():
    layer = Embeddings(20, 8, dtype="mixed_bfloat16")
    function = tf.function(lambda ids: layer(ids))
    graph = function.get_concrete_function(tf.TensorSpec((2, 5), tf.int32)).graph
    casts = [op for op in graph.get_operations() if op.type == "Cast"]
    assert casts and all(tuple(op.inputs[0].shape) != (20, 8) for op in casts)


def test_embeddings_refuse_a_sequence_without_positions():
    with pytest.raises(ValueError, match="Received: length 7, max_position_embeddings=6"):
        Embeddings(20, 8, max_position_embeddings=6)(np.zeros((1, 7), "int32"))


def test_head_gathers_what_it_would_have_projected():
    head = MaskedLMHead(20, 8, 12, initializer_range=0.5)
    hidden_states = RANDOM.normal(size=(3, 5, 8)).astype("float32")
    positions = np.array([[0, 4], [2, 2], [4, 1]])
    everything = ops.convert_to_numpy(head(hidden_states))
    expected = np.take_along_axis(everything, positions[..., None], axis=1)
    np.testing.assert_allclose(head(hidden_states, positions), expected, rtol=1e-5, atol=1e-5)


def test_attention_against_a_loop():
    layer = SelfAttention(6, 2, initializer_range=0.5)
    x = RANDOM.normal(size=(2, 4, 6)).astype("float32")
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 1]], bool)
    outputs = ops.convert_to_numpy(layer(x, mask))
    projections = (layer.query, layer.key, layer.value)
    query, key, value = (x @ p.kernel.numpy() + p.bias.numpy() for p in projections)
    expected = np.zeros_like(x)
    for example in range(2):
        seen = np.flatnonzero(mask[example])
        for head in (slice(0, 3), slice(3, 6)):
            for place in range(4):
                scores = key[example, seen, head] @ query[example, place, head] / math.sqrt(3)
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                expected[example, place, head] = weights @ value[example, seen, head]
    expected = expected @ layer.output_dense.kernel.numpy() + layer.output_dense.bias.numpy()
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_attention_with_large_scores_and_little_or_nothing_to_see(policy):
    layer = SelfAttention(4, 1, dtype=policy)
    layer.build()
    for dense in (layer.query, layer.key, layer.value, layer.output_dense):
        dense.kernel.assign(np.eye(4))
    rows = np.array([5.0, -5.0, 5.0])  # scores of +50 with their like and -50 with their opposite
    x = tf.constant(np.tile(rows[:, None], (3, 1, 4)), "float32")
    mask = tf.constant([[True, True, True], [True, False, False], [False, False, False]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.cast(layer(x, mask), "float32")
        loss = tf.reduce_sum(tf.square(outputs))
    gradients = tape.gradient(loss, [x, *(weight.value for weight in layer.weights)])
    # What is like the query; the only token that may be seen; the mean of all values.
    expected = [rows, np.full(3, 5.0), np.full(3, rows.mean())]
    np.testing.assert_allclose(outputs[..., 0], expected, rtol=0.01)
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


@pytest.mark.parametrize("scale", [1e-5, 1e4])
def test_normalization_of_half_precision_is_computed_in_float32(scale):
    """In float16 the squares of 1e4 are infinite, those of 1e-5 are 0, and so is the epsilon."""
    layer = Embeddings(20, 8, max_position_embeddings=6, dtype="mixed_float16")
    layer.build()
    row = np.array([1.0, -1.0, 2.0, -2.0, 1.0, -1.0, 2.0, -2.0])
    layer.word_embeddings.assign(np.tile(scale * row, (20, 1)))
    for table in (layer.position_embeddings, layer.token_type_embeddings):
        table.assign(np.zeros(table.shape))
    outputs = tf.cast(layer(np.array([[3, 7]])), "float32")
    np.testing.assert_allclose(outputs[0], [row / np.sqrt(2.5)] * 2, rtol=0.02)
