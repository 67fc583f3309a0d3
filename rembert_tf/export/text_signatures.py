"""The signatures that take strings, for every kind of model."""

import keras

from rembert_tf.export import (
    classification,
    masked_lm,
    question_answering,
    sentence_embedding,
    tagging,
)
from rembert_tf.export.signature_types import Signatures
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.tokenization import RemBertTokenizer

HEADS = {
    RemBertEncoder: sentence_embedding,
    RemBertForMaskedLM: masked_lm,
    RemBertForQuestionAnswering: question_answering,
    RemBertForSequenceClassification: classification,
    RemBertForTokenClassification: tagging,
}


def text_signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns the signatures of a model by name, and the tokenizers that they need.

    Raises:
        ValueError: there are none for a model of this class, or the settings do not fit it.
    """
    for model_class, head in HEADS.items():
        if isinstance(model, model_class):
            return head.signatures(model, tokenizer, config)
    raise ValueError(
        f"`model` must be one of {', '.join(c.__name__ for c in HEADS)}. "
        f"Received: model of type {type(model).__name__}"
    )
