"""What a model holds: counts, names, tying, and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

MODELS = [
    RemBertEncoder,
    RemBertForMaskedLM,
    RemBertForQuestionAnswering,
    RemBertForSequenceClassification,
    RemBertForTokenClassification,
]
RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 50, (3, 7)),
    "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 2 + [0] * 5]),
    "token_type_ids": np.array([[0, 0, 0, 1, 1, 1, 1]] * 3),
}
ENCODER_PATHS = """
rembert/embeddings/word_embeddings
rembert/embeddings/position_embeddings
rembert/embeddings/token_type_embeddings
rembert/embeddings/layer_norm/gamma
rembert/embeddings/layer_norm/beta
rembert/input_projection/kernel
rembert/input_projection/bias
rembert/layer_0/attention/query/kernel
rembert/layer_0/attention/query/bias
rembert/layer_0/attention/key/kernel
rembert/layer_0/attention/key/bias
rembert/layer_0/attention/value/kernel
rembert/layer_0/attention/value/bias
rembert/layer_0/attention/output/kernel
rembert/layer_0/attention/output/bias
rembert/layer_0/attention_norm/gamma
rembert/layer_0/attention_norm/beta
rembert/layer_0/intermediate/kernel
rembert/layer_0/intermediate/bias
rembert/layer_0/output/kernel
rembert/layer_0/output/bias
rembert/layer_0/output_norm/gamma
rembert/layer_0/output_norm/beta
""".split()
POOLER_PATHS = ["rembert/pooler/kernel", "rembert/pooler/bias"]
HEAD_PATHS = """
masked_lm_head/dense/kernel
masked_lm_head/dense/bias
masked_lm_head/layer_norm/gamma
masked_lm_head/layer_norm/beta
masked_lm_head/output_embedding/table
masked_lm_head/output_embedding/bias
""".split()
CLASSIFIER_PATHS = ["classifier/dense/kernel", "classifier/dense/bias"]
QUESTION_ANSWERING_PATHS = ["qa_outputs/kernel", "qa_outputs/bias"]

ONE_WIDTH = {"input_embedding_size": 16}


def _tied(config):
    return config.replace(output_embedding_size=8, tie_word_embeddings=True)


def test_variable_paths_are_api(config):
    config = config.replace(num_hidden_layers=1)

    def paths(model):
        return sorted(variable.path for variable in model.weights)

    encoder = RemBertEncoder(config)
    assert paths(encoder) == sorted(ENCODER_PATHS + POOLER_PATHS)
    assert paths(RemBertForMaskedLM(config)) == sorted(ENCODER_PATHS + HEAD_PATHS)
    assert paths(RemBertForMaskedLM(_tied(config))) == sorted(
        ENCODER_PATHS + [path for path in HEAD_PATHS if not path.endswith("table")]
    )
    assert paths(RemBertForSequenceClassification(config)) == sorted(
        ENCODER_PATHS + POOLER_PATHS + CLASSIFIER_PATHS
    )
    assert paths(RemBertForTokenClassification(config)) == sorted(ENCODER_PATHS + CLASSIFIER_PATHS)
    assert paths(RemBertForQuestionAnswering(config)) == sorted(
        ENCODER_PATHS + QUESTION_ANSWERING_PATHS
    )
    without_projection = RemBertEncoder(config.replace(**ONE_WIDTH))
    assert set(paths(encoder)) - set(paths(without_projection)) == {
        "rembert/input_projection/kernel",
        "rembert/input_projection/bias",
    }
    # A second model, and a name of its own, change nothing below the first component.
    assert paths(RemBertEncoder(config)) == paths(encoder)
    named = paths(RemBertEncoder(config, name="mine"))
    assert named == [path.replace("rembert", "mine", 1) for path in paths(encoder)]


@pytest.mark.parametrize(
    ("changes", "has_projection"),
    [
        ({}, True),
        ({"output_embedding_size": 8, "tie_word_embeddings": True}, True),
        (ONE_WIDTH, False),
        ({**ONE_WIDTH, "input_projection": True}, True),
        ({**ONE_WIDTH, "output_embedding_size": 16, "tie_word_embeddings": True}, False),
    ],
)
def test_arithmetic_is_what_the_models_hold(config, changes, has_projection):
    config = config.replace(**changes)
    assert config.input_projection == has_projection
    count = config.num_parameters()
    assert RemBertEncoder(config).count_params() == count.encoder_with_pooler_total
    assert RemBertEncoder(config, add_pooler=False).count_params() == count.finetuning_total
    masked_lm = RemBertForMaskedLM(config)
    assert masked_lm.count_params() == count.masked_lm_total
    assert masked_lm.masked_lm_head.count_params() == count.masked_lm_head_total


@pytest.mark.parametrize("model_class", MODELS)
def test_everything_is_there_before_the_first_call(config, model_class):
    model = model_class(config)
    encoder = model if model_class is RemBertEncoder else model.encoder
    assert encoder.embeddings.word_embeddings.shape == (50, 8)
    assert encoder.input_projection.kernel.shape == (8, 16)
    assert len(encoder.transformer_layers) == 2
    assert model.count_params() == sum(np.prod(variable.shape) for variable in model.weights)
    assert model.built and model.config == model_class.from_config(model.get_config()).config
    if model_class is RemBertForMaskedLM:
        assert model.masked_lm_head.output_embedding.table.shape == (50, 24)
        assert model.masked_lm_head.output_embedding.bias.shape == (50,)


@pytest.mark.parametrize("model_class", MODELS)
def test_every_trainable_variable_gets_a_gradient(config, model_class):
    model = model_class(config)
    with tf.GradientTape() as tape:
        outputs = keras.tree.flatten(model(FEATURES, training=True))
        # Random weights: plain sums of normalized rows have no gradient.
        loss = sum(tf.reduce_sum(out * RANDOM.normal(size=out.shape)) for out in outputs)
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
        if not variable.path.endswith("key/bias"):  # zero by the softmax's shift invariance
            assert np.any(tf.convert_to_tensor(gradient)), variable.path


def test_tied_model_has_one_table_that_moves_both_ends(config):
    model = RemBertForMaskedLM(_tied(config))
    table = model.encoder.embeddings.word_embeddings
    assert model.masked_lm_head.output_embedding.table is table
    assert [v.shape for v in model.weights].count((50, 8)) == 1
    ids = np.array([[3, 4, 5]])  # 9 occurs at the output only
    before = model(ids).numpy()
    table.assign(table.numpy() + np.eye(50, 8, k=-9))  # changes rows 9 to 16
    after = model(ids).numpy()
    np.testing.assert_allclose(after[..., 17:], before[..., 17:], atol=1e-6)
    assert np.all(np.abs(after - before)[..., 9:17] > 1e-4)


def test_untied_sides_move_alone(config):
    model = RemBertForMaskedLM(config.replace(output_embedding_size=8))
    output_table = model.masked_lm_head.output_embedding.table
    assert output_table is not model.encoder.embeddings.word_embeddings
    ids = {"input_ids": np.array([[3, 4, 5]])}
    hidden = model.encoder(ids)["last_hidden_state"].numpy()
    logits = model(ids).numpy()
    output_table.assign(output_table + 1.0)
    np.testing.assert_array_equal(model.encoder(ids)["last_hidden_state"], hidden)
    assert not np.allclose(model(ids), logits)


@pytest.mark.parametrize("tied", [False, True])
def test_training_checkpoint_restores_everything(config, tmp_path, tied):
    config = _tied(config) if tied else config
    model, again = RemBertForMaskedLM(config), RemBertForMaskedLM(config)
    path = tf.train.Checkpoint(model).write(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(again).read(path).assert_consumed()
    # `assert_consumed` says nothing of a variable that was never written.
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.path)


def test_models_without_dropout_hold_no_random_state(config, dropout_config):
    assert len(RemBertForMaskedLM(config).variables) == len(RemBertForMaskedLM(config).weights)
    model = RemBertEncoder(dropout_config)
    assert len(model.variables) == len(model.weights) + 1


def test_errors(config):
    with pytest.raises(ValueError, match="`config` must be a `RemBertConfig`. Received: a dict"):
        RemBertEncoder({})
    with pytest.raises(ValueError, match="`config.id2label` must name the classes"):
        RemBertForTokenClassification(config.replace(id2label=()))
