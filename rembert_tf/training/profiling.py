"""`--profile_steps=100,110`: what the machine does during these steps, for TensorBoard's profile page."""

import pathlib

import keras
import tensorflow as tf
from absl import logging


class Profile(keras.callbacks.Callback):
    """Profiles the steps from `first` to `last`, both included, into `<folder>/plugins/profile`.

    A run that reaches its end, is stopped by a signal, or is resumed inside the range profiles what it does of it.
    """

    def __init__(self, first: int, last: int, folder: pathlib.Path):
        super().__init__()
        self._first = first
        self._last = last
        self._folder = folder
        self._running = False
        self._first_done = None
        self._step_mark = None

    def on_train_batch_begin(self, batch, logs=None):
        """Starts where the first step is about to begin."""
        step = int(self.model.batch_number.numpy()) + 1
        if self._first <= step <= self._last:
            if not self._running:
                tf.profiler.experimental.start(str(self._folder))
                self._running = True
                self._first_done = step
            self._step_mark = tf.profiler.experimental.Trace("train", step_num=step, _r=1)
            self._step_mark.__enter__()

    def on_train_batch_end(self, batch, logs=None):
        """Stops after the last step."""
        if self._running:
            self._step_mark.__exit__(None, None, None)
            is_last = int(self.model.batch_number.numpy()) >= self._last
            if is_last or self.model.stop_requested.numpy():
                self._stop()

    def on_train_end(self, logs=None):
        """Stops where the run ends inside the range."""
        if self._running:
            self._stop()

    def _stop(self) -> None:
        tf.profiler.experimental.stop()
        self._running = False
        last = int(self.model.batch_number.numpy())
        logging.info("profile of steps %d to %d: %s", self._first_done, last, self._folder)
