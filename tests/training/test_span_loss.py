import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.span_loss import span_loss


def test_by_hand():
    logits = {
        "start_logits": tf.math.log([[1.0, 2.0, 1.0, 100.0]]),
        "end_logits": tf.math.log([[4.0, 1.0, 3.0, 100.0]]),
    }
    # The fourth position is padding: 2 of 4 for the start, 3 of 8 for the end.
    loss = span_loss(tf.constant([[1, 2, 3]]), logits)
    assert loss.numpy() == pytest.approx([-(np.log(2 / 4) + np.log(3 / 8)) / 2])


def test_it_does_not_depend_on_the_padding():
    generator = np.random.default_rng(0)
    lengths = np.array([5, 3, 7])
    labels = tf.constant(np.stack([[1, 0, 6], [4, 0, 6], lengths], axis=1), tf.int32)
    real = generator.normal(size=(2, 3, 7)).astype(np.float32)
    losses = []
    for width in (7, 16):
        start, end = generator.normal(size=(2, 3, width)).astype(np.float32)
        for row, length in enumerate(lengths):
            start[row, :length], end[row, :length] = real[:, row, :length]
        with tf.GradientTape() as tape:
            starts, ends = tf.Variable(start), tf.Variable(end)
            loss = span_loss(labels, {"start_logits": starts, "end_logits": ends})
        losses.append(loss.numpy())
        gradient = tape.gradient(loss, starts).numpy()
        is_real = np.arange(width) < lengths[:, np.newaxis]
        assert np.all(gradient[~is_real] == 0) and np.all(np.isfinite(gradient))
        np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(*losses, rtol=1e-6)
