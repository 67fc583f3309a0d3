import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.training.config import FinetuningConfig, OptimizerConfig
from rembert_tf.training.layer_decay import layer_rate_factors
from rembert_tf.training.optimizers import make_optimizer

# By hand, for three layers and a decay of 1/2.
FACTORS = {
    "rembert/embeddings": 1 / 16,
    "rembert/input_projection": 1 / 16,
    "rembert/layer_0": 1 / 8,
    "rembert/layer_1": 1 / 4,
    "rembert/layer_2": 1 / 2,
    "rembert/pooler": 1,
    "classifier": 1,
}


@pytest.fixture(scope="module")
def model():
    config = RemBertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6, id2label=("A", "B"),
    )  # fmt: skip
    return RemBertForSequenceClassification(config)


def expected_factor(variable):
    (factor,) = (f for part, f in FACTORS.items() if f"/{part}/" in f"/{variable.path}")
    return factor


def test_factors_by_hand(model):
    expected = [expected_factor(variable) for variable in model.trainable_variables]
    assert layer_rate_factors(model, 0.5) == expected
    assert set(expected) == set(FACTORS.values())


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_a_step_moves_each_variable_by_its_share(model, name, caplog):
    """The gradient is 1, so Adam's first step is the learning rate; biases are neither decayed nor adapted."""
    caplog.set_level("INFO", logger="absl")
    config = OptimizerConfig(optimizer=name, learning_rate=0.01, warmup_steps=0, global_clip_norm=0)
    optimizer = make_optimizer(config, model, 1000, layer_decay=0.5)
    assert (
        "learning rates: head 1, embeddings 0.0625, input_projection 0.0625, layer_0" in caplog.text
    )
    before = [variable.numpy() for variable in model.trainable_variables]
    optimizer.apply([tf.ones(variable.shape) for variable in model.trainable_variables])
    for variable, old in zip(model.trainable_variables, before, strict=True):
        if variable.name in config.exclude_from_weight_decay:
            moved = (old - variable.numpy()) / 0.01
            np.testing.assert_allclose(moved, expected_factor(variable), rtol=1e-3)


def test_frozen_parts_have_no_factor(model):
    model.encoder.embeddings.trainable = False
    factors = layer_rate_factors(model, 0.5)
    model.encoder.embeddings.trainable = True
    assert factors[:2] == [1 / 16, 1 / 16] and factors[2:4] == [1 / 8, 1 / 8]


def test_a_model_without_an_encoder_is_refused():
    with pytest.raises(ValueError, match="`layer_decay`.*Received: layer_decay=0.5, a Sequential"):
        layer_rate_factors(keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]), 0.5)


@pytest.mark.parametrize("value", [0.0, 1.1])
def test_a_decay_outside_its_range_is_refused(value):
    with pytest.raises(ValueError, match=f"`layer_decay`.*Received: layer_decay={value}"):
        FinetuningConfig(init_checkpoint="model", layer_decay=value)
