"""Runs jobs one after the other, each in one or two worker processes on 127.0.0.1.

   python run_workers.py '[{"workers": 2, "train": "folder/two", ...}, {"workers": 2, "binary": "pretrain", ...}]'

A job trains a small model (once, or with many settings) and leaves its numbers in `<train>-<worker>.npz`, or it runs
a binary as `run_processes.py` does (`signals` are those of each worker). TensorFlow is imported once: the workers are
forks made before it has started. Prints a JSON list, for each job, of [exit status, standard error, seconds] of each
worker.
"""

import itertools
import json
import os
import socket
import sys
import tempfile
import time

import keras
import numpy as np
import run_processes
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


def train(job, worker):
    """Twelve steps, evaluated after every sixth; then a stop that the last worker asks for."""
    distribution = distribution_of(job)
    # Each worker has a seed of its own: the weights are those of the first.
    trainer = make_trainer(make_strategy(distribution), distribution, seed=worker)
    history = trainer.fit(
        masked_batches(2), epochs=2, validation_data=masked_batches(1), shuffle=False, verbose=0
    ).history
    numbers = {f"history/{name}": values for name, values in history.items()}
    for variable in trainer.model.trainable_variables:
        numbers[f"weights/{variable.path}"] = variable.numpy()
    for name in ("batch_number", "tokens_seen", "gradient_norm", "stop_requested"):
        numbers[name] = getattr(trainer, name).numpy()
    if worker == job["workers"] - 1:
        trainer.request_stop()
    trainer.fit(masked_batches(1), shuffle=False, verbose=0)
    numbers["stop_requested_at_last"] = trainer.stop_requested.numpy()
    np.savez(f"{job['train']}-{worker}.npz", **numbers)


LAW = {
    "optimizer": ("adamw", "lamb"),
    "dtype": ("float32", "mixed_bfloat16"),
    "tied": (False, True),
    "dropout": (0.0, 0.1),
    "remat": (False, True),
}


def law(job, worker):
    """Twenty steps with every combination of the settings in `LAW`."""
    strategy = make_strategy(distribution_of(job))
    numbers = {}
    for values in itertools.product(*LAW.values()):
        settings = dict(zip(LAW, values, strict=True))
        name = "/".join(f"{name}={value}" for name, value in settings.items())
        distribution = distribution_of(
            job, dtype=settings.pop("dtype"), remat=settings.pop("remat")
        )
        trainer = make_trainer(strategy, distribution, seed=0, **settings)
        start = trainer.model.get_weights()
        history = trainer.fit(masked_batches(7).take(20), shuffle=False, verbose=0).history
        numbers[f"{name}/loss"] = history["loss"]
        for variable, before in zip(trainer.model.weights, start, strict=True):
            numbers[f"{name}/moved/{variable.path}"] = variable.numpy() - before
    np.savez(f"{job['law']}-{worker}.npz", **numbers)


def run(job, worker, addresses, stderr):
    os.dup2(stderr.fileno(), 2)
    if len(addresses) > 1:
        task = {"type": "worker", "index": worker}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    if "train" in job:
        train(job, worker)
    elif "law" in job:
        law(job, worker)
    else:
        job = {**job, "signals": job.get("signals", {}).get(str(worker), [])}
        run_processes.run(job, stderr)


def start(job, worker, addresses):
    stderr = tempfile.TemporaryFile("w+")
    child = os.fork()
    if child:
        return child, stderr
    status = 1
    try:
        run(job, worker, addresses, stderr)
        status = 0
    except SystemExit as exit:
        status = exit.code
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=stderr, flush=True)
        raise
    finally:
        sys.stderr.flush()
        if status or "binary" not in job:
            os._exit(status)
    sys.exit(status)


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def results_of(job):
    addresses = free_addresses(job["workers"])
    begin = time.monotonic()
    children = [start(job, worker, addresses) for worker in range(job["workers"])]
    results = []
    for child, stderr in children:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stderr.seek(0)
        results.append((status, stderr.read(), time.monotonic() - begin))
    return results


if __name__ == "__main__":
    # A binary imports TensorFlow after absl has taken over the log; here it came first.
    tf.get_logger().handlers.clear()
    print(json.dumps([results_of(job) for job in json.loads(sys.argv[1])]))
