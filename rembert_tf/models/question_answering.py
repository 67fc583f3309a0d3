"""Where in a text the answer to a question stands (XQuAD, MLQA, TyDiQA-GoldP)."""

import keras
from keras import ops

from rembert_tf.layers.initializers import truncated_normal
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertForQuestionAnswering(PretrainedModel):
    """Scores each token as the first and as the last one of the answer (Devlin et al. 2019, 4.2).

    The encoder has no pooler, and nothing is dropped before the last layer. Question and padding
    are scored like the text: whoever picks a span leaves them out.

    Args:
        config: The architecture; its `id2label` is left out, since a span has no classes.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy) and `trainable`.

    Example:
        >>> config = RemBertConfig(vocab_size=100, hidden_size=16, num_attention_heads=2,
        ...                        num_hidden_layers=2, intermediate_size=32,
        ...                        input_embedding_size=8, output_embedding_size=24)
        >>> model = RemBertForQuestionAnswering(config)
        >>> outputs = model({"input_ids": np.array([[3, 14, 4, 15, 9, 4]]),
        ...                  "token_type_ids": np.array([[0, 0, 0, 1, 1, 1]])})
        >>> outputs["start_logits"].shape, outputs["end_logits"].shape
        (TensorShape([1, 6]), TensorShape([1, 6]))
    """

    def __init__(self, config, *, name="rembert_for_question_answering", **kwargs):
        super().__init__(config, name=name, **kwargs)
        # Hugging Face's class makes as many outputs as its configuration has labels.
        self.config = self.config.replace(id2label=())
        self.encoder = RemBertEncoder(
            self.config, add_pooler=False, dtype=self.dtype_policy, name="rembert"
        )
        self.qa_outputs = keras.layers.Dense(
            2,
            kernel_initializer=truncated_normal(config.initializer_range),
            dtype=self.variable_dtype,
            name="qa_outputs",
        )
        self.qa_outputs.build((None, None, config.hidden_size))
        self.built = True

    def call(self, inputs, training=None):
        """Scores both ends of the answer.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary of the encoder's features.
            training: Whether to drop, inside the encoder.

        Returns:
            A dictionary: `start_logits` and `end_logits`, float [B, T]; float32 under mixed
            precision.
        """
        features = self.complete_features(inputs, training)
        outputs = self.encoder(features, training=training)
        start_logits, end_logits = ops.unstack(
            self.qa_outputs(outputs["last_hidden_state"]), num=2, axis=-1
        )
        return {"start_logits": start_logits, "end_logits": end_logits}
