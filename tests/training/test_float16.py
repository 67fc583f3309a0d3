"""mixed_float16 in the trainer: a loss scale that is too large at first, and a row that is all padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.training.config import DistributionConfig, OptimizerConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.pretraining import masked_lm_trainer


@pytest.mark.parametrize("replicas, jit_compile", [(1, False), (2, True)])  # case C8
def test_overflowing_steps_are_skipped_and_only_updates_count(replicas, jit_compile):
    random = np.random.default_rng(0)
    features = {
        "input_ids": random.integers(5, 30, (3, 8)).astype("int32"),
        "attention_mask": np.array([[1] * 8, [0] * 8, [1] * 5 + [0] * 3], "int32"),
        "masked_lm_positions": np.array([[1, 2], [3, 4], [2, 3]], "int32"),
    }
    labels = random.integers(5, 30, (3, 2)).astype("int32")
    batch = (features, labels, np.ones((3, 2), "float32"))
    keras.utils.set_random_seed(0)
    config = RemBertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8,
    )  # fmt: skip
    distribution = DistributionConfig(
        distribution="mirrored" if replicas > 1 else "one_device",
        cpu_replicas=replicas if replicas > 1 else 0,
        jit_compile=jit_compile,
    )
    settings = OptimizerConfig(learning_rate=1e-2, warmup_steps=0)
    with make_strategy(distribution).scope():
        model = RemBertForMaskedLM(config, dtype="mixed_float16")
        trainer = masked_lm_trainer(model, settings, distribution, total_steps=100)
    scale = trainer.optimizer.dynamic_scale
    scale.assign(2.0**30)

    losses = trainer.fit(tf.data.Dataset.from_tensors(batch).repeat(40), verbose=0).history["loss"]
    skipped, updates = int(trainer.skipped_steps.numpy()), int(trainer.optimizer.iterations.numpy())
    assert (
        0 < skipped < 30 and updates == 40 - skipped == int(trainer.batch_number.numpy()) - skipped
    )
    assert float(scale.numpy()) == 2.0 ** (30 - skipped)
    expected_rate = 1e-2 * (100 - updates) / 100
    np.testing.assert_allclose(float(trainer.optimizer.learning_rate), expected_rate, rtol=1e-6)
    assert np.isfinite(losses).all() and 0 < float(trainer.gradient_norm.numpy()) < 100
    assert all(np.isfinite(variable.numpy()).all() for variable in model.variables)
    assert trainer.evaluate(tf.data.Dataset.from_tensors(batch), verbose=0)[0] < losses[0] / 2
