"""Everything periodic in a run is a callback on the trainer's own step counter."""

import pathlib
import resource
import sys
import time
from collections.abc import Callable

import keras
import tensorflow as tf
from absl import logging

from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.run_folder import MetricsLog


class EverySteps(keras.callbacks.Callback):
    """Calls `action(step, logs)` at every multiple of `every`, and at the end of the run if asked.

    The step is the trainer's `batch_number`, so it counts on through a resumed run.
    """

    def __init__(self, every: int, action: Callable[[int, dict], None], *, at_end: bool = False):
        super().__init__()
        self._every = every
        self._action = action
        self._at_end = at_end
        self._last = None

    def on_train_begin(self, logs=None):
        """Remembers the step at which the run starts: nothing is due there."""
        self._last = self._step()

    def on_train_batch_end(self, batch, logs=None):
        """Acts where a multiple of `every` is reached."""
        step = self._step()
        if step % self._every == 0:
            self._last = step
            self._action(step, logs or {})

    def on_train_end(self, logs=None):
        """Acts once more, unless the last step was due anyway."""
        if self._at_end and self._step() != self._last:
            self._action(self._step(), logs or {})

    def _step(self) -> int:
        return int(self.model.batch_number.numpy())


class Progress(EverySteps):
    """Progress of training: a line (or Keras' bar on a terminal), TensorBoard and `metrics.jsonl`.

    Loss and metrics are means over the steps since the last line; `tokens_per_second` counts real tokens
    (`attention_mask`), evaluations and checkpoints not included in its time.
    """

    def __init__(self, every: int, total_steps: int, folder: pathlib.Path, metrics: MetricsLog):
        super().__init__(every, self._report, at_end=True)
        self._total_steps = total_steps
        self._metrics = metrics
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "train"))
        self._bar = None

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        super().on_train_begin(logs)
        if sys.stderr.isatty():
            self._bar = keras.utils.Progbar(self._total_steps)
        self._seconds = 0.0
        self._tokens_before = self._tokens()
        self._steps_before = self._step()

    def on_train_batch_begin(self, batch, logs=None):
        """Starts the clock of one step."""
        self._started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        """Stops the clock of one step; reports where a report is due."""
        self._seconds += time.perf_counter() - self._started
        super().on_train_batch_end(batch, logs)

    def _report(self, step: int, logs: dict) -> None:
        steps = step - self._steps_before
        values = {name: float(value) for name, value in logs.items()}
        values["learning_rate"] = float(self.model.optimizer.learning_rate)
        values["gradient_norm"] = float(self.model.gradient_norm.numpy())
        values["steps_per_second"] = steps / self._seconds
        values["tokens_per_second"] = (self._tokens() - self._tokens_before) / self._seconds
        values["peak_memory_mib"] = peak_memory_mib()
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writer.flush()
        self._metrics.write("train", step, values)
        self._show(step, logs, values)
        self.model.reset_metrics()
        self._seconds = 0.0
        self._tokens_before = self._tokens()
        self._steps_before = step

    def _show(self, step: int, logs: dict, values: dict) -> None:
        if self._bar is not None:
            self._bar.update(step, [(name, float(value)) for name, value in logs.items()])
            return
        left = (self._total_steps - step) / values["steps_per_second"]
        shown = "  ".join(f"{name} {float(value):.4f}" for name, value in logs.items())
        logging.info(
            "step %d/%d  %s  %.0f tokens/s  %.2f steps/s  %s left", step, self._total_steps, shown,
            values["tokens_per_second"], values["steps_per_second"], _duration(left),
        )  # fmt: skip

    def _tokens(self) -> int:
        return int(self.model.tokens_seen.numpy())


def save_checkpoint_every(steps: int, checkpoint: TrainingCheckpoint) -> EverySteps:
    """Returns a callback that saves the training state every `steps` steps and at the end."""
    return EverySteps(steps, lambda step, logs: checkpoint.save(), at_end=True)


def peak_memory_mib() -> float:
    """Returns the highest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
