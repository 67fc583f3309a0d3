"""The head of sequence and token classification: dropout and one dense layer."""

import keras
from keras import ops

from rembert_tf.layers.dropout import StatelessDropout
from rembert_tf.layers.initializers import truncated_normal


@keras.saving.register_keras_serializable(package="rembert_tf")
class ClassificationHead(keras.layers.Layer):
    """Drops out and maps hidden states to one logit a class, in float32 under mixed precision.

    Args:
        num_labels: Number of classes, `C`.
        hidden_size: Width of the hidden states, `D`.
        dropout_rate: Dropout rate before the dense layer.
        layer_number: Number of the dropout layer in its model.
        initializer_range: Standard deviation of fresh weights.

    Example:
        >>> head = ClassificationHead(num_labels=3, hidden_size=16)
        >>> head(np.ones((2, 7, 16))).shape
        TensorShape([2, 7, 3])
    """

    def __init__(
        self,
        num_labels,
        hidden_size,
        dropout_rate=0.0,
        layer_number=0,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.hidden_size = hidden_size
        self.dropout_rate = dropout_rate
        self.layer_number = layer_number
        self.initializer_range = initializer_range

        self.dropout = StatelessDropout(
            dropout_rate, layer_number, dtype=self.dtype_policy, name="dropout"
        )
        self.dense = keras.layers.Dense(
            num_labels,
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.variable_dtype,
            name="dense",
        )

    def build(self, input_shape=None):
        """Makes the variables of the dense layer."""
        self.dense.build((None, self.hidden_size))

    def call(self, hidden_states, dropout_keys=None, training=None):
        """Scores the classes.

        Args:
            hidden_states: float [B, ..., D].
            dropout_keys: One key an example, uint32 [B]; for training with dropout.
            training: Whether to drop.

        Returns:
            Logits, float [B, ..., C].
        """
        hidden_states = self.dropout(hidden_states, dropout_keys, training=training)
        logits = self.dense(ops.reshape(hidden_states, (-1, self.hidden_size)))
        return ops.reshape(logits, (*ops.shape(hidden_states)[:-1], self.num_labels))

    def compute_output_shape(self, input_shape):
        """Returns the input's shape with `C` in place of its last axis."""
        return (*input_shape[:-1], self.num_labels)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "num_labels": self.num_labels,
            "hidden_size": self.hidden_size,
            "dropout_rate": self.dropout_rate,
            "layer_number": self.layer_number,
            "initializer_range": self.initializer_range,
        }
