"""Calls of a model inside an exported graph: features in, float32 tensors by name out."""

from collections.abc import Callable

import keras
import tensorflow as tf

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

CLASSIFIERS = (RemBertForSequenceClassification, RemBertForTokenClassification)
MODELS = (RemBertEncoder, RemBertForMaskedLM, RemBertForQuestionAnswering, *CLASSIFIERS)


def outputs(model: keras.Model, features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns everything that a model says about a batch.

    Args:
        model: one of `MODELS`.
        features: what the model takes, int32 [B, T] each; a masked LM takes `masked_lm_positions`, int32 [B, P], too.

    Returns:
        float32. Classifiers: `logits` and `probabilities` [B, C] or [B, T, C]. Masked LM: `logits` [B, P, V].
        Questions: `start_logits` and `end_logits` [B, T]. Encoder: `last_hidden_state` [B, T, D] and, if it has a
        pooler, `pooler_output` [B, D].
    """
    made = model(features, training=False)
    made = made if isinstance(made, dict) else {"logits": made}
    made = {name: tf.cast(value, tf.float32) for name, value in made.items()}
    if isinstance(model, CLASSIFIERS):
        made["probabilities"] = tf.nn.softmax(made["logits"])
    return made


def serving_default(model: keras.Model, length: int) -> Callable[..., dict[str, tf.Tensor]]:
    """Returns the signature that takes piece ids, int32 [B, T] each.

    Args:
        model: one of `MODELS`.
        length: T, or 0 for any.
    """
    names = ["input_ids", "attention_mask", "token_type_ids"]
    specs = [tf.TensorSpec([None, length or None], tf.int32, name) for name in names]
    if isinstance(model, RemBertForMaskedLM):
        names.append("masked_lm_positions")
        specs.append(tf.TensorSpec([None, None], tf.int32, names[-1]))

    @tf.function(input_signature=specs)
    def serving_default(*features):
        return outputs(model, dict(zip(names, features, strict=True)))

    return serving_default
