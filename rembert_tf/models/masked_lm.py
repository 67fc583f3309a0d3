"""The masked language model: the encoder, and the head that is dropped after pre-training."""

import keras
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from rembert_tf.layers.masked_lm_head import MaskedLMHead
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.pretrained_model import ENCODER_FEATURES, PretrainedModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertForMaskedLM(PretrainedModel):
    """Predicts masked pieces (Devlin et al. 2019), with a tied or an untied output embedding.

    The encoder has no pooler: nothing would train it.

    Args:
        config: The architecture.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy) and `trainable`.

    Example:
        >>> config = RemBertConfig(vocab_size=100, hidden_size=16, num_attention_heads=2,
        ...                        num_hidden_layers=2, intermediate_size=32,
        ...                        input_embedding_size=8, output_embedding_size=24)
        >>> model = RemBertForMaskedLM(config)
        >>> model({"input_ids": np.array([[3, 4, 15, 0]]),
        ...        "masked_lm_positions": np.array([[1, 2]])}).shape
        TensorShape([1, 2, 100])
    """

    features = (*ENCODER_FEATURES, "masked_lm_positions")

    def __init__(self, config, *, name="rembert_for_masked_lm", **kwargs):
        super().__init__(config, name=name, **kwargs)
        self.encoder = RemBertEncoder(
            config, add_pooler=False, dtype=self.dtype_policy, name="rembert"
        )
        self.masked_lm_head = MaskedLMHead(
            config.vocab_size,
            config.hidden_size,
            config.output_embedding_size,
            hidden_act=config.hidden_act,
            tied=config.tie_word_embeddings,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
            dtype=self.dtype_policy,
            name="masked_lm_head",
        )
        if config.tie_word_embeddings:
            input_table = self.encoder.embeddings.word_embeddings
            self.masked_lm_head.output_embedding.tie_to(input_table)
        self.masked_lm_head.build((None, None, config.hidden_size))
        self.built = True

    def call(self, inputs, training=None):
        """Scores the vocabulary at the masked positions.

        A model that was loaded from weights without a masked-LM head (as the published checkpoint
        at Hugging Face is) has a new one, whose scores mean nothing: it has to be trained first,
        or `newly_made` be set to `()` by whoever wants the scores nevertheless.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary of the encoder's features that may
                also hold `masked_lm_positions` int [B, P]; every position if missing.
            training: Whether to drop.

        Returns:
            Logits, float [B, P, V], or [B, T, V] without positions.

        Raises:
            ValueError: If the head is newly made and the call is no training step.
        """
        features = self.complete_features(inputs, training)
        self._refuse_new_head()
        positions = features.pop("masked_lm_positions", None)
        outputs = self.encoder(features, training=training)
        return self.masked_lm_head(outputs["last_hidden_state"], positions)

    def _refuse_new_head(self):
        """Raises if the scores would be those of random weights."""
        new = [path for path in self.newly_made if path.startswith("masked_lm_head/")]
        if new and not in_symbolic_scope():  # where Keras only looks at shapes
            raise ValueError(
                "the masked-LM head was not in the loaded weights and is random: its scores mean "
                "nothing. Train it (calls with `training=True` do), or set `model.newly_made = ()` to "
                f"get them nevertheless. Received: newly made {', '.join(new)}"
            )
