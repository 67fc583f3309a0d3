"""One label for a whole sequence, or a pair of sequences (XNLI, PAWS-X)."""

import keras

from rembert_tf.models.classification import ClassificationModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertForSequenceClassification(ClassificationModel):
    """Classifies a sequence by its pooled first token.

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
        ...                        id2label=("contradiction", "entailment", "neutral"))
        >>> model = RemBertForSequenceClassification(config)
        >>> model(np.array([[3, 14, 15, 4]])).shape
        TensorShape([1, 3])
    """

    def __init__(self, config, *, name="rembert_for_sequence_classification", **kwargs):
        super().__init__(config, add_pooler=True, name=name, **kwargs)

    def call(self, inputs, training=None):
        """Scores the classes of each sequence.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary of the encoder's features.
            training: Whether to drop.

        Returns:
            Logits, float [B, C]; float32 under mixed precision.
        """
        return self._classify(inputs, training, "pooler_output")
