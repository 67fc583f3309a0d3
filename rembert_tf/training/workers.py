"""The processes of a run: what several workers need beyond one.

All workers compute every step, and all save. The first one, the chief, writes to the run's folder; the others write the
same files into a scratch folder, which is deleted in the end. So the code of a run is the same for all of them.
"""

import contextlib
import hashlib
import pathlib
import re
import tempfile
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.pipelines.masked_batches import check_rows, rows_of_worker
from rembert_tf.training.checkpointing import TrainingCheckpoint
from rembert_tf.training.distribution import workers_of


class Worker:
    """This process, one of several or the only one; `working_together` makes it.

    Attributes:
        folder: the folder to write to: the run's own for the chief, a scratch folder for the others.
    """

    def __init__(self, strategy: tf.distribute.Strategy, model_dir: pathlib.Path, folder):
        self._strategy = strategy
        self._model_dir = model_dir
        self.folder = pathlib.Path(folder)

    def check_same(self, what: str, content: bytes) -> None:
        """Compares `content` with that of the other workers.

        Raises:
            ValueError: it is not the same everywhere.
        """
        digest = int.from_bytes(hashlib.sha256(content).digest()[:7])
        if len(set(self._gather(digest))) > 1:
            raise ValueError(
                f"All workers must have the same {what}. Received: others than another worker's"
            )

    def check_rows(self, batch_size: int) -> None:
        """Checks that the rows which the workers make of each batch are together the batch, and each is made once.

        Args:
            batch_size: rows of a batch.

        Raises:
            ValueError: they are not; or there are more workers than rows.
        """
        here, workers = workers_of(self._strategy)
        rows = [rows_of_worker(batch_size, worker, workers) for worker in here]
        bounds = self._gather(*(bound for part in rows for bound in (part.start, part.stop)))
        check_rows(batch_size, list(map(range, bounds[::2], bounds[1::2])))

    def restore(self, checkpoint: TrainingCheckpoint) -> int:
        """Restores the checkpoint that the chief finds to be the newest whole one, on all workers.

        Returns:
            Its step, 0 if there is none.

        Raises:
            ValueError: checkpoints exist, but none of them can be read; or this worker cannot read the chief's.
        """
        step = checkpoint.restore() if is_chief(self._strategy) else 0
        step = max(self._gather(step))
        if step and not is_chief(self._strategy):
            checkpoint.restore_step(step, self._model_dir)
        return step

    def wait_for_others(self) -> None:
        """Returns when all workers have come to this point."""
        self._gather(0)

    def _gather(self, *numbers: int) -> list[int]:
        """Returns the numbers of all workers, one worker's after the other's."""
        if not has_several_workers(self._strategy):
            return list(numbers)

        @tf.function
        def gather():
            replica = tf.distribute.get_replica_context()
            return replica.all_gather(tf.constant([numbers], tf.int64), axis=0)

        gathered = self._strategy.experimental_local_results(self._strategy.run(gather))
        return np.asarray(gathered[0])[:: len(gathered)].ravel().tolist()  # one replica a worker


@contextlib.contextmanager
def working_together(
    strategy: tf.distribute.Strategy, model_dir: str, configs: Sequence
) -> Iterator[Worker]:
    """Runs a block that belongs to one run in all of its workers, and ends it in all of them.

    Args:
        strategy: the strategy of the run.
        model_dir: the run's folder; several workers must see the same one, in a shared file system.
        configs: dataclasses that hold the run's settings.

    Raises:
        ValueError: another worker has other settings.
        ConnectionError: another worker has gone.
    """
    with contextlib.ExitStack() as stack:
        folder = model_dir
        if not is_chief(strategy):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rembert-worker-"))
            verbosity = logging.get_verbosity()
            stack.callback(logging.set_verbosity, verbosity)
            logging.set_verbosity(min(logging.WARNING, verbosity))
        worker = Worker(strategy, pathlib.Path(model_dir), folder)
        try:
            worker.check_same("flags", repr(configs).encode())
            try:
                yield worker
            except SystemExit:  # a signal ended the run, in all workers after the same step
                worker.wait_for_others()
                raise
            worker.wait_for_others()
        except tf.errors.OpError as error:
            if has_several_workers(strategy) and (reason := _why_another_has_gone(error)):
                raise ConnectionError(
                    "another worker has gone, so this one ends too: restart all workers with --resume. TensorFlow "
                    f"says: {reason}"
                ) from error
            raise


def _why_another_has_gone(error: tf.errors.OpError) -> str | None:
    """Returns the line that tells what broke a connection between workers; None if the error has other reasons."""
    found = re.search(r"Collective ops is aborted by: .*", error.message)
    if found:
        return found[0]
    if isinstance(error, tf.errors.UnavailableError | tf.errors.AbortedError):
        return error.message.strip().splitlines()[0]
    return None


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process writes the run's results: the first of several workers, or the only one."""
    return strategy.extended.should_checkpoint


def has_several_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether other processes compute with this one."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
