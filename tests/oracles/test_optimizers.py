"""Our optimizers against Model Garden's, for the settings that both have.

Where they differ: Model Garden finds the variables that are not decayed by patterns in their names, we by the
variables themselves; its AdamWeightDecay clips the gradients of each replica before they are summed, our trainer has
the sum clipped; and its AdamWeightDecay's epsilon is 1e-7 unless it is set, ours is 1e-6, as BERT's. Both correct
Adam's bias, which BERT's own code does not.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.adamw import AdamW
from rembert_tf.training.lamb import Lamb

pytestmark = pytest.mark.oracle
pytest.importorskip("tf_keras")
pytest.importorskip("official.modeling")
from official.modeling.optimization import lamb, legacy_adamw  # noqa: E402

RANDOM = np.random.default_rng(0)
STARTS = {
    "kernel": RANDOM.normal(size=(4, 3)).astype("float32"),
    "bias": RANDOM.normal(size=3).astype("float32"),
    "zeros": np.zeros((4, 3), "float32"),
}
GRADIENTS = [
    {name: RANDOM.normal(size=start.shape).astype("float32") for name, start in STARTS.items()}
    for _ in range(3)
]
SETTINGS = {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-6}


def ours(optimizer_class, steps, **settings):
    variables = {name: keras.Variable(start, name=name) for name, start in STARTS.items()}
    optimizer = optimizer_class(**SETTINGS, weight_decay=0.1, **settings)
    optimizer.exclude_from_weight_decay(var_list=[variables["bias"]])
    optimizer.build(list(variables.values()))
    for gradients in GRADIENTS[:steps]:
        optimizer.apply([tf.constant(gradients[name]) for name in variables])
    return {name: variable.numpy() for name, variable in variables.items()}


def theirs(optimizer_class, steps, **settings):
    variables = {name: tf.Variable(start, name=name) for name, start in STARTS.items()}
    optimizer = optimizer_class(
        **SETTINGS, weight_decay_rate=0.1, exclude_from_weight_decay=["bias"], **settings
    )
    for gradients in GRADIENTS[:steps]:
        optimizer.apply_gradients(
            (tf.constant(gradients[name]), variable) for name, variable in variables.items()
        )
    return {name: variable.numpy() for name, variable in variables.items()}


def assert_equal(one, other):
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=0, atol=1e-6, err_msg=name)
        assert np.abs(value - STARTS[name]).max() > 1e-3


@pytest.mark.parametrize("steps", [1, 3])
def test_lamb(steps):
    assert_equal(ours(Lamb, steps), theirs(lamb.LAMB, steps))


@pytest.mark.parametrize("steps", [1, 3])
def test_adamw_with_clipping(steps):
    expected = theirs(legacy_adamw.AdamWeightDecay, steps, gradient_clip_norm=1.0)
    assert_equal(ours(AdamW, steps, global_clipnorm=1.0), expected)
