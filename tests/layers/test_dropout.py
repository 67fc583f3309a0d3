import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.layers.dropout import StatelessDropout, random_bits

KEYS = np.array([0, 1, 2**32 - 1], "uint32")


def _mask(dropout, shape=(3, 50, 40), keys=KEYS):
    return dropout(tf.ones(shape), keys, training=True).numpy() != 0


def test_same_key_gives_the_same_mask_in_another_batch():
    dropout = StatelessDropout(0.3, layer_number=7)
    mask = _mask(dropout)
    np.testing.assert_array_equal(_mask(dropout), mask)
    np.testing.assert_array_equal(_mask(dropout, (2, 50, 40), KEYS[[2, 0]]), mask[[2, 0]])


def test_more_padding_leaves_the_old_places_as_they_were():
    dropout = StatelessDropout(0.3, layer_number=7)
    attention = _mask(dropout, (3, 4, 9, 9))
    np.testing.assert_array_equal(_mask(dropout, (3, 4, 12, 12))[:, :, :9, :9], attention)


def test_eager_graph_and_xla_drop_the_same():
    dropout = StatelessDropout(0.3, layer_number=7)
    inputs = tf.random.normal((3, 50, 40))

    def call(inputs, keys):
        return dropout(inputs, keys, training=True)

    eager = call(inputs, KEYS).numpy()
    open_shapes = [tf.TensorSpec([None, None, 40]), tf.TensorSpec([None], tf.uint32)]
    graph = tf.function(call, input_signature=open_shapes)(inputs, tf.constant(KEYS))
    xla = tf.function(call, jit_compile=True)(inputs, tf.constant(KEYS))
    np.testing.assert_array_equal(graph, eager)
    np.testing.assert_array_equal(xla.numpy() != 0, eager != 0)
    np.testing.assert_allclose(xla, eager, rtol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_and_mean(rate):
    values = StatelessDropout(rate, layer_number=1)(tf.ones((3, 400, 300)), KEYS, training=True)
    share = np.mean(values.numpy() == 0, axis=(1, 2))
    deviation = np.sqrt(rate * (1 - rate) / (400 * 300))
    np.testing.assert_allclose(share, rate, atol=5 * deviation)
    np.testing.assert_allclose(np.unique(values), [0, 1 / (1 - rate)], rtol=1e-6)


def test_examples_layers_rows_and_places_are_independent():
    one, other = (_mask(StatelessDropout(0.5, layer_number=n), (3, 200, 200)) for n in (4, 5))
    pairs = {
        "layers": (one, other),
        "examples": (one[0], one[1]),
        "rows": (one[:, 1:], one[:, :-1]),
        "places": (one[..., 1:], one[..., :-1]),
        "transposed": (one, one.swapaxes(1, 2)),
    }
    for name, (a, b) in pairs.items():
        deviation = 0.5 / np.sqrt(a.size)
        assert abs(np.mean(a == b) - 0.5) < 5 * deviation, name


def test_every_bit_is_fair():
    bits = random_bits(tf.constant(KEYS), 3, (3, 300, 300)).numpy()
    shares = [np.mean(bits >> bit & 1) for bit in range(32)]
    np.testing.assert_allclose(shares, 0.5, atol=5 * 0.5 / np.sqrt(bits.size))


def test_identity_without_training_or_rate():
    inputs = tf.ones((3, 4))
    assert StatelessDropout(0.5, layer_number=1).call(inputs, KEYS, training=False) is inputs
    assert StatelessDropout(0.0, layer_number=1).call(inputs, None, training=True) is inputs


def test_gradient_is_the_mask():
    dropout = StatelessDropout(0.5, layer_number=1)
    inputs = tf.random.normal((3, 40))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = dropout(inputs, KEYS, training=True)
    expected = np.where(outputs.numpy() != 0, 2.0, 0.0)
    np.testing.assert_array_equal(tape.gradient(outputs, inputs), expected)


def test_errors():
    with pytest.raises(ValueError, match="`rate` must be at least 0 and below 1. Received: rate=1"):
        StatelessDropout(1, layer_number=0)
    with pytest.raises(ValueError, match="`dropout_keys` must be given in training"):
        StatelessDropout(0.5, layer_number=0)(tf.ones((3, 4)), training=True)
