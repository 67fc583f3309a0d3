"""Multi-head self-attention on flat rows."""

import math

import keras
from keras import ops

from rembert_tf.layers.dropout import StatelessDropout
from rembert_tf.layers.initializers import truncated_normal


@keras.saving.register_keras_serializable(package="rembert_tf")
class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention with products on flat rows.

    All projections are one `[B·T, D]` by `[D, D]` product. The mask stays boolean until the scores
    are in float32, where it becomes 0 or -1e30. A sum with that is -1e30 itself, whatever the score
    was: hidden tokens have no weight at all, and a row without a single visible token is finite too
    (it gets the mean of all values).

    Args:
        hidden_size: Width of the hidden states, `D`.
        num_heads: Number of heads, `N`.
        dropout_rate: Dropout rate of the attention probabilities.
        layer_number: Number of the dropout layer in its model.
        initializer_range: Standard deviation of fresh weights.

    Example:
        >>> attention = SelfAttention(hidden_size=16, num_heads=2)
        >>> attention(np.ones((1, 3, 16)), np.array([[True, True, False]])).shape
        TensorShape([1, 3, 16])
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        dropout_rate=0.0,
        layer_number=0,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.layer_number = layer_number
        self.initializer_range = initializer_range

        self.query = self._projection("query")
        self.key = self._projection("key")
        self.value = self._projection("value")
        self.output_dense = self._projection("output")
        self.dropout = StatelessDropout(
            dropout_rate, layer_number, dtype=self.dtype_policy, name="dropout"
        )

    def _projection(self, name):
        return keras.layers.Dense(
            self.hidden_size,
            kernel_initializer=truncated_normal(self.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape=None):
        """Makes the variables of the four projections."""
        for dense in (self.query, self.key, self.value, self.output_dense):
            dense.build((None, self.hidden_size))

    def call(self, hidden_states, attention_mask=None, dropout_keys=None, training=None):
        """Attends.

        Args:
            hidden_states: float [B, T, D].
            attention_mask: Which tokens may be seen, bool [B, T]; all if missing.
            dropout_keys: One key an example, uint32 [B]; for training with dropout.
            training: Whether to drop.

        Returns:
            float [B, T, D].
        """
        batch, length = ops.shape(hidden_states)[:2]
        head_size = self.hidden_size // self.num_heads
        rows = ops.reshape(hidden_states, (-1, self.hidden_size))

        def heads(x, axes):
            return ops.transpose(ops.reshape(x, (batch, length, self.num_heads, head_size)), axes)

        query = heads(self.query(rows) * (1 / math.sqrt(head_size)), (0, 2, 1, 3))  # [B, N, T, d]
        key = heads(self.key(rows), (0, 2, 3, 1))  # [B, N, d, T]
        value = heads(self.value(rows), (0, 2, 1, 3))  # [B, N, T, d]

        scores = ops.matmul(query, key)  # [B, N, T, T]
        wide = keras.backend.result_type(scores.dtype, "float32")
        scores = ops.cast(scores, wide)
        if attention_mask is not None:
            hidden = ops.cast(ops.logical_not(attention_mask), wide) * -1e30
            scores = scores + ops.reshape(hidden, (batch, 1, 1, length))
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        probabilities = self.dropout(probabilities, dropout_keys, training=training)

        mixed = ops.transpose(ops.matmul(probabilities, value), (0, 2, 1, 3))  # [B, T, N, d]
        mixed = self.output_dense(ops.reshape(mixed, (-1, self.hidden_size)))
        return ops.reshape(mixed, (batch, length, self.hidden_size))

    def compute_output_shape(self, hidden_states_shape, attention_mask_shape=None, **kwargs):
        """Returns the shape of the hidden states."""
        return hidden_states_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
            "layer_number": self.layer_number,
            "initializer_range": self.initializer_range,
        }
