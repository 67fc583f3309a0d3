"""Where no setting says so, sequences are as long as XTREME's for the kind of model, if it has the positions."""

import pytest

from rembert_tf.export.lengths import kind_of, with_lengths
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering

KINDS = {
    "questions": "question_answering", "classifier": "classification", "tagger": "tagging",
    "masked_lm": "", "encoder": "",
}  # fmt: skip


@pytest.mark.parametrize("name, kind", KINDS.items())
def test_each_kind_of_model_has_its_length(models, name, kind):
    model = models[name]
    assert kind_of(model) == kind
    assert with_lengths(ServingConfig(), model).max_seq_length == 32  # all its positions
    filled = with_lengths(ServingConfig(max_seq_length=16, doc_stride=9), model)
    assert (filled.max_seq_length, filled.doc_stride, filled.max_query_length) == (16, 9, 8)


def test_models_with_positions_enough_have_the_lengths_of_xtreme(models):
    config = models["questions"].config.replace(max_position_embeddings=512)
    for name, model in models.items():
        class_ = type(model)
        filled = with_lengths(
            ServingConfig(top_k=2), class_(config.replace(id2label=model.config.id2label))
        )
        expected = 384 if class_ is RemBertForQuestionAnswering else 128
        assert filled.max_seq_length == expected, name
        assert (filled.doc_stride, filled.max_query_length, filled.top_k) == (128, 64, 2)


def test_negative_windows_are_refused():
    with pytest.raises(
        ValueError, match="`max_windows` must be at least 0. Received: max_windows=-1"
    ):
        ServingConfig(max_windows=-1)
