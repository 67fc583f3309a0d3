"""The encoder: what is kept for fine-tuning."""

import keras
from keras import ops

from rembert_tf.layers.embeddings import Embeddings
from rembert_tf.layers.initializers import truncated_normal
from rembert_tf.layers.transformer_layer import TransformerLayer
from rembert_tf.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertEncoder(PretrainedModel):
    """Turns ids into hidden states: input embedding, projection, Transformer layers, pooler.

    Args:
        config: The architecture.
        add_pooler: Whether to add the dense layer with tanh on the first token.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy) and `trainable`.

    Attributes:
        remat: Whether training keeps only the input of each Transformer layer and computes the
            rest anew in the backward pass: less memory for more time, the same gradients. May be
            set at any moment before the training function is traced.

    Example:
        >>> config = RemBertConfig(vocab_size=100, hidden_size=16, num_attention_heads=2,
        ...                        num_hidden_layers=2, intermediate_size=32,
        ...                        input_embedding_size=8, output_embedding_size=24)
        >>> encoder = RemBertEncoder(config)
        >>> outputs = encoder({"input_ids": np.array([[3, 14, 15, 0]]),
        ...                    "attention_mask": np.array([[1, 1, 1, 0]])})
        >>> outputs["last_hidden_state"].shape, outputs["pooler_output"].shape
        (TensorShape([1, 4, 16]), TensorShape([1, 16]))
    """

    def __init__(self, config, *, add_pooler=True, name="rembert", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.add_pooler = add_pooler
        self.remat = False

        self.embeddings = Embeddings(
            config.vocab_size,
            config.input_embedding_size,
            max_position_embeddings=config.max_position_embeddings,
            type_vocab_size=config.type_vocab_size,
            dropout_rate=config.embedding_dropout_prob,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.input_projection = self._dense("input_projection") if config.input_projection else None
        for index in range(config.num_hidden_layers):
            layer = TransformerLayer(
                config.hidden_size,
                config.num_attention_heads,
                config.intermediate_size,
                hidden_act=config.hidden_act,
                hidden_dropout_rate=config.hidden_dropout_prob,
                attention_dropout_rate=config.attention_probs_dropout_prob,
                index=index,
                layer_norm_eps=config.layer_norm_eps,
                initializer_range=config.initializer_range,
                dtype=self.dtype_policy,
                name=f"layer_{index}",
            )
            # An attribute each: `tf.train.Checkpoint` does not look into lists of Keras layers.
            setattr(self, layer.name, layer)
        self.pooler = self._dense("pooler", activation="tanh") if add_pooler else None
        self.build()

    def _dense(self, name, activation=None):
        return keras.layers.Dense(
            self.config.hidden_size,
            activation=activation,
            kernel_initializer=truncated_normal(self.config.initializer_range),
            dtype=self.dtype_policy,
            name=name,
        )

    @property
    def transformer_layers(self):
        """The Transformer layers, from the first to the last."""
        return tuple(getattr(self, f"layer_{n}") for n in range(self.config.num_hidden_layers))

    def build(self, input_shape=None):
        """Makes every variable; the constructor calls it."""
        self.embeddings.build((None, None))
        if self.input_projection is not None:
            self.input_projection.build((None, self.config.input_embedding_size))
        for layer in self.transformer_layers:
            layer.build((None, None, self.config.hidden_size))
        if self.pooler is not None:
            self.pooler.build((None, self.config.hidden_size))

    def call(self, inputs, training=None, output_hidden_states=False):
        """Encodes.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary that holds them and may hold
                `attention_mask` int or bool [B, T] (all ones if missing), `token_type_ids`
                int [B, T] (zeros if missing) and `dropout_keys` uint32 [B].
            training: Whether to drop.
            output_hidden_states: Whether to return the hidden states of all layers too.

        Returns:
            A dictionary: `last_hidden_state` float [B, T, D]; `pooler_output` float [B, D] if
            there is a pooler; `hidden_states` if asked for, a tuple of float [B, T, D], first
            the projected embedding, then every layer's output.
        """
        features = self.complete_features(inputs, training)
        keys = features.get("dropout_keys")
        hidden_states = self.embeddings(
            features["input_ids"], features["token_type_ids"], keys, training=training
        )
        if self.input_projection is not None:
            batch, length = ops.shape(hidden_states)[:2]
            rows = ops.reshape(hidden_states, (-1, self.config.input_embedding_size))
            # The width is written out: TensorFlow cannot infer it for an empty batch.
            shape = (batch, length, self.config.hidden_size)
            hidden_states = ops.reshape(self.input_projection(rows), shape)
        collected = [hidden_states]
        for layer in self.transformer_layers:

            def transform(x, layer=layer):
                return layer(x, features["attention_mask"], keys, training=training)

            # `keras.RematScope` calls layers with keywords, which TensorFlow refuses in a graph.
            transform = keras.remat(transform) if self.remat and training else transform
            hidden_states = transform(hidden_states)
            collected.append(hidden_states)

        outputs = {"last_hidden_state": hidden_states}
        if self.pooler is not None:
            outputs["pooler_output"] = self.pooler(hidden_states[:, 0])
        if output_hidden_states:
            outputs["hidden_states"] = tuple(collected)
        return outputs

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "add_pooler": self.add_pooler}
