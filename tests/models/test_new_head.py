"""A masked-LM head that no file held is random: it gives no scores before it is trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.training.trainer import Trainer

RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(5, 50, (4, 7)).astype("int32")
FEATURES = {"input_ids": IDS, "masked_lm_positions": IDS[:, :2] % 7}
LABELS = RANDOM.integers(5, 50, (4, 2)).astype("int32")
DATA = tf.data.Dataset.from_tensors((FEATURES, LABELS))
SHAPES = tf.TensorSpec([None, None], tf.int32)


@pytest.fixture
def small(config):
    return config.replace(num_hidden_layers=1)


@pytest.fixture
def encoder_folder(small, tmp_path):
    save_pretrained(RemBertEncoder(small), tmp_path / "encoder")
    return tmp_path / "encoder"


@pytest.fixture
def model(encoder_folder):
    """An encoder's folder as a masked LM, compiled."""
    model, _ = load_pretrained(encoder_folder, RemBertForMaskedLM)
    return _compiled(model, jit_compile=False)


def _compiled(model, **arguments):
    model.compile(
        keras.optimizers.SGD(0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        **arguments,
    )
    return model


def _in_graph(model, **arguments):
    return tf.function(lambda ids: model(ids, **arguments), input_signature=[SHAPES])(IDS)


def _export(model, path):
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.weights]
    serve = tf.function(lambda ids: {"logits": model(ids)}, input_signature=[SHAPES])
    tf.saved_model.save(module, str(path), signatures={"serving_default": serve})


# Every way to scores.
WAYS = {
    "call": lambda model, path: model(FEATURES),
    "call without training": lambda model, path: model(FEATURES, training=False),
    "graph": lambda model, path: _in_graph(model),
    "predict": lambda model, path: model.predict(FEATURES, verbose=0),
    "predict on batch": lambda model, path: model.predict_on_batch(FEATURES),
    "evaluate": lambda model, path: model.evaluate(FEATURES, LABELS, verbose=0),
    "evaluate by our trainer": lambda model, path: _trainer(model).evaluate(DATA, verbose=0),
    "inside a functional model": lambda model, path: _functional(model).predict(IDS, verbose=0),
    "Keras' export": lambda model, path: model.export(
        path, input_signature=[keras.InputSpec(dtype="int32", shape=(None, None))], verbose=False
    ),
    "TensorFlow's export": _export,
}


def _trainer(model):
    return _compiled(Trainer(model))


def _functional(model):
    inputs = keras.Input((None,), dtype="int32")
    return keras.Model(inputs, model(inputs))


@pytest.mark.parametrize("way", WAYS)
def test_no_scores_unless_the_caller_insists(model, way, tmp_path):
    with pytest.raises(ValueError, match="masked-LM head was not in the loaded weights") as error:
        WAYS[way](model, tmp_path / "refused")
    assert "masked_lm_head/output_embedding/table" in str(error.value)
    assert "model.newly_made = ()" in str(error.value)
    model.newly_made = ()
    WAYS[way](model, tmp_path / "exported")


def test_what_is_known_of_the_model_needs_no_scores(model, small):
    assert model.count_params() == small.num_parameters().masked_lm_total
    assert model.encoder(IDS)["last_hidden_state"].shape == (4, 7, 16)
    assert _functional(model).output_shape == (None, None, 50)
    keras.Model(inputs := keras.Input((None,), dtype="int32"), model(inputs, training=True))
    with pytest.raises(ValueError, match="masked-LM head"):  # nothing of that was training
        model(IDS)


@pytest.mark.parametrize("eagerly", [False, True])
def test_plain_fit_needs_no_extra_step_and_ends_the_refusal(model, eagerly):
    _compiled(model, jit_compile=False, run_eagerly=eagerly)
    with pytest.raises(ValueError, match="masked-LM head"):
        model.evaluate(FEATURES, LABELS, verbose=0)
    history = model.fit(FEATURES, LABELS, validation_data=(FEATURES, LABELS), verbose=0).history
    assert model.evaluate(FEATURES, LABELS, verbose=0) == pytest.approx(history["val_loss"][0])
    assert history["val_loss"] < history["loss"]
    assert model.predict(FEATURES, verbose=0).shape == (4, 2, 50)
    assert model(FEATURES).shape == (4, 2, 50)


def test_our_trainer_needs_no_extra_step_and_ends_the_refusal(model):
    trainer = _trainer(model)
    trainer.fit(DATA, shuffle=False, verbose=0)
    assert np.isfinite(trainer.evaluate(DATA, verbose=0))
    assert model(FEATURES).shape == (4, 2, 50)


def test_a_training_loop_of_ones_own(model):
    assert _in_graph(model, training=True).shape == (4, 7, 50)
    assert model(IDS).shape == (4, 7, 50)


def test_a_head_that_was_loaded_never_refuses(small, tmp_path):
    saved = RemBertForMaskedLM(small)
    save_pretrained(saved, tmp_path / "model")
    model, report = load_pretrained(tmp_path / "model", RemBertForMaskedLM)
    np.testing.assert_array_equal(model(FEATURES), saved(FEATURES))
    assert report.newly_made == () and "random" not in str(report)
    assert RemBertForMaskedLM(small)(FEATURES).shape == (4, 2, 50)  # nor one made from scratch


def test_report_says_it_when_loading(encoder_folder):
    _, report = load_pretrained(encoder_folder, RemBertForMaskedLM)
    assert "the masked-LM head is random" in str(report)


def test_a_keras_file_holds_the_weights_and_the_refusal(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.path)
    with pytest.raises(ValueError, match="masked-LM head"):
        again(FEATURES)
    again(FEATURES, training=True)
    again.save(tmp_path / "trained.keras")
    trained = keras.saving.load_model(tmp_path / "trained.keras")
    np.testing.assert_array_equal(trained(FEATURES), again(FEATURES))


def test_weights_that_are_loaded_later_end_the_refusal(model, small, tmp_path):
    whole = RemBertForMaskedLM(small)
    whole.save_weights(tmp_path / "whole.weights.h5")
    model.load_weights(tmp_path / "whole.weights.h5")
    np.testing.assert_array_equal(model(FEATURES), whole(FEATURES))


def test_a_training_checkpoint_is_whole(model, encoder_folder, tmp_path):
    path = tf.train.Checkpoint(model).write(str(tmp_path / "checkpoint"))
    again, _ = load_pretrained(encoder_folder, RemBertForMaskedLM)
    tf.train.Checkpoint(_compiled(again, jit_compile=False)).read(path).assert_consumed()
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=one.path)


def test_a_folder_saved_before_training_refuses_too_and_one_saved_after_does_not(model, tmp_path):
    save_pretrained(model, tmp_path / "untrained")
    with pytest.raises(
        ValueError, match="6 are missing .6 as saved before they were trained.: mas"
    ):
        load_pretrained(tmp_path / "untrained", RemBertForMaskedLM, strict=True)
    again, report = load_pretrained(tmp_path / "untrained", RemBertForMaskedLM)
    assert "saved before they were trained: 6 (masked_lm_head/" in str(report)
    assert "the masked-LM head is random" in str(report)
    with pytest.raises(ValueError, match="masked-LM head"):
        again(FEATURES)
    RemBertEncoder.from_pretrained(tmp_path / "untrained")(IDS)  # has no use for the head

    model.fit(DATA, verbose=0)
    save_pretrained(model, tmp_path / "trained")
    again, _ = load_pretrained(tmp_path / "trained", RemBertForMaskedLM, strict=True)
    assert again(FEATURES).shape == (4, 2, 50)


def test_any_new_part_is_remembered_until_it_is_trained(small, tmp_path):
    RemBertForMaskedLM(small).encoder.save_pretrained(tmp_path / "encoder")  # has no pooler
    model, _ = load_pretrained(tmp_path / "encoder", RemBertForSequenceClassification)
    pooler = ("rembert/pooler/kernel", "rembert/pooler/bias")
    new = (*pooler, "classifier/dense/kernel", "classifier/dense/bias")
    assert model.newly_made == new and model.encoder.newly_made == pooler
    model.save_pretrained(tmp_path / "model")
    model.save(tmp_path / "model.keras")
    again, report = load_pretrained(tmp_path / "model", RemBertForSequenceClassification)
    assert again.newly_made == report.untrained == new and report.newly_made == ()
    again.encoder.save_pretrained(tmp_path / "part")
    assert load_pretrained(tmp_path / "part")[0].newly_made == pooler
    from_keras = keras.saving.load_model(tmp_path / "model.keras")
    assert from_keras.newly_made == new and from_keras.encoder.newly_made == pooler

    again(IDS)
    assert again.newly_made == new
    again(IDS, training=True)
    assert again.newly_made == again.encoder.newly_made == ()
    again.save_pretrained(tmp_path / "model")
    load_pretrained(tmp_path / "model", RemBertForSequenceClassification, strict=True)
