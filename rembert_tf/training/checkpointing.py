"""Training state on disk: model, optimizer and counters, in `<model_dir>/checkpoints`."""

import pathlib
import shutil

import tensorflow as tf
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.training.metric_sums import MetricSums
from rembert_tf.training.trainer import Trainer

_DAMAGED = (tf.errors.DataLossError, tf.errors.OpError, IndexError)


class TrainingCheckpoint:
    """Saves and restores a trainer's weights, optimizer slots, counters and the sums of its metrics.

    This is the state to resume from, not the form to publish (`checkpoints/folder.py` writes that).

    Args:
        trainer: a compiled trainer whose optimizer is built.
        model_dir: the run's folder.
        keep: how many of the last checkpoints are kept; `save_best` keeps one more.

    Attributes:
        metric_sums: what the metrics have summed up since the last line of the log. Restoring does not set them yet,
            since `fit` resets them when it begins: `metric_sums.give_back()` does.
    """

    def __init__(self, trainer: Trainer, model_dir: str | pathlib.Path, keep: int):
        self._trainer = trainer
        self.metric_sums = MetricSums(trainer)
        state = {
            "model": trainer.model,
            "optimizer": trainer.optimizer,
            "batch_number": trainer.batch_number,
            "tokens_seen": trainer.tokens_seen,
        }
        self._checkpoint = tf.train.Checkpoint(**state, metric_sums=self.metric_sums.variable)
        self._without_sums = tf.train.Checkpoint(**state)  # as earlier versions wrote it
        folder = pathlib.Path(model_dir) / "checkpoints"
        self._saved_steps = {}
        self._manager = self._make_manager(folder, keep)
        self._best_manager = self._make_manager(folder / "best", 1)

    def _make_manager(self, folder: pathlib.Path, keep: int) -> tf.train.CheckpointManager:
        _remove_unfinished(folder)
        _write_list(folder)
        return tf.train.CheckpointManager(self._checkpoint, str(folder), keep)

    @property
    def latest(self) -> str | None:
        """Path prefix of the newest checkpoint, or None."""
        return max(self._prefixes(), key=_step, default=None)

    def latest_in(self, model_dir: pathlib.Path) -> str | None:
        """As `latest`, but in the run's folder, to which the chief writes the same checkpoints."""
        if self.latest is None:
            return None
        own_folder = pathlib.Path(self._manager.directory).parent
        return str(model_dir / pathlib.Path(self.latest).relative_to(own_folder))

    def _prefixes(self) -> list[str]:
        folders = [pathlib.Path(m.directory) for m in (self._manager, self._best_manager)]
        return [str(path.with_suffix("")) for folder in folders for path in _indexes(folder)]

    def save(self) -> str:
        """Writes the state of the current step, unless that is done; returns the checkpoint's path prefix.

        Raises:
            OSError: the state cannot be written (a full disk, for example); the checkpoints before it are intact.
        """
        return self._save(self._manager)

    def save_best(self) -> str:
        """As `save`, for the best state so far: only the next best one takes its place."""
        return self._save(self._best_manager)

    def _save(self, manager: tf.train.CheckpointManager) -> str:
        step = int(self._trainer.batch_number.numpy())
        if self._saved_steps.get(manager) == step:
            return manager.latest_checkpoint
        self.metric_sums.note()
        try:
            prefix = manager.save(checkpoint_number=step)
        except tf.errors.OpError as error:
            _remove_unfinished(pathlib.Path(manager.directory))
            raise OSError(
                f"{manager.directory}: the checkpoint of step {step} could not be written; the last one that was is "
                f"{self.latest}: {error.message}"
            ) from error
        self._saved_steps[manager] = step
        return prefix

    def restore(self) -> int:
        """Restores the newest checkpoint that is whole; returns its step, 0 if there is none.

        A damaged checkpoint is named in the log, and the one before it is taken.

        Raises:
            ValueError: checkpoints exist, but none of them can be read.
        """
        prefixes = sorted(self._prefixes(), key=_step, reverse=True)
        for prefix in prefixes:
            try:
                self._read(prefix)
            except (ValueError, AssertionError) as error:  # another shape; a variable more
                raise ValueError(f"{prefix}: not a checkpoint of this model: {error}") from error
            except _DAMAGED as error:
                logging.warning("%s is damaged (%s): taking the one before it", prefix,
                                type(error).__name__)  # fmt: skip
                continue
            step = self._count_restored()
            logging.info("resuming at step %d from %s", step, prefix)
            return step
        if prefixes:
            raise ValueError(f"No checkpoint can be read. Received: checkpoints={prefixes}")
        logging.info("%s holds no checkpoint: the run begins at step 0", self._manager.directory)
        return 0

    def restore_step(self, step: int, model_dir: str | pathlib.Path) -> None:
        """Restores the checkpoint of `step` in another folder: that of the chief, for its fellow workers.

        Raises:
            ValueError: there is no such checkpoint here, or it cannot be read.
        """
        folder = pathlib.Path(model_dir) / "checkpoints"
        for prefix in (folder / f"ckpt-{step}", folder / "best" / f"ckpt-{step}"):
            try:
                self._read(str(prefix))
            except _DAMAGED:
                continue
            self._count_restored()
            return
        raise ValueError(
            f"{folder}: the chief resumes at step {step}, but this worker cannot read that checkpoint: all workers "
            "must see the same `model_dir`"
        )

    def _read(self, prefix: str) -> None:
        has_sums = any("metric_sums" in name for name, _ in tf.train.list_variables(prefix))
        checkpoint = self._checkpoint if has_sums else self._without_sums
        checkpoint.restore(prefix).assert_existing_objects_matched()

    def _count_restored(self) -> int:
        trainer = self._trainer
        trainer.model.newly_made = ()  # what a checkpoint holds has been trained
        step = int(trainer.batch_number.numpy())
        trainer.skipped_steps.assign(step - int(trainer.optimizer.iterations.numpy()))
        return step


def _step(prefix: str) -> int:
    return int(prefix.rpartition("-")[2])


def _remove_unfinished(folder: pathlib.Path) -> None:
    """Removes what a killed or failed save left: its folder of parts, and data whose index was not written."""
    for parts in folder.glob("ckpt-*_temp"):
        shutil.rmtree(parts, ignore_errors=True)
    for data in folder.glob("ckpt-*.data-*"):
        if not data.with_suffix(".index").exists():
            data.unlink()


def _indexes(folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns the indexes of the checkpoints in `folder`, oldest first; a checkpoint's index is written last."""
    return sorted(folder.glob("ckpt-*.index"), key=lambda path: _step(path.stem))


def _write_list(folder: pathlib.Path) -> None:
    """Writes TensorFlow's list, the file `checkpoint`, anew from the checkpoints that are there.

    A kill may come between a checkpoint and the list; and a `CheckpointManager` forgets what is on the list with a time
    that its clock has not reached yet, as on another machine.
    """
    found = _indexes(folder)
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except ValueError:  # an empty file, or one that is no text
        state = None
    listed = {pathlib.Path(path).name for path in state.all_model_checkpoint_paths} if state else ()
    if {path.stem for path in found} != set(listed):
        logging.warning("%s is damaged or behind; these checkpoints are there: %s",
                        folder / "checkpoint", ", ".join(p.stem for p in found) or "none")  # fmt: skip
    if not found:
        (folder / "checkpoint").unlink(missing_ok=True)
        return
    lines = [f'model_checkpoint_path: "{found[-1].stem}"\n']
    for number, path in enumerate(found, start=1):
        lines.append(f'all_model_checkpoint_paths: "{path.stem}"\n')
        lines.append(
            f"all_model_checkpoint_timestamps: {number}\n"
        )  # a time long past, but in order
    atomic_files.write_bytes(folder / "checkpoint", "".join(lines).encode())
