"""Runs jobs one after the other, each in one or two worker processes on 127.0.0.1.

   python run_workers.py '[{"workers": 2, "train": "folder/two", ...}, {"workers": 2, "binary": "pretrain", ...}]'

A job trains a small model (once, or with many settings) and leaves its numbers in `<train>-<worker>.npz`, or it runs
a binary as `run_processes.py` does (`signals` are those of each worker). In place of a job, a list of jobs runs side by
side. TensorFlow is imported once: the workers are forks made before it has started. Prints a JSON list, for each job,
of [exit status, standard error, seconds] of each worker.
"""

import json
import os
import socket
import sys
import tempfile
import time

import law_cells
import numpy as np
import run_processes
import tensorflow as tf

from rembert_tf.training.distribution import make_strategy


def train(job, worker):
    """Twelve steps, evaluated after every sixth; then a stop that the last worker asks for."""
    distribution = law_cells.distribution_of(job)
    # Each worker has a seed of its own: the weights are those of the first.
    trainer = law_cells.make_trainer(make_strategy(distribution), distribution, seed=worker)
    one_epoch, validation = law_cells.masked_batches(2), law_cells.masked_batches(1)
    history = trainer.fit(
        one_epoch, epochs=2, validation_data=validation, shuffle=False, verbose=0
    ).history
    numbers = {f"history/{name}": values for name, values in history.items()}
    for variable in trainer.model.trainable_variables:
        numbers[f"weights/{variable.path}"] = variable.numpy()
    for name in ("batch_number", "tokens_seen", "gradient_norm", "stop_requested"):
        numbers[name] = getattr(trainer, name).numpy()
    if worker == job["workers"] - 1:
        trainer.request_stop()
    trainer.fit(law_cells.masked_batches(1), shuffle=False, verbose=0)
    numbers["stop_requested_at_last"] = trainer.stop_requested.numpy()
    np.savez(f"{job['train']}-{worker}.npz", **numbers)


def run(job, worker, addresses, stderr):
    os.dup2(stderr.fileno(), 2)
    if len(addresses) > 1:
        task = {"type": "worker", "index": worker}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    if "train" in job:
        train(job, worker)
    elif "law" in job:
        law_cells.train_cells(job, worker)
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


def begin(job):
    addresses = free_addresses(job["workers"])
    return time.monotonic(), [start(job, worker, addresses) for worker in range(job["workers"])]


def end(started, children):
    results = []
    for child, stderr in children:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stderr.seek(0)
        results.append((status, stderr.read(), time.monotonic() - started))
    return results


def results_of(job):
    if isinstance(job, list):
        begun = [begin(each) for each in job]
        return [end(*each) for each in begun]
    return end(*begin(job))


if __name__ == "__main__":
    # A binary imports TensorFlow after absl has taken over the log; here it came first.
    tf.get_logger().handlers.clear()
    print(json.dumps([results_of(job) for job in json.loads(sys.argv[1])]))
