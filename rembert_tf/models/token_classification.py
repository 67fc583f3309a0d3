"""One label for each token (udpos, PAN-X)."""

import keras

from rembert_tf.models.classification import ClassificationModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertForTokenClassification(ClassificationModel):
    """Classifies each token by its last hidden state; the encoder has no pooler.

    Args:
        config: The architecture; `config.id2label` names the classes.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy) and `trainable`.

    Raises:
        ValueError: If `config.id2label` is empty.

    Example:
        >>> config = RemBertConfig(vocab_size=100, hidden_size=16, num_attention_heads=2,
        ...                        num_hidden_layers=2, intermediate_size=32,
        ...                        input_embedding_size=8, output_embedding_size=24,
        ...                        id2label=("NOUN", "VERB", "X"))
        >>> model = RemBertForTokenClassification(config)
        >>> model(np.array([[3, 14, 15, 4]])).shape
        TensorShape([1, 4, 3])
    """

    def __init__(self, config, *, name="rembert_for_token_classification", **kwargs):
        super().__init__(config, add_pooler=False, name=name, **kwargs)

    def call(self, inputs, training=None):
        """Scores the classes of each token.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary of the encoder's features.
            training: Whether to drop.

        Returns:
            Logits, float [B, T, C]; float32 under mixed precision.
        """
        return self._classify(inputs, training, "last_hidden_state")
