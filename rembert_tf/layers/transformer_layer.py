"""A Transformer layer as in BERT: attention and feed-forward, each added and then normalized."""

import keras
from keras import ops

from rembert_tf.layers import activations
from rembert_tf.layers.dropout import StatelessDropout
from rembert_tf.layers.initializers import truncated_normal
from rembert_tf.layers.self_attention import SelfAttention


@keras.saving.register_keras_serializable(package="rembert_tf")
class TransformerLayer(keras.layers.Layer):
    """Attention, then feed-forward; each result is added to its input and the sum normalized.

    Args:
        hidden_size: Width of the hidden states, `D`.
        num_heads: Number of attention heads, `N`.
        intermediate_size: Width inside the feed-forward block.
        hidden_act: Name of the activation, `gelu` or `gelu_new`.
        hidden_dropout_rate: Dropout rate of what is added.
        attention_dropout_rate: Dropout rate of the attention probabilities.
        index: Place of this layer among the Transformer layers, from 0.
        layer_norm_eps: Epsilon of the normalizations.
        initializer_range: Standard deviation of fresh weights.

    Example:
        >>> layer = TransformerLayer(hidden_size=16, num_heads=2, intermediate_size=64)
        >>> layer(np.ones((1, 3, 16)), np.array([[True, True, False]])).shape
        TensorShape([1, 3, 16])
    """

    def __init__(
        self,
        hidden_size,
        num_heads,
        intermediate_size,
        hidden_act="gelu",
        hidden_dropout_rate=0.0,
        attention_dropout_rate=0.0,
        index=0,
        layer_norm_eps=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_size = hidden_size
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.hidden_act = hidden_act
        self.hidden_dropout_rate = hidden_dropout_rate
        self.attention_dropout_rate = attention_dropout_rate
        self.index = index
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range

        policy = self.dtype_policy
        first_number = 1 + 3 * index  # of this layer's three dropouts; 0 is the embeddings'
        self.attention = SelfAttention(
            hidden_size,
            num_heads,
            dropout_rate=attention_dropout_rate,
            layer_number=first_number,
            initializer_range=initializer_range,
            dtype=policy,
            name="attention",
        )
        self.attention_dropout = StatelessDropout(
            hidden_dropout_rate, first_number + 1, dtype=policy, name="attention_dropout"
        )
        self.attention_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=policy, name="attention_norm"
        )
        self.intermediate = keras.layers.Dense(
            intermediate_size,
            activation=activations.get(hidden_act),
            kernel_initializer=truncated_normal(initializer_range),
            dtype=policy,
            name="intermediate",
        )
        self.output_dense = keras.layers.Dense(
            hidden_size,
            kernel_initializer=truncated_normal(initializer_range),
            dtype=policy,
            name="output",
        )
        self.output_dropout = StatelessDropout(
            hidden_dropout_rate, first_number + 2, dtype=policy, name="output_dropout"
        )
        self.output_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=policy, name="output_norm"
        )

    def build(self, input_shape=None):
        """Makes the variables of all parts."""
        self.attention.build((None, None, self.hidden_size))
        self.attention_norm.build((None, None, self.hidden_size))
        self.intermediate.build((None, self.hidden_size))
        self.output_dense.build((None, self.intermediate_size))
        self.output_norm.build((None, None, self.hidden_size))

    def call(self, hidden_states, attention_mask=None, dropout_keys=None, training=None):
        """Transforms.

        Args:
            hidden_states: float [B, T, D].
            attention_mask: Which tokens may be seen, bool [B, T]; all if missing.
            dropout_keys: One key an example, uint32 [B]; for training with dropout.
            training: Whether to drop.

        Returns:
            float [B, T, D].
        """
        attended = self.attention(hidden_states, attention_mask, dropout_keys, training=training)
        attended = self.attention_dropout(attended, dropout_keys, training=training)
        hidden_states = self.attention_norm(hidden_states + attended)

        rows = ops.reshape(hidden_states, (-1, self.hidden_size))
        transformed = self.output_dense(self.intermediate(rows))
        transformed = ops.reshape(transformed, ops.shape(hidden_states))
        transformed = self.output_dropout(transformed, dropout_keys, training=training)
        return self.output_norm(hidden_states + transformed)

    def compute_output_shape(self, hidden_states_shape, attention_mask_shape=None, **kwargs):
        """Returns the shape of the hidden states."""
        return hidden_states_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "hidden_act": self.hidden_act,
            "hidden_dropout_rate": self.hidden_dropout_rate,
            "attention_dropout_rate": self.attention_dropout_rate,
            "index": self.index,
            "layer_norm_eps": self.layer_norm_eps,
            "initializer_range": self.initializer_range,
        }
