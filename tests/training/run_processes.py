"""Runs a binary again and again, each time in a process of its own that gets signals at chosen moments.

    python run_processes.py '[{"binary": "pretrain", "flags": [...], "signals": [[7, 0.0, "SIGTERM"]]}, ...]'

TensorFlow is imported once (hence imports that nothing uses here), and each process is a fork made before it starts. A
signal is a step, a delay in seconds after the begin of that step (or of the first later one), and a name. Prints a JSON
list of [exit status, standard error].
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import threading

import keras

from rembert_tf.training import finetuning, pretraining  # noqa: F401
from rembert_tf.training.trainer import Trainer


class SendSignals(keras.callbacks.Callback):
    def __init__(self, signals):
        super().__init__()
        self._waiting = list(signals)

    def on_train_batch_begin(self, batch, logs=None):
        # A run that was killed some time after a step may go on behind the step of the next kill: at once, then.
        now = int(self.model.batch_number.numpy()) + 1
        for due in [sent for sent in self._waiting if sent[0] <= now]:
            self._waiting.remove(due)
            _, delay, name = due
            threading.Timer(delay, os.kill, (os.getpid(), signal.Signals[name])).start()
            if not delay:  # in this step, not somewhere near it
                threading.Event().wait(0.2)


def run(job, stderr):
    os.dup2(stderr.fileno(), 2)
    fit = Trainer.fit

    def fit_with_signals(self, *arguments, callbacks, **kwargs):
        callbacks = [*callbacks, SendSignals(job.get("signals", []))]
        return fit(self, *arguments, callbacks=callbacks, **kwargs)

    Trainer.fit = fit_with_signals
    sys.argv = [f"rembert-{job['binary']}", *job["flags"]]
    importlib.import_module(f"rembert_tf.bin.{job['binary']}").run()


def status_of(job):
    with tempfile.TemporaryFile("w+") as stderr:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(job, stderr)
            except SystemExit as exit:
                status = exit.code
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stderr.seek(0)
        return status, stderr.read()


if __name__ == "__main__":
    print(json.dumps([status_of(job) for job in json.loads(sys.argv[1])]))
