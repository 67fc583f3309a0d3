"""The training step: the same data gives the same weights on any number of replicas.

Stock Keras 3.15 averages a weighted loss inside each replica and then averages the averages, and clips the
gradient of each replica before the sum. Here

    loss = sum over all replicas of (weight * value)  /  sum over all replicas of (weight)

penalties from `model.losses` are added once, undivided; gradients are summed over the micro-batches of each replica,
made dense (repeated ids added up), summed over the replicas, and only then handed to the optimizer, which clips what
is already global.

`loss_values.py` says what a value and its weight are, `execution.py` how `fit` comes to call the step,
`micro_batches.py` how a batch is cut. The optimizer's hook `_all_reduce_sum_gradients` and `_loss_tracker` are private
to Keras; its minor version is pinned in setup.py and `tests/training/test_trainer.py` names this file when they move.
"""

from typing import Any

import keras
import tensorflow as tf

from rembert_tf.training.execution import Execution
from rembert_tf.training.loss_values import in_float32, one_for_each_slot, slot_weights, unreduced
from rembert_tf.training.micro_batches import sum_over_micro_batches


@keras.saving.register_keras_serializable(package="rembert_tf")
class Trainer(Execution):
    """Wraps a model; `fit` and `evaluate` of the wrapper train and measure the model itself.

    Create both under the strategy's scope, as any Keras model:

    >>> import keras, numpy as np, tensorflow as tf
    >>> from rembert_tf.training.trainer import Trainer
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    >>> trainer = Trainer(model)
    >>> trainer.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    >>> data = tf.data.Dataset.from_tensors((np.ones((4, 3), "float32"), np.zeros(4, "int32")))
    >>> history = trainer.fit(data, verbose=0)

    Data are Keras tuples `(features, labels, sample_weights)`. With weights, the loss is the mean over weight slots;
    without, over examples. Any Keras loss or function that gives one value an example or a slot will do. A batch is the
    global one: each replica takes its rows. With several workers, the data of each must be the same, batch for batch;
    or each makes its own rows alone, and `distribution.per_worker_batches` wraps what they make.

    Args:
        model: a built `keras.Model`.

    Attributes:
        batch_number: int64 variable, steps done so far (data, masks and dropout follow it).
        tokens_seen: int64 variable, sum of `attention_mask` over all training batches (0 without that feature).
        gradient_norm: float32 variable, global norm of the last step's gradient, before clipping.
        stop_requested: bool variable, true on every worker after the step in which any worker had asked to stop.
        skipped_steps: int64 variable, steps whose update the optimizer left out (float16 gradients that overflowed).
    """

    def __init__(self, model: keras.Model, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.batch_number = tf.Variable(0, dtype=tf.int64, trainable=False, name="batch_number")
        self.tokens_seen = tf.Variable(0, dtype=tf.int64, trainable=False, name="tokens_seen")
        self.gradient_norm = tf.Variable(0.0, trainable=False, name="gradient_norm")
        self.stop_requested = tf.Variable(False, trainable=False, name="stop_requested")
        self.skipped_steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="skipped_steps")
        self._asked_to_stop = False
        self.built = True

    def call(self, inputs, training=None):
        """Calls the wrapped model."""
        return self.model(inputs, training=training)

    def compile(
        self,
        optimizer,
        loss,
        *,
        gradient_accumulation_steps: int = 1,
        jit_compile: bool = False,
        **kwargs,
    ):
        """Configures training; as `keras.Model.compile`, with three differences.

        Args:
            optimizer: a Keras optimizer (or its name). Its `global_clipnorm` applies to the global gradient. From here
                on it belongs to this trainer: it no longer sums gradients over replicas by itself.
            loss: a `keras.losses.Loss`, a name, or a function `(labels, outputs) -> values`.
            gradient_accumulation_steps: micro-batches into which each replica cuts its part of a batch. They need the
                memory of one, and give the weights and metrics of the whole batch.
            jit_compile: compile forward and backward pass of each replica with XLA.
            **kwargs: further arguments of `keras.Model.compile`.

        Raises:
            ValueError: the loss asks for reduction "sum", which has no meaning independent of the batch; or
                `gradient_accumulation_steps` is below 1.
        """
        if gradient_accumulation_steps < 1:
            raise ValueError(
                "`gradient_accumulation_steps` must be at least 1. "
                f"Received: gradient_accumulation_steps={gradient_accumulation_steps}"
            )
        self._loss_values = unreduced(loss)
        # Keras' own loss stays unset: it would ask which label belongs to which output.
        super().compile(optimizer=optimizer, jit_compile=False, **kwargs)
        # Gradients arrive at the optimizer already summed over the replicas.
        optimizer = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        optimizer._all_reduce_sum_gradients = lambda gradients_and_variables: list(
            gradients_and_variables
        )
        self._gradient_accumulation_steps = gradient_accumulation_steps
        self._loss_and_gradients_function = (
            tf.function(self._loss_and_gradients, jit_compile=True)
            if jit_compile
            else self._loss_and_gradients
        )

    def request_stop(self) -> None:
        """Asks all workers to stop after one and the same step; safe in a signal handler, at any moment.

        It only sets a flag, which the next step sums over all replicas; then `stop_requested` is true everywhere.
        """
        self._asked_to_stop = True

    # -- one replica ----------------------------------------------------------------------------------------------

    def train_step(self, data, stop):
        """One step in one replica: gradients of the global loss, summed over replicas, then the update.

        Args:
            data: this replica's rows of the batch.
            stop: whether this worker wants to stop, bool scalar.

        Returns:
            What `after_train_step` counts, the same on all replicas: gradient norm, tokens, whether to stop, whether
            the optimizer skipped the update.
        """
        features, _, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weight = tf.reduce_sum(slot_weights(features, sample_weight))
        # One vector, one message to the other replicas. A float32 holds up to 16.7 million tokens exactly.
        sums = tf.stack([weight, _number_of_tokens(features), tf.cast(stop, tf.float32)])
        total_weight, tokens, stop = tf.unstack(_sum_over_replicas(sums))
        gradients = sum_over_micro_batches(
            lambda part: self._gradients_of_part(part, total_weight),
            data,
            self._gradient_accumulation_steps,
            self.trainable_variables,
        )
        gradients = _sum_over_replicas(gradients)
        gradient_norm = tf.linalg.global_norm(gradients) / self.optimizer.scale_loss(1.0)
        updates_before = tf.identity(self.optimizer.iterations.value)
        self.optimizer.apply(gradients, self.trainable_variables)
        skipped = self.optimizer.iterations.value == updates_before
        return gradient_norm, tokens, stop > 0, skipped

    def _gradients_of_part(self, data, total_weight):
        features, labels, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weights = slot_weights(features, sample_weight)
        outputs, values, gradients = self._loss_and_gradients_function(
            features, labels, weights, total_weight
        )
        self._update_metrics(features, labels, outputs, sample_weight, values, weights)
        return gradients

    def test_step(self, data):
        """Loss and metrics of one batch in one replica."""
        features, labels, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        weights = slot_weights(features, sample_weight)
        outputs = in_float32(self(features, training=False))
        values = one_for_each_slot(self._loss_values(labels, outputs), weights)
        self._update_metrics(features, labels, outputs, sample_weight, values, weights)

    def _loss_and_gradients(self, features, labels, weights, total_weight):
        parts = self.distribute_strategy.num_replicas_in_sync * self._gradient_accumulation_steps
        with tf.GradientTape() as tape:
            outputs = in_float32(self(features, training=True))
            values = one_for_each_slot(self._loss_values(labels, outputs), weights)
            loss = tf.math.divide_no_nan(tf.reduce_sum(weights * values), total_weight)
            if self.losses:
                loss += tf.add_n([tf.cast(p, tf.float32) for p in self.losses]) / parts
            loss = self.optimizer.scale_loss(loss)
        variables = [variable.value for variable in self.trainable_variables]
        gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
        return outputs, values, gradients

    def _update_metrics(self, features, labels, outputs, sample_weight, values, weights):
        self._loss_tracker.update_state(values, sample_weight=weights)
        self.compute_metrics(features, labels, outputs, sample_weight)

    # -- around the replicas --------------------------------------------------------------------------------------

    def step_arguments(self):
        """Returns whether this worker was asked to stop, for `train_step`."""
        return (tf.constant(self._asked_to_stop),)

    def after_train_step(self, results):
        """Counts the step."""
        results = [self.distribute_strategy.experimental_local_results(x)[0] for x in results]
        gradient_norm, tokens, stop, skipped = results
        self.gradient_norm.assign(gradient_norm)
        self.tokens_seen.assign_add(tf.cast(tokens, tf.int64))
        self.stop_requested.assign(stop)
        self.skipped_steps.assign_add(tf.cast(skipped, tf.int64))
        self.batch_number.assign_add(1)

    def get_config(self) -> dict[str, Any]:
        """Returns the wrapped model's configuration, for Keras."""
        return {"model": keras.saving.serialize_keras_object(self.model)}

    @classmethod
    def from_config(cls, config):
        """Makes a trainer from `get_config`'s result."""
        return cls(keras.saving.deserialize_keras_object(config["model"]))


def _sum_over_replicas(values):
    """Returns the sums over all replicas of a nest of tensors.

    A single replica's values are their own sums. `all_reduce` would say the same, but registers a gradient that
    TensorFlow never forgets: the graph of the step, with weights and slots, would outlive the trainer.
    """
    replica = tf.distribute.get_replica_context()
    if replica.num_replicas_in_sync == 1:
        return values
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, values)


def _number_of_tokens(features) -> tf.Tensor:
    if isinstance(features, dict) and "attention_mask" in features:
        return tf.reduce_sum(tf.cast(features["attention_mask"], tf.float32))
    return tf.constant(0.0)
