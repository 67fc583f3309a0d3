"""How long the sequences of an export are where no setting says so."""

import dataclasses

import keras

from rembert_tf.export_config import ServingConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.finetuning_config import XTREME_LENGTHS, LengthConfig

# Encoders and masked LMs are of no kind.
_KINDS = {
    RemBertForQuestionAnswering: "question_answering",
    RemBertForSequenceClassification: "classification",
    RemBertForTokenClassification: "tagging",
}


def kind_of(model: keras.Model) -> str:
    """Returns the kind of task that a model was fine-tuned on, as `XTREME_LENGTHS` names them, or ""."""
    return next((kind for cls, kind in _KINDS.items() if isinstance(model, cls)), "")


def with_lengths(config: ServingConfig, model: keras.Model) -> ServingConfig:
    """Returns the configuration with each length filled in that is `None`.

    It is XTREME's (Hu et al. 2020): sequences of 128 pieces, of a model for questions 384, questions of 64, windows 128
    apart. A model that has fewer positions takes sequences as long as it can, and questions of half of one, at most.
    """
    default = LengthConfig()
    longest = XTREME_LENGTHS.get(kind_of(model), default.max_seq_length)
    longest = config.max_seq_length or min(longest, model.config.max_position_embeddings)
    lengths = {
        "max_seq_length": longest,
        "doc_stride": default.doc_stride,
        "max_query_length": min(default.max_query_length, longest // 2),
    }
    return dataclasses.replace(
        config, **{k: v for k, v in lengths.items() if getattr(config, k) is None}
    )
