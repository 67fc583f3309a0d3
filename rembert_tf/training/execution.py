"""How `fit` and `evaluate` drive a step: which rows a replica gets, what is traced, how many steps an execution has.

Stock Keras 3.15 builds a model from a first batch that it averages over the replicas (uneven batches, strings and
booleans crash), cannot run under MultiWorkerMirroredStrategy, and puts XLA around `strategy.run`. Here shapes alone
build the model, every replica reads its rows of the global batch, and XLA is the step's own affair.

The hooks `_make_function`, `_maybe_symbolic_build` and `_symbolic_build` are private to Keras; its minor version is
pinned in setup.py and `tests/training/test_trainer.py` names this file when they move.
"""

from collections.abc import Sequence

import keras
import tensorflow as tf
from keras import tree

from rembert_tf.training.distribution import per_replica_batches


class Execution(keras.Model):
    """A Keras model whose `fit` and `evaluate` run a step in every replica, under any strategy.

    A subclass defines four methods, and the whole of what is computed:

        train_step(data, *arguments) -> results    in one replica, with that replica's rows of the batch
        step_arguments() -> arguments              in this process, before each execution
        after_train_step(results)                  outside the replicas, in the traced function
        test_step(data)                            in one replica
    """

    def make_train_function(self, force=False):
        """Builds the function that runs `steps_per_execution` training steps on an iterator."""
        if self.train_function is None or force:
            steps = self._make_function(self.train_step, self.after_train_step)
            self.train_function = lambda iterator: steps(iterator, *self.step_arguments())

    def make_test_function(self, force=False):
        """Builds the function that evaluates `steps_per_execution` batches of an iterator."""
        if self.test_function is None or force:
            self.test_function = self._make_function(self.test_step, lambda results: None)

    def step_arguments(self) -> Sequence[tf.Tensor]:
        """Returns further arguments of `train_step`."""
        return ()

    def after_train_step(self, results) -> None:
        """Takes what `train_step` returned, a value for each replica."""

    def _make_function(self, step, after_step):
        strategy = self.distribute_strategy

        def steps(iterator, *arguments):
            def run(batch):
                after_step(strategy.run(step, args=(batch, *arguments)))

            if self.steps_per_execution == 1:
                run(next(iterator))
            else:
                _run_up_to(self.steps_per_execution, run, iterator)
            # Outside the replicas, metric variables read as their sum over the replicas.
            return self.get_metrics_result()

        if self.run_eagerly:
            return steps
        return tf.function(steps, reduce_retracing=True, autograph=False)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Shares out the rows of each batch, unless they are; builds optimizer and metrics from shapes alone."""
        if iterator is not None:
            data = iterator.data_adapter.get_tf_dataset()
            data_batch = data.element_spec
            if isinstance(data, tf.distribute.DistributedDataset):
                data_batch = tree.map_structure(_of_first_replica, data_batch)
            else:
                iterator._distributed_dataset = per_replica_batches(data, self.distribute_strategy)
        with self.distribute_strategy.scope():
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
            self._symbolic_build(data_batch=data_batch)


def _of_first_replica(spec: tf.TypeSpec) -> tf.TypeSpec:
    return tf.nest.flatten(spec, expand_composites=True)[0]


def _run_up_to(count: int, run, iterator) -> None:
    """Calls `run` on the next `count` batches, or on those that are left.

    Raises:
        tf.errors.OutOfRangeError: none is left.
    """

    def run_next(number, _):
        batch = iterator.get_next_as_optional()
        has_batch = batch.has_value()

        def run_batch():
            run(batch.get_value())
            return number + 1

        return tf.cond(has_batch, run_batch, lambda: number), has_batch

    done, _ = tf.while_loop(
        lambda number, has_batch: has_batch & (number < count),
        run_next,
        (0, True),
        parallel_iterations=1,
    )

    def end_of_data():
        next(iterator)  # raises
        return done

    tf.cond(done == 0, end_of_data, lambda: done)
