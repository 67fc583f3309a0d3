import keras
import numpy as np
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.config import OptimizerConfig
from rembert_tf.training.optimizers import AdamW, excluded_variables, make_optimizer
from rembert_tf.training.schedules import WarmupPolynomialDecay


def test_schedule_at_its_corners():
    schedule = WarmupPolynomialDecay(1.0, warmup_steps=4, total_steps=10, end=0.1)
    rates = [float(schedule(step)) for step in (0, 1, 3, 4, 7, 10, 99)]
    # Warm-up: 1/4, 2/4, 4/4; then 0.1 + 0.9 * (10 - s) / 6.
    np.testing.assert_allclose(rates, [0.25, 0.5, 1.0, 1.0, 0.55, 0.1, 0.1], rtol=1e-6)


def test_schedule_without_warmup_and_with_a_power():
    schedule = WarmupPolynomialDecay(2.0, warmup_steps=0, total_steps=4, power=2.0)
    np.testing.assert_allclose([float(schedule(s)) for s in (0, 2, 4)], [2.0, 0.5, 0.0])


@pytest.mark.parametrize("warmup", [-1, 10, 11])
def test_schedule_refuses_a_warmup_that_does_not_fit(warmup):
    with pytest.raises(ValueError, match=f"Received: warmup_steps={warmup}, total_steps=10"):
        WarmupPolynomialDecay(1.0, warmup, 10)


def test_schedule_and_optimizer_serialize():
    schedule = WarmupPolynomialDecay(1.0, 2, 8, end=0.1, power=2.0)
    optimizer = AdamW(learning_rate=schedule, weight_decay=0.01)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(optimizer))
    assert isinstance(again, AdamW)
    assert again._learning_rate.get_config() == schedule.get_config()


def numpy_adamw(weight, gradients, rate, decay, beta_1=0.9, beta_2=0.999, epsilon=1e-6):
    m = v = np.zeros_like(weight)
    for step, gradient in enumerate(gradients, 1):
        weight = weight - weight * decay * rate
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        alpha = rate * np.sqrt(1 - beta_2**step) / (1 - beta_1**step)
        weight = weight - alpha * m / (np.sqrt(v) + epsilon)
    return weight


def test_three_steps_equal_numpy_and_keras():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(4, 3)).astype("float32")
    gradients = [rng.normal(size=(4, 3)).astype("float32") for _ in range(3)]
    gradients[1][2] = 0  # a row that does not occur still moves, by its momentum
    expected = numpy_adamw(start.astype("float64"), gradients, 0.1, 0.01)
    for optimizer_class in (AdamW, keras.optimizers.AdamW):
        variable = keras.Variable(start, name="kernel")
        optimizer = optimizer_class(learning_rate=0.1, weight_decay=0.01, epsilon=1e-6)
        optimizer.build([variable])
        for gradient in gradients:
            optimizer.apply([keras.ops.convert_to_tensor(gradient)])
        np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-6, atol=2e-6)


@pytest.fixture(scope="module")
def model():
    config = RemBertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6, id2label=("A", "B"),
    )  # fmt: skip
    return RemBertForTokenClassification(config)


def test_decayed_are_exactly_kernels_and_tables(model):
    optimizer = make_optimizer(OptimizerConfig(), model, 100)
    decayed = {v.path for v in model.trainable_variables if optimizer._use_weight_decay(v)}
    expected = {v.path for v in model.trainable_variables if len(v.shape) > 1}
    assert decayed == expected
    assert any("word_embeddings" in path for path in decayed)


def test_a_name_that_matches_nothing_is_refused(model):
    with pytest.raises(ValueError, match=r"exclude_from_weight_decay=\['bias', 'layer_norm'\]"):
        excluded_variables(model, ("bias", "layer_norm"))


def test_warmup_is_a_share_of_the_run_or_a_number():
    assert OptimizerConfig().resolved_warmup_steps(50) == 5
    assert OptimizerConfig(warmup_steps=7).resolved_warmup_steps(50) == 7


@pytest.mark.parametrize(
    "changes", [{"learning_rate": 0.0}, {"warmup_proportion": 1.0}, {"global_clip_norm": -1.0}]
)
def test_wrong_settings_name_the_field_and_the_value(changes):
    (name, value), *_ = changes.items()
    with pytest.raises(ValueError, match=rf"`{name}`.*Received: {name}={value}"):
        OptimizerConfig(**changes)
