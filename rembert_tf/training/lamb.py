"""LAMB: Adam's step, scaled in each variable to the norm of the variable."""

import keras
import tensorflow as tf

from rembert_tf.training.adamw import AdamW


@keras.saving.register_keras_serializable(package="rembert_tf")
class Lamb(AdamW):
    """LAMB (You et al. 2020, Algorithm 2), for large batches.

    Adam's bias-corrected step plus weight decay is the update u of a variable w, and `w -= rate * |w| / |u| * u`. The
    ratio is 1 where a norm is 0. Variables that `exclude_from_weight_decay` names (biases and normalizations) have
    neither decay nor ratio: they take Adam's step.

    `keras.optimizers.Lamb` differs: it decays outside the ratio, and adapts every variable.

    Args, and the slots, are `AdamW`'s.

    Example:
    >>> from rembert_tf.training.lamb import Lamb
    >>> optimizer = Lamb(learning_rate=1e-3, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    """

    def update_step(self, gradient, variable, learning_rate):
        """Updates one `tf.Variable` with its dense gradient of the same shape."""
        gradient = tf.cast(gradient, variable.dtype)
        momentum, velocity = self._slots_of(variable)
        momentum.assign_add((gradient - momentum) * (1 - self.beta_1))
        velocity.assign_add((tf.square(gradient) - velocity) * (1 - self.beta_2))
        beta_1_power, beta_2_power = self._beta_powers(variable.dtype)
        update = momentum / (1 - beta_1_power)
        update /= tf.sqrt(velocity / (1 - beta_2_power)) + self.epsilon
        rate = self._rate_of(variable, learning_rate)
        if self._use_weight_decay(variable):
            update += self.weight_decay * variable
            rate *= _trust_ratio(tf.norm(variable), tf.norm(update))
        variable.assign_sub(rate * update)


def _trust_ratio(variable_norm, update_norm):
    ratio = tf.math.divide_no_nan(variable_norm, update_norm)
    return tf.where(ratio > 0, ratio, tf.ones_like(ratio))
