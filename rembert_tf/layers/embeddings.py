"""The input embedding: what a piece, its place and its segment are worth, in `E_in` numbers."""

import keras
from keras import ops

from rembert_tf.layers.dropout import StatelessDropout
from rembert_tf.layers.initializers import truncated_normal


@keras.saving.register_keras_serializable(package="rembert_tf")
class Embeddings(keras.layers.Layer):
    """Sums word, position and token-type vectors, normalizes the sum, and drops out.

    All of it happens at width `E_in` (256 in RemBERT, beside a hidden width of 1,152): a linear map
    to the hidden width follows outside. The tables stay in the variables' type, and what is
    gathered from them is cast: mixed precision would otherwise convert a table of 250,300 rows to
    look up a few hundred (Chung et al. 2021, section 3).

    Args:
        vocab_size: Number of pieces, `V`.
        width: Width of the vectors, `E_in`.
        max_position_embeddings: Number of positions.
        type_vocab_size: Number of token types.
        dropout_rate: Dropout rate of the result.
        layer_norm_eps: Epsilon of the normalization.
        initializer_range: Standard deviation of fresh tables.

    Example:
        >>> embeddings = Embeddings(vocab_size=100, width=8)
        >>> embeddings(np.array([[3, 14, 15]])).shape
        TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        vocab_size,
        width,
        max_position_embeddings=512,
        type_vocab_size=2,
        dropout_rate=0.0,
        layer_norm_eps=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.width = width
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.dropout_rate = dropout_rate
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range

        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_eps, dtype=self.dtype_policy, name="layer_norm"
        )
        self.dropout = StatelessDropout(
            dropout_rate, layer_number=0, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, input_shape=None):
        """Makes the three tables and the normalization's variables."""
        self.word_embeddings = self._add_table("word_embeddings", self.vocab_size)
        self.position_embeddings = self._add_table(
            "position_embeddings", self.max_position_embeddings
        )
        self.token_type_embeddings = self._add_table("token_type_embeddings", self.type_vocab_size)
        self.layer_norm.build((None, None, self.width))

    def _add_table(self, name, rows):
        return self.add_weight(
            name=name,
            shape=(rows, self.width),
            initializer=truncated_normal(self.initializer_range),
            autocast=False,
        )

    def call(self, input_ids, token_type_ids=None, dropout_keys=None, training=None):
        """Embeds.

        Args:
            input_ids: Ids of the pieces, int [B, T].
            token_type_ids: Ids of the segments, int [B, T]; all 0 if missing.
            dropout_keys: One key an example, uint32 [B]; for training with dropout.
            training: Whether to drop.

        Returns:
            Embedded pieces, float [B, T, E_in].

        Raises:
            ValueError: If the sequence is longer than the table of positions.
        """
        length = ops.shape(input_ids)[1]
        if isinstance(length, int) and length > self.max_position_embeddings:
            raise ValueError(
                "`input_ids` must not be longer than `max_position_embeddings`. Received: "
                f"length {length}, max_position_embeddings={self.max_position_embeddings}"
            )
        if token_type_ids is None:
            token_type_ids = ops.zeros_like(input_ids)
        embedded = (
            ops.take(self.word_embeddings, input_ids, axis=0)
            + self.position_embeddings[:length]
            + ops.take(self.token_type_embeddings, token_type_ids, axis=0)
        )
        embedded = self.layer_norm(ops.cast(embedded, self.compute_dtype))
        return self.dropout(embedded, dropout_keys, training=training)

    def compute_output_shape(self, input_shape):
        """Returns `[B, T, E_in]` for `[B, T]`."""
        return (*input_shape, self.width)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "width": self.width,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": self.type_vocab_size,
            "dropout_rate": self.dropout_rate,
            "layer_norm_eps": self.layer_norm_eps,
            "initializer_range": self.initializer_range,
        }
