"""AdamW with a fused in-place update, and the factory that sets what is not decayed."""

import keras
import tensorflow as tf
from absl import logging

from rembert_tf.training.config import OptimizerConfig
from rembert_tf.training.schedules import WarmupPolynomialDecay


@keras.saving.register_keras_serializable(package="rembert_tf")
class AdamW(keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` whose update is one fused in-place operation.

    The numbers are Keras' own; Adam's temporaries of the size of the variable are not made (on a vocabulary table they
    are the peak of a step's memory). Weight decay is Keras' and makes two.

    A row that does not occur in a batch still moves, by its momentum, for tied and untied
    tables alike (Adam's definition, not a lazy variant).

    Example:
    >>> from rembert_tf.training.optimizers import AdamW
    >>> optimizer = AdamW(learning_rate=2e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    """

    def update_step(self, gradient, variable, learning_rate):
        """Updates one `tf.Variable` with its dense gradient of the same shape."""
        index = self._get_variable_index(variable)
        dtype = variable.dtype
        step = tf.cast(self.iterations.value + 1, dtype)
        beta_1 = tf.cast(self.beta_1, dtype)
        beta_2 = tf.cast(self.beta_2, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1**step,
            beta2_power=beta_2**step,
            lr=tf.cast(learning_rate, dtype),
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )


def make_optimizer(config: OptimizerConfig, model: keras.Model, total_steps: int) -> AdamW:
    """Returns AdamW for `model`, with warm-up, decay, clipping and exclusions, already built.

    Args:
        config: learning rate, warm-up, weight decay and the names of variables that are not decayed.
        model: the model that will be trained; its variables exist.
        total_steps: updates until the learning rate reaches its end.

    Raises:
        ValueError: a name in `config.exclude_from_weight_decay` matches no variable.
    """
    optimizer = AdamW(
        learning_rate=WarmupPolynomialDecay(
            config.learning_rate,
            config.resolved_warmup_steps(total_steps),
            total_steps,
            config.end_learning_rate,
        ),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        global_clipnorm=config.global_clip_norm or None,
    )
    excluded = excluded_variables(model, config.exclude_from_weight_decay)
    optimizer.exclude_from_weight_decay(var_list=excluded)
    optimizer.build(model.trainable_variables)
    paths = {variable.path for variable in excluded}
    decayed = [v.path for v in model.trainable_variables if v.path not in paths]
    logging.info("weight decay %g on %d variables, for example %s; none on %d, for example %s",
                 config.weight_decay, len(decayed), decayed[:2], len(paths), sorted(paths)[:2])  # fmt: skip
    return optimizer


def excluded_variables(model: keras.Model, names: tuple[str, ...]) -> list[keras.Variable]:
    """Returns the trainable variables whose own name (`bias`, `gamma`, ...) is one of `names`.

    Raises:
        ValueError: a name matches no variable of the model.
    """
    present = {variable.name for variable in model.weights}  # frozen ones, too
    if not present.issuperset(names):
        raise ValueError(
            "Each name in `exclude_from_weight_decay` must match a variable; the model has "
            f"{sorted(present)}. Received: exclude_from_weight_decay={list(names)}"
        )
    return [variable for variable in model.trainable_variables if variable.name in names]
