import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.config import DistributionConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.lamb import Lamb

RANDOM = np.random.default_rng(0)
# A matrix, the same with a bias' rules, and a matrix of zeros.
STARTS = [RANDOM.normal(size=(4, 3)).astype("float32")] * 2 + [np.zeros((4, 3), "float32")]
GRADIENTS = RANDOM.normal(size=(3, 4, 3)).astype("float32")


def numpy_lamb(weight, gradients, adapted, rate=0.01, decay=0.1, beta_1=0.9, beta_2=0.999):
    weight = weight.astype("float64")
    m = v = np.zeros_like(weight)
    for step, gradient in enumerate(gradients, 1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        update = m / (1 - beta_1**step) / (np.sqrt(v / (1 - beta_2**step)) + 1e-6)
        ratio = 1.0
        if adapted:
            update = update + decay * weight
            norms = np.linalg.norm(weight), np.linalg.norm(update)
            ratio = norms[0] / norms[1] if all(norms) else 1.0
        weight = weight - rate * ratio * update
    return weight


def lamb_steps(gradients, strategy=None, jit_compile=False):
    """Returns three variables after some steps; the second is neither decayed nor adapted."""
    strategy = strategy or tf.distribute.get_strategy()
    with strategy.scope():
        variables = [keras.Variable(start) for start in STARTS]
        optimizer = Lamb(learning_rate=0.01, weight_decay=0.1, epsilon=1e-6)
        optimizer.exclude_from_weight_decay(var_list=variables[1:2])
        optimizer.build(variables)
    optimizer._all_reduce_sum_gradients = list  # as the trainer does

    @tf.function(jit_compile=jit_compile)
    def step(gradient):
        strategy.run(lambda g: optimizer.apply([g] * 3), args=(gradient,))

    for gradient in gradients:
        step(tf.constant(gradient))
    return [variable.numpy() for variable in variables]


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_steps_equal_numpy(steps, jit_compile):
    after = lamb_steps(GRADIENTS[:steps], jit_compile=jit_compile)
    for value, start, adapted in zip(after, STARTS, (True, False, True), strict=True):
        expected = numpy_lamb(start, GRADIENTS[:steps], adapted)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6)


def test_two_replicas_give_the_weights_of_one_device():
    mirrored = make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2))
    for one, two in zip(lamb_steps(GRADIENTS), lamb_steps(GRADIENTS, mirrored), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-6)


def test_the_ratio_is_one_where_the_update_is_zero():
    variable = keras.Variable(STARTS[0])
    optimizer = Lamb(learning_rate=0.01, weight_decay=0.0)
    optimizer.build([variable])
    optimizer.apply([tf.zeros_like(STARTS[0])])
    np.testing.assert_array_equal(variable.numpy(), STARTS[0])


def test_it_serializes():
    optimizer = Lamb(0.1, weight_decay=0.01, epsilon=1e-6, rate_factors=[0.5, 1])
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert isinstance(again, Lamb) and again.get_config() == optimizer.get_config()
