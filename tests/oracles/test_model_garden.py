"""Our models against Model Garden's BERT, on tiny random weights, in both directions."""

import re

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.checkpoints.model_garden import (
    number_of_heads,
    open_model_garden,
    write_model_garden,
)
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

pytestmark = pytest.mark.oracle
tf_keras = pytest.importorskip("tf_keras")
pytest.importorskip("official.nlp.modeling")
from official.nlp.modeling import layers, models, networks  # noqa: E402

SIZES = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}
# Width of the input table (that of the layers as in mBERT, or another, with a projection), and of
# the output table where it is one of its own.
TABLES = {"coupled": (24, None), "factorized": (8, None), "untied": (8, 40)}
RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 60, (3, 9)),
    "attention_mask": np.array([[1] * 9, [1] * 6 + [0] * 3, [1] * 2 + [0] * 7]),
    "token_type_ids": np.array([[0] * 4 + [1] * 5] * 3),
}
POSITIONS = np.array([[0, 3], [5, 1], [1, 0]])
THEIR_FEATURES = {
    "input_word_ids": tf.constant(FEATURES["input_ids"], tf.int32),
    "input_mask": tf.constant(FEATURES["attention_mask"], tf.int32),
    "input_type_ids": tf.constant(FEATURES["token_type_ids"], tf.int32),
}
THEIR_POSITIONS = {"masked_lm_positions": tf.constant(POSITIONS, tf.int32)}


def our_config(width, output_width=None, hidden_act="gelu_new"):
    return RemBertConfig(
        **SIZES,
        input_embedding_size=width,
        output_embedding_size=output_width or width,
        tie_word_embeddings=output_width is None,
        hidden_act=hidden_act,
    )


def activation(hidden_act):
    return lambda x: tf_keras.activations.gelu(x, approximate=hidden_act == "gelu_new")


def their_encoder(width, encoder_class=networks.BertEncoderV2, **arguments):
    encoder = encoder_class(
        vocab_size=60,
        hidden_size=24,
        num_layers=2,
        num_attention_heads=3,
        max_sequence_length=16,
        type_vocab_size=2,
        inner_dim=48,
        embedding_width=width,
        **arguments,
    )
    encoder(encoder.inputs)
    randomize(encoder)
    return encoder


def their_pretrainer(width, output_width, **arguments):
    head = None
    if output_width:
        table = tf.Variable(tf.zeros([60, output_width]))
        head = layers.MaskedLM(table, activation("gelu_new"), name="cls/predictions")
    model = models.BertPretrainerV2(
        their_encoder(width),
        mlm_activation=activation("gelu_new"),
        customized_masked_lm=head,
        **arguments,
    )
    model(model.inputs)
    randomize(model)
    return model


def randomize(layer):
    for variable in layer.trainable_variables:
        variable.assign(RANDOM.normal(size=variable.shape, scale=0.2))
        if variable.name.endswith("gamma:0"):
            variable.assign_add(tf.ones_like(variable))


def assert_equal(ours, theirs):
    """Compares our encoder with what theirs gives: every layer, and the pooler."""
    outputs = ours(FEATURES, output_hidden_states=True)
    expected = theirs(THEIR_FEATURES)
    pairs = dict(
        enumerate(zip(outputs["hidden_states"][1:], expected["encoder_outputs"], strict=True))
    )
    pairs["last"] = (outputs["last_hidden_state"], expected["sequence_output"])
    pairs["pooler"] = (outputs["pooler_output"], expected["pooled_output"])
    for name, (actual, wanted) in pairs.items():
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5, err_msg=str(name))


def assert_equal_logits(ours, theirs):
    actual = ours({**FEATURES, "masked_lm_positions": POSITIONS})
    expected = theirs({**THEIR_FEATURES, **THEIR_POSITIONS})["mlm_logits"]
    assert actual.shape == (3, 2, 60)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-5)


def load(prefix, config, model_class):
    weights = open_model_garden(prefix)
    assert number_of_heads(prefix) == 3
    model, report = model_from_weights(weights, config, model_class, strict=True)
    return model, report


@pytest.mark.parametrize(("name", "width"), [("encoder", 24), ("model", 8)])
def test_we_load_an_encoder(name, width, tmp_path):
    theirs = their_encoder(width)
    prefix = tf.train.Checkpoint(**{name: theirs}).save(str(tmp_path / "ckpt"))
    ours, report = load(prefix, our_config(width), RemBertEncoder)
    assert report.skipped == ()
    assert_equal(ours, theirs)


def test_we_load_an_encoder_with_the_exact_gelu(tmp_path):
    theirs = their_encoder(8, inner_activation=activation("gelu"))
    prefix = tf.train.Checkpoint(encoder=theirs).save(str(tmp_path / "ckpt"))
    assert_equal(load(prefix, our_config(8, hidden_act="gelu"), RemBertEncoder)[0], theirs)
    tanh = load(prefix, our_config(8), RemBertEncoder)[0]
    with pytest.raises(AssertionError):  # the weights are the same, the activation is not
        assert_equal(tanh, theirs)


def test_we_load_a_functional_encoder_whose_layers_are_numbered(tmp_path):
    theirs = their_encoder(8, networks.BertEncoder, dict_outputs=True)
    prefix = tf.train.Checkpoint(model=theirs).save(str(tmp_path / "ckpt"))
    assert any("layer_with_weights-5/" in key for key, _ in tf.train.list_variables(prefix))
    ours, report = load(prefix, our_config(8), RemBertEncoder)
    assert report.skipped == ()
    assert_equal(ours, theirs)


@pytest.mark.parametrize(("width", "output_width"), TABLES.values(), ids=TABLES)
def test_we_load_what_a_training_run_saves(width, output_width, tmp_path):
    head = layers.ClassificationHead(inner_dim=5, num_classes=2, name="next_sentence")
    theirs = their_pretrainer(width, output_width, classification_heads=[head])
    # One kind of optimizer lists its variables, the other makes slots of the model's.
    optimizers = tf_keras.optimizers if width == 24 else tf_keras.optimizers.legacy
    optimizer = optimizers.Adam(1e-3)
    with tf.GradientTape() as tape:
        outputs = theirs({**THEIR_FEATURES, **THEIR_POSITIONS}, training=True)
        loss = tf.reduce_sum(outputs["mlm_logits"][..., 7]) + tf.reduce_sum(
            outputs["next_sentence"]
        )
    gradients = tape.gradient(loss, theirs.trainable_variables)
    optimizer.apply_gradients(zip(gradients, theirs.trainable_variables, strict=True))
    checkpoint = tf.train.Checkpoint(
        model=theirs,
        optimizer=optimizer,
        global_step=optimizer.iterations,
        **theirs.checkpoint_items,
    )
    prefix = checkpoint.save(str(tmp_path / "ckpt"))

    ours, report = load(prefix, our_config(width, output_width), RemBertForMaskedLM)
    assert_equal_logits(ours, theirs)
    encoder, _ = load(prefix, our_config(width), RemBertEncoder)
    assert_equal(encoder, theirs.encoder_network)
    # The pooler, which our masked LM has no use for, and the other head.
    assert len(report.skipped) == 2 + 4
    assert all(
        re.search("_pooler_layer|next_sentence|classification_heads", key)
        for key, _ in report.skipped
    )
    slots = "optimizer" if width == 24 else ".OPTIMIZER_SLOT"
    assert re.search(rf"only training needs them: .*{re.escape(slots)} \(\d\d", report.notes[-1])


def restore_as_the_card_says(path, monkeypatch):
    """Runs the code of the README.md; returns what it defines."""
    monkeypatch.chdir(path.parent)
    code = re.search(r"```python\n(.*)```", (path / "README.md").read_text(), re.DOTALL).group(1)
    defined = {}
    exec(code, defined)
    return defined


def random_model(model_class, config):
    model = model_class(config)
    for variable in model.weights:
        if len(variable.shape) == 1:
            variable.assign_add(RANDOM.normal(size=variable.shape) * 0.2)
    return model


@pytest.mark.parametrize(("width", "hidden_act"), [(24, "gelu"), (8, "gelu_new")])
def test_they_restore_our_encoder(width, hidden_act, tmp_path, monkeypatch):
    ours = random_model(RemBertEncoder, our_config(width, hidden_act=hidden_act))
    write_model_garden(ours, tmp_path / "ours")
    defined = restore_as_the_card_says(tmp_path / "ours", monkeypatch)
    assert_equal(ours, defined["encoder"])


@pytest.mark.parametrize(("width", "output_width"), TABLES.values(), ids=TABLES)
def test_they_restore_our_masked_lm(width, output_width, tmp_path, monkeypatch):
    ours = random_model(RemBertForMaskedLM, our_config(width, output_width))
    write_model_garden(ours, tmp_path / "ours")
    theirs = restore_as_the_card_says(tmp_path / "ours", monkeypatch)["model"]
    assert_equal_logits(ours, theirs)

    # As the tasks of Model Garden initialize a model, from the folder.
    randomize(theirs)
    status = tf.train.Checkpoint(**theirs.checkpoint_items).read(
        tf.train.latest_checkpoint(str(tmp_path / "ours"))
    )
    status.expect_partial().assert_existing_objects_matched()
    assert_equal_logits(ours, theirs)
