"""The masked-LM head: from hidden states to a score for every piece of the vocabulary."""

import keras
from keras import ops

from rembert_tf.layers import activations
from rembert_tf.layers.initializers import truncated_normal
from rembert_tf.layers.output_embedding import OutputEmbedding


@keras.saving.register_keras_serializable(package="rembert_tf")
class MaskedLMHead(keras.layers.Layer):
    """Picks the masked positions, maps them to width `E_out`, and scores the vocabulary.

    Positions are picked first: a masked LM predicts 15 % of its tokens, and the product with the
    table is the most expensive one of the whole model.

    Args:
        vocab_size: Number of pieces, `V`.
        hidden_size: Width of the hidden states, `D`.
        output_embedding_size: Width of the output table, `E_out`.
        hidden_act: Name of the activation, `gelu` or `gelu_new`.
        tied: Whether the output table is the input table; then call
            `head.output_embedding.tie_to` before `build`.
        layer_norm_eps: Epsilon of the normalization.
        initializer_range: Standard deviation of fresh weights.

    Example:
        >>> head = MaskedLMHead(vocab_size=100, hidden_size=16, output_embedding_size=24)
        >>> head(np.ones((2, 7, 16)), masked_lm_positions=np.array([[1, 4], [2, 0]])).shape
        TensorShape([2, 2, 100])
    """

    def __init__(
        self,
        vocab_size,
        hidden_size,
        output_embedding_size,
        hidden_act="gelu",
        tied=False,
        layer_norm_eps=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.output_embedding_size = output_embedding_size
        self.hidden_act = hidden_act
        self.tied = tied
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range

        self.dense = keras.layers.Dense(
            output_embedding_size,
            activation=activations.get(hidden_act),
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=self.dtype_policy, name="layer_norm"
        )
        self.output_embedding = OutputEmbedding(
            vocab_size,
            output_embedding_size,
            tied=tied,
            initializer_range=initializer_range,
            dtype=self.dtype_policy,
            name="output_embedding",
        )

    def build(self, input_shape=None):
        """Makes the variables of the three parts."""
        self.dense.build((None, self.hidden_size))
        self.layer_norm.build((None, self.output_embedding_size))
        self.output_embedding.build((None, self.output_embedding_size))

    def call(self, hidden_states, masked_lm_positions=None):
        """Scores.

        Args:
            hidden_states: The encoder's output, float [B, T, D].
            masked_lm_positions: Positions to predict, int [B, P]; every position if missing.

        Returns:
            Logits, float [B, P, V], or [B, T, V] without positions.
        """
        batch, length = ops.shape(hidden_states)[:2]
        rows = ops.reshape(hidden_states, (-1, self.hidden_size))
        if masked_lm_positions is not None:
            positions = ops.cast(masked_lm_positions, "int32")
            first_rows = ops.expand_dims(ops.arange(batch, dtype="int32") * length, 1)
            rows = ops.take(rows, ops.reshape(positions + first_rows, (-1,)), axis=0)
            length = ops.shape(positions)[1]
        logits = self.output_embedding(self.layer_norm(self.dense(rows)))
        return ops.reshape(logits, (batch, length, self.vocab_size))

    def compute_output_shape(self, hidden_states_shape, masked_lm_positions_shape=None):
        """Returns `[B, P, V]`, or `[B, T, V]` without positions."""
        return (*(masked_lm_positions_shape or hidden_states_shape[:2]), self.vocab_size)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "output_embedding_size": self.output_embedding_size,
            "hidden_act": self.hidden_act,
            "tied": self.tied,
            "layer_norm_eps": self.layer_norm_eps,
            "initializer_range": self.initializer_range,
        }
