"""Everything periodic in a run is a callback on the trainer's own step counter."""

import pathlib
import resource
import time
from collections.abc import Callable

import keras
import tensorflow as tf
from absl import logging

from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.config import RunConfig
from rembert_tf.training.nan_guard import NanGuard
from rembert_tf.training.preemption import EndWhenAsked
from rembert_tf.training.profiling import Profile
from rembert_tf.training.run_folder import MetricsLog
from rembert_tf.training.stop_rule import StopAfterUpdates


def run_callbacks(
    run: RunConfig,
    *,
    total_steps: int,
    batch_size: int,
    checkpoint: TrainingCheckpoint,
    metrics: MetricsLog,
    evaluate: Callable[[int], None],
    folder: pathlib.Path,
) -> list[keras.callbacks.Callback]:
    """Returns the callbacks of a run, in the order in which they must act after a step.

    A bad step is found before anything is written; an evaluation stands in the log before the checkpoint that counts
    it as done; and a signal ends the run when all of that has happened.

    Args:
        run: how often each of them acts.
        total_steps: steps of the whole run, those before a resume included.
        batch_size: examples in a batch, over all replicas.
        checkpoint: the training state.
        metrics: the run's `metrics.jsonl`.
        evaluate: evaluates the model at the step that it is given.
        folder: the folder to write to: the run's, or the scratch folder of a worker that is not the chief.
    """
    run_folder = pathlib.Path(run.model_dir)
    callbacks = [
        keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: checkpoint.metric_sums.give_back()
        ),
        NanGuard(checkpoint, run_folder),
        Progress(run.log_every, total_steps, batch_size, folder, metrics),
        EverySteps(run.evaluate_every, lambda step, logs: evaluate(step), at_end=True),
        EverySteps(run.checkpoint_every, lambda step, logs: checkpoint.save(), at_end=True),
        StopAfterUpdates(total_steps),
        EndWhenAsked(checkpoint, run_folder),
    ]
    if run.profile_range:
        callbacks.insert(0, Profile(*run.profile_range, folder / "tensorboard" / "train"))
    return callbacks


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
    """Progress of training: a line of log, TensorBoard and `metrics.jsonl`.

    Loss and metrics are means over the steps since the last line, those before a resume included. `tokens_per_second`
    counts real tokens (`attention_mask`) since the last line or the resume; evaluations and checkpoints are not
    included in the time.
    """

    def __init__(
        self,
        every: int,
        total_steps: int,
        batch_size: int,
        folder: pathlib.Path,
        metrics: MetricsLog,
    ):
        super().__init__(every, self._report, at_end=True)
        self._total_steps = total_steps
        self._batch_size = batch_size
        self._metrics = metrics
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard" / "train"))

    def on_train_begin(self, logs=None):
        """Starts the clock."""
        super().on_train_begin(logs)
        self._start_anew(self._step())

    def on_train_batch_begin(self, batch, logs=None):
        """Starts the clock of one step."""
        self._started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        """Stops the clock of one step; reports where a report is due."""
        self._seconds += time.perf_counter() - self._started
        super().on_train_batch_end(batch, logs)

    def _report(self, step: int, logs: dict) -> None:
        steps_per_second = (step - self._steps_before) / self._seconds
        values = {
            **{name: float(value) for name, value in logs.items()},
            "learning_rate": float(self.model.optimizer.learning_rate),
            "gradient_norm": float(self.model.gradient_norm.numpy()),
            "skipped_steps": int(self.model.skipped_steps.numpy()),
            "steps_per_second": steps_per_second,
            "examples_per_second": steps_per_second * self._batch_size,
            "tokens_per_second": (self._tokens() - self._tokens_before) / self._seconds,
            **memory_mib(),
        }
        with self._writer.as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writer.flush()
        self._metrics.write("train", step, values)
        shown = "  ".join(f"{name} {float(value):.4f}" for name, value in logs.items())
        if values["skipped_steps"]:
            shown += f"  {values['skipped_steps']} steps skipped"
        logging.info(
            "step %d/%d  %s  %.0f tokens/s  %.1f examples/s  %s left", step, self._total_steps, shown,
            values["tokens_per_second"], values["examples_per_second"],
            _duration((self._total_steps - step) / steps_per_second),
        )  # fmt: skip
        self.model.reset_metrics()
        self._start_anew(step)

    def _start_anew(self, step: int) -> None:
        self._seconds = 0.0
        self._tokens_before = self._tokens()
        self._steps_before = step

    def _tokens(self) -> int:
        return int(self.model.tokens_seen.numpy())


def memory_mib() -> dict[str, float]:
    """Returns the highest memory in use so far, in MiB: of this process, and of its first GPU if it has one."""
    # Linux counts the resident memory of a process in KiB.
    memory = {"peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if tf.config.list_logical_devices("GPU"):
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
        memory["peak_gpu_memory_mib"] = peak / 2**20
    return memory


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
