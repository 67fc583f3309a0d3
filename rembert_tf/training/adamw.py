"""AdamW with a fused in-place update and a learning rate for each variable."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="rembert_tf")
class AdamW(keras.optimizers.AdamW):
    """`keras.optimizers.AdamW` whose update is one fused in-place operation.

    The numbers are Keras' own; Adam's temporaries of the size of the variable are not made (on a vocabulary table they
    are the peak of a step's memory), and weight decay makes one.

    A row that does not occur in a batch still moves, by its momentum, for tied and untied
    tables alike (Adam's definition, not a lazy variant).

    Args:
        *args: those of `keras.optimizers.AdamW`.
        rate_factors: what the learning rate is multiplied by, for each variable in the order of `build`; default: 1 for
            all. Weight decay, which is a share of the learning rate, follows.
        **kwargs: those of `keras.optimizers.AdamW`.

    Example:
    >>> from rembert_tf.training.adamw import AdamW
    >>> optimizer = AdamW(learning_rate=2e-4, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0)
    """

    def __init__(self, *args, rate_factors=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.rate_factors = None if rate_factors is None else tuple(rate_factors)

    def build(self, variables):
        """Makes the two slots of each variable.

        Raises:
            ValueError: `rate_factors` are not one for each variable.
        """
        if self.rate_factors is not None and len(self.rate_factors) != len(variables):
            raise ValueError(
                f"`rate_factors` must be one for each of the {len(variables)} variables. "
                f"Received: {len(self.rate_factors)} factors"
            )
        super().build(variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one `tf.Variable` with its dense gradient of the same shape."""
        dtype = variable.dtype
        learning_rate = self._rate_of(variable, learning_rate)
        if self._use_weight_decay(variable):
            decay = tf.cast(self.weight_decay, dtype) * learning_rate
            variable.assign_sub(variable * decay)
        momentum, velocity = self._slots_of(variable)
        beta_1, beta_2 = tf.cast(self.beta_1, dtype), tf.cast(self.beta_2, dtype)
        beta_1_power, beta_2_power = self._beta_powers(dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=momentum.handle,
            v=velocity.handle,
            beta1_power=beta_1_power,
            beta2_power=beta_2_power,
            lr=learning_rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        factors = None if self.rate_factors is None else list(self.rate_factors)
        return {**super().get_config(), "rate_factors": factors}

    def _apply_weight_decay(self, variables):
        """Does nothing: `update_step` decays, where the learning rate of the variable is known."""

    def _rate_of(self, variable, learning_rate):
        rate = tf.cast(learning_rate, variable.dtype)
        if self.rate_factors is None:
            return rate
        return rate * self.rate_factors[self._get_variable_index(variable)]

    def _slots_of(self, variable):
        index = self._get_variable_index(variable)
        return self._momentums[index].value, self._velocities[index].value

    def _beta_powers(self, dtype):
        step = tf.cast(self.iterations.value + 1, dtype)
        return tf.cast(self.beta_1, dtype) ** step, tf.cast(self.beta_2, dtype) ** step
