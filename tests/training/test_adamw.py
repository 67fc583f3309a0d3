import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.adamw import AdamW
from rembert_tf.training.schedules import WarmupPolynomialDecay

RANDOM = np.random.default_rng(0)
START = RANDOM.normal(size=(4, 3)).astype("float32")
GRADIENTS = RANDOM.normal(size=(3, 4, 3)).astype("float32")
GRADIENTS[1, 2] = 0  # a row that does not occur still moves, by its momentum


def numpy_adamw(weight, gradients, rate, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    weight = weight.astype("float64")
    m = v = np.zeros_like(weight)
    for step, gradient in enumerate(gradients, 1):
        weight = weight - weight * decay * rate
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        alpha = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        weight = weight - alpha * m / (np.sqrt(v) + epsilon)
    return weight


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("optimizer_class", [AdamW, keras.optimizers.AdamW])
def test_steps_equal_numpy_and_keras(steps, optimizer_class):
    variable = keras.Variable(START, name="kernel")
    optimizer = optimizer_class(learning_rate=0.01, weight_decay=0.1, epsilon=1e-6)
    optimizer.build([variable])
    for gradient in GRADIENTS[:steps]:
        optimizer.apply([tf.constant(gradient)])
    expected = numpy_adamw(START, GRADIENTS[:steps], 0.01, 0.1)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=0, atol=1e-6)


def test_a_variable_with_a_factor_learns_and_decays_by_that_share():
    slow, fast = keras.Variable(START), keras.Variable(START)
    optimizer = AdamW(0.01, weight_decay=0.1, epsilon=1e-6, rate_factors=[0.5, 1])
    optimizer.build([slow, fast])
    for gradient in GRADIENTS:
        optimizer.apply([tf.constant(gradient)] * 2)
    for variable, rate in ((slow, 0.005), (fast, 0.01)):
        expected = numpy_adamw(START, GRADIENTS, rate, 0.1)
        np.testing.assert_allclose(variable.numpy(), expected, rtol=0, atol=1e-6)


def test_factors_for_other_variables_are_refused():
    with pytest.raises(ValueError, match="`rate_factors`.* 1 variables. Received: 2 factors"):
        AdamW(rate_factors=[0.5, 1]).build([keras.Variable(START)])


def test_it_serializes():
    schedule = WarmupPolynomialDecay(1.0, 2, 8)
    optimizer = AdamW(schedule, weight_decay=0.01, rate_factors=[0.5, 1])
    for original in (optimizer, keras.optimizers.LossScaleOptimizer(optimizer)):
        again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(original))
        assert again.get_config() == original.get_config()
