import keras
import numpy as np
import pytest

from rembert_tf.training.schedules import WarmupPolynomialDecay


def rates(schedule, *steps):
    return [float(schedule(step)) for step in steps]


def test_warmup_and_straight_line_at_their_corners():
    schedule = WarmupPolynomialDecay(1.0, warmup_steps=4, total_steps=10, end=0.1)
    # Warm-up: 1/4, 2/4, 4/4; then 0.1 + 0.9 * (10 - s) / 6.
    expected = [0.25, 0.5, 1.0, 1.0, 0.55, 0.1, 0.1]
    np.testing.assert_allclose(rates(schedule, 0, 1, 3, 4, 7, 10, 99), expected, rtol=1e-6)


def test_a_power_without_warmup():
    schedule = WarmupPolynomialDecay(2.0, warmup_steps=0, total_steps=4, power=2.0)
    np.testing.assert_allclose(rates(schedule, 0, 2, 4), [2.0, 0.5, 0.0])


def test_power_zero_is_constant_after_the_warmup():
    schedule = WarmupPolynomialDecay(3.0, warmup_steps=2, total_steps=4, power=0.0)
    np.testing.assert_allclose(rates(schedule, 0, 1, 2, 3, 4, 99), [1.5, 3, 3, 3, 3, 3])


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_a_warmup_that_does_not_fit_is_refused(warmup):
    with pytest.raises(ValueError, match=f"Received: warmup_steps={warmup}, total_steps=10"):
        WarmupPolynomialDecay(1.0, warmup, 10)


def test_a_negative_power_is_refused():
    with pytest.raises(ValueError, match="`power`.*Received: power=-1"):
        WarmupPolynomialDecay(1.0, 0, 10, power=-1)


def test_it_serializes():
    schedule = WarmupPolynomialDecay(1.0, 2, 8, end=0.1, power=2.0)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert again.get_config() == schedule.get_config()
