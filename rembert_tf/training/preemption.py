"""Pre-emption: SIGTERM, or one Ctrl-C, ends a run after the step with a checkpoint and an exit status of its own.

    signal -> a thread -> trainer.request_stop() -> all workers end the same step -> checkpoint -> exit status 75

A thread reads the signals from a pipe, since Python calls a handler only between two calls into TensorFlow: while a
step runs (or is compiled, for minutes) a second signal could not end the run at once.
"""

import contextlib
import os
import pathlib
import signal
import threading
from collections.abc import Callable, Iterator

import keras
from absl import logging

from rembert_tf.training.checkpointing import TrainingCheckpoint

SIGNALS = (signal.SIGTERM, signal.SIGINT)
EXIT_STATUS = os.EX_TEMPFAIL  # 75: failed for now, try again


class Preempted(SystemExit):
    """A signal ended the run after a step whose state is saved; uncaught, the process exits with status 75."""

    def __init__(self):
        super().__init__(EXIT_STATUS)


class EndWhenAsked(keras.callbacks.Callback):
    """Saves and ends the run after the step in which any worker was asked to stop.

    Raises:
        Preempted: the state is saved, and the log has said how to go on.
    """

    def __init__(self, checkpoint: TrainingCheckpoint, folder: pathlib.Path):
        super().__init__()
        self._checkpoint = checkpoint
        self._folder = folder

    def on_train_batch_end(self, batch, logs=None):
        """Looks whether to stop; nothing else is done then, for there may be little time left."""
        if self.model.stop_requested.numpy():
            path = self._folder / "checkpoints" / pathlib.Path(self._checkpoint.save()).name
            logging.warning(
                "stopped by a signal after step %d, which is saved (%s); to go on: --flagfile=%s --resume",
                int(self.model.batch_number.numpy()), path, self._folder / "flags.txt",
            )  # fmt: skip
            raise Preempted


@contextlib.contextmanager
def stopping_on_signals(request_stop: Callable[[], None]) -> Iterator[None]:
    """Calls `request_stop` at the first SIGTERM or SIGINT inside the block; the second one ends the process at once.

    Enter it after the strategy is made, since some strategies take SIGTERM for themselves. Outside the main thread,
    where Python allows no handlers, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # asked for by set_wakeup_fd
    listener = threading.Thread(target=_listen, args=(reader, request_stop), daemon=True)
    listener.start()
    wakeup_before = signal.set_wakeup_fd(writer)
    # These handlers do nothing, but only signals with a handler are written to the pipe.
    before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(wakeup_before)
        os.close(writer)  # which ends the listener
        listener.join()
        os.close(reader)


def _listen(reader: int, request_stop: Callable[[], None]) -> None:
    asked = False
    while received := os.read(reader, 1):
        number = received[0]
        if number not in SIGNALS:
            continue
        if asked:
            os._exit(128 + number)  # as a shell names a process that the signal killed
        asked = True
        logging.warning(
            "%s: the run saves and ends after this step; a second signal ends it at once",
            signal.Signals(number).name,
        )
        request_stop()
