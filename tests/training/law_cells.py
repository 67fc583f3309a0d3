"""A small masked LM, trained on the same data with any settings, on any devices: the cells of the law's table."""

import keras
import numpy as np
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.training.config import DistributionConfig, OptimizerConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.pretraining import masked_lm_trainer


def masked_batches(repeats):
    """Batches of 4, 4 and 1 rows; uneven mask counts, repeated ids, dropout keys."""
    rng = np.random.default_rng(0)
    features = {
        "input_ids": rng.integers(5, 12, (9, 12)).astype("int32"),
        "attention_mask": np.ones((9, 12), "int32"),
        "masked_lm_positions": rng.integers(1, 11, (9, 5)).astype("int32"),
        "dropout_keys": rng.integers(0, 2**32, 9, dtype=np.uint32),
    }
    features["attention_mask"][1:2, 6:] = 0
    weights = (rng.random((9, 5)) < 0.5).astype("float32")
    weights[0] = [1, 0, 0, 0, 0]
    labels = rng.integers(5, 50, (9, 5)).astype("int32")
    data = tf.data.Dataset.from_tensor_slices((features, labels, weights))
    return data.batch(4).repeat(repeats)


def make_trainer(strategy, distribution, seed, *, optimizer="adamw", dropout=0.1, tied=False):
    keras.utils.set_random_seed(seed)
    config = RemBertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8 if tied else 24,
        tie_word_embeddings=tied, max_position_embeddings=16, hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )  # fmt: skip
    with strategy.scope():
        return masked_lm_trainer(
            RemBertForMaskedLM(config, dtype=distribution.dtype),
            OptimizerConfig(optimizer=optimizer, learning_rate=1e-2, global_clip_norm=0.1),
            distribution,
            total_steps=20,
        )


def distribution_of(job, **changes):
    replicas = job.get("replicas", 1)
    name = "multi_worker" if job["workers"] > 1 else "mirrored" if replicas > 1 else "one_device"
    return DistributionConfig(
        distribution=name,
        cpu_replicas=replicas if replicas > 1 else 0,
        gradient_accumulation_steps=job.get("gradient_accumulation_steps", 1),
        **changes,
    )


def train_cells(job, worker):
    """Twenty steps with each of the settings in `job["cells"]`: weights before and after, and the loss."""
    strategy = make_strategy(distribution_of(job))
    numbers = {}
    for number, settings in job["cells"].items():
        of_model = {name: settings[name] for name in ("optimizer", "dropout", "tied")}
        distribution = distribution_of(job, dtype=settings["dtype"], remat=settings["remat"])
        trainer = make_trainer(strategy, distribution, seed=0, **of_model)
        start = trainer.model.get_weights()
        history = trainer.fit(masked_batches(7).take(20), shuffle=False, verbose=0).history
        numbers[f"{number}/loss"] = history["loss"]
        for variable, before in zip(trainer.model.weights, start, strict=True):
            numbers[f"{number}/start/{variable.path}"] = before
            numbers[f"{number}/end/{variable.path}"] = variable.numpy()
    np.savez(f"{job['law']}-{worker}.npz", **numbers)
