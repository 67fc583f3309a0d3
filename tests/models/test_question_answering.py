"""Spans: what the two rows of logits are, and that stock Keras trains them."""

import json

import keras
import numpy as np
import pytest

from rembert_tf.models.question_answering import RemBertForQuestionAnswering

RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 50, (4, 7)),
    "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 2 + [0] * 5, [0] * 7]),
    "token_type_ids": np.array([[0, 0, 0, 1, 1, 1, 1]] * 4),
}
LABELS = {"start_logits": np.array([3, 3, 0, 6]), "end_logits": np.array([5, 4, 1, 6])}
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_logits_are_one_dense_layer_on_the_last_hidden_states(config, policy):
    model = RemBertForQuestionAnswering(config, dtype=policy)
    model.qa_outputs.bias.assign([0.5, -0.5])
    outputs = model(FEATURES)
    assert list(outputs) == ["start_logits", "end_logits"]
    hidden = np.asarray(model.encoder(FEATURES)["last_hidden_state"], "float32")
    expected = hidden @ model.qa_outputs.kernel.numpy() + [0.5, -0.5]
    for n, logits in enumerate(outputs.values()):
        assert logits.dtype == "float32" and logits.shape == (4, 7)
        np.testing.assert_allclose(logits, expected[..., n], atol=1e-5)
    assert not np.allclose(outputs["start_logits"], outputs["end_logits"], atol=0.1)


def test_nothing_is_dropped_before_the_last_layer(config, dropout_config):
    model = RemBertForQuestionAnswering(config.replace(classifier_dropout_prob=0.5))
    for name, logits in model(FEATURES, training=True).items():
        np.testing.assert_array_equal(logits, model(FEATURES)[name])
    dropping = RemBertForQuestionAnswering(dropout_config)
    dropped = dropping(FEATURES, training=True)["start_logits"]
    assert not np.allclose(dropped, dropping(FEATURES)["start_logits"], atol=1e-3)


def test_labels_of_another_task_are_left_out(config, tmp_path):
    assert config.id2label
    model = RemBertForQuestionAnswering(config)
    assert model.config == config.replace(id2label=())
    model.save_pretrained(tmp_path / "model")
    assert "id2label" not in json.loads((tmp_path / "model" / "config.json").read_text())


def test_symbolic_call(config):
    model = RemBertForQuestionAnswering(config)
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in FEATURES}
    functional = keras.Model(inputs, model(inputs))
    assert {name: x.shape for name, x in functional.output.items()} == {
        "start_logits": (None, None),
        "end_logits": (None, None),
    }
    for name, logits in functional(FEATURES).items():
        np.testing.assert_allclose(logits, model(FEATURES)[name], atol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": dict.fromkeys(LABELS, CROSS_ENTROPY)},
        {"loss": CROSS_ENTROPY, "jit_compile": False},
    ],
    ids=["a loss each", "one loss for both"],
)
def test_plain_compile_and_fit_learn(config, arguments):
    model = RemBertForQuestionAnswering(config.replace(num_hidden_layers=1))
    model.compile(keras.optimizers.SGD(0.05), **arguments)
    before = model.evaluate(FEATURES, LABELS, verbose=0, return_dict=True)
    expected = sum(
        float(CROSS_ENTROPY(labels, model(FEATURES)[name])) for name, labels in LABELS.items()
    )
    np.testing.assert_allclose(before["loss"], expected, rtol=1e-5)
    model.fit(FEATURES, LABELS, batch_size=4, verbose=0)  # one step
    after = model.evaluate(FEATURES, LABELS, verbose=0, return_dict=True)
    assert after["loss"] < before["loss"]
    predicted = model.predict(FEATURES, verbose=0)
    assert {name: x.shape for name, x in predicted.items()} == dict.fromkeys(LABELS, (4, 7))
