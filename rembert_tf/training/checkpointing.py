"""Training state on disk: model, optimizer and counters, in `<model_dir>/checkpoints`."""

import pathlib

import tensorflow as tf
from absl import logging

from rembert_tf.training.trainer import Trainer

_DAMAGED = (tf.errors.DataLossError, tf.errors.OpError, IndexError)


class TrainingCheckpoint:
    """Saves and restores a trainer's weights, optimizer slots and counters.

    This is the state to resume from, not the form to publish (`checkpoints/folder.py` writes that).

    Args:
        trainer: a compiled trainer whose optimizer is built.
        model_dir: the run's folder.
        keep: how many of the last checkpoints are kept.
    """

    def __init__(self, trainer: Trainer, model_dir: str | pathlib.Path, keep: int):
        self._trainer = trainer
        self._checkpoint = tf.train.Checkpoint(
            model=trainer.model,
            optimizer=trainer.optimizer,
            batch_number=trainer.batch_number,
            tokens_seen=trainer.tokens_seen,
        )
        folder = pathlib.Path(model_dir) / "checkpoints"
        self._manager = tf.train.CheckpointManager(self._checkpoint, str(folder), keep)

    def save(self) -> str:
        """Writes the state of the current step; returns the checkpoint's path prefix.

        Raises:
            OSError: the state cannot be written (a full disk, for example); the checkpoints before it are intact.
        """
        step = int(self._trainer.batch_number.numpy())
        try:
            return self._manager.save(checkpoint_number=step)
        except tf.errors.OpError as error:
            raise OSError(
                f"{self._manager.directory}: the checkpoint of step {step} could not be written: "
                f"{error.message}"
            ) from error

    def restore(self) -> int:
        """Restores the newest checkpoint that is whole; returns its step, 0 if there is none.

        A damaged checkpoint is named in the log, and the one before it is taken.

        Raises:
            ValueError: checkpoints exist, but none of them can be read.
        """
        prefixes = list(reversed(self._manager.checkpoints))
        for prefix in prefixes:
            try:
                self._checkpoint.restore(prefix).assert_existing_objects_matched()
            except (ValueError, AssertionError) as error:  # another shape; a variable more
                raise ValueError(f"{prefix}: not a checkpoint of this model: {error}") from error
            except _DAMAGED as error:
                logging.warning("%s is damaged (%s): taking the one before it", prefix,
                                type(error).__name__)  # fmt: skip
                continue
            step = int(self._trainer.batch_number.numpy())
            logging.info("resuming at step %d from %s", step, prefix)
            return step
        if prefixes:
            raise ValueError(f"No checkpoint can be read. Received: checkpoints={prefixes}")
        return 0
