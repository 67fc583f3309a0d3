"""The guard against a run that goes on with weights that are no numbers."""

import math
import pathlib

import keras

from rembert_tf.training.checkpointing import TrainingCheckpoint


class NanGuard(keras.callbacks.Callback):
    """Ends the run at the first step whose loss or gradient is not finite, before that state is saved.

    A step that the optimizer skipped (a float16 gradient that overflowed) has done no harm and is let pass.

    Args:
        checkpoint: the training state.
        folder: the run's folder, whose checkpoints the message of every worker names.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, folder: pathlib.Path):
        super().__init__()
        self._checkpoint = checkpoint
        self._folder = folder
        self._skipped = 0
        self._mean_was_finite = True

    def on_train_begin(self, logs=None):
        """Notes what was skipped before a resumed run."""
        self._skipped = int(self.model.skipped_steps.numpy())

    def on_train_batch_end(self, batch, logs=None):
        """Looks at one step.

        Raises:
            FloatingPointError: names the step, its batch, and the checkpoint before it.
        """
        loss = float(
            logs["loss"]
        )  # a mean over several steps: it stays bad after the first bad one
        norm = float(self.model.gradient_norm.numpy())
        bad = not math.isfinite(norm) or (self._mean_was_finite and not math.isfinite(loss))
        self._mean_was_finite = math.isfinite(loss)
        skipped_before, self._skipped = self._skipped, int(self.model.skipped_steps.numpy())
        if bad and self._skipped == skipped_before:
            raise FloatingPointError(self._message(loss, norm))

    def _message(self, loss: float, norm: float) -> str:
        step = int(self.model.batch_number.numpy())
        good = self._checkpoint.latest_in(self._folder)
        return (
            f"step {step} is the first whose loss or gradient is not finite (loss {loss}, gradient norm {norm}); it "
            f"trained on batch {step - 1}, counted from 0. "
            + (f"The last good checkpoint is {good}. " if good else "There is no checkpoint yet. ")
            + "A resumed run would come to the same step: begin another one with a lower `learning_rate` or a longer "
            "warm-up, or look at the data of that batch."
        )
