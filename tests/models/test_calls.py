"""What a model computes: inputs, padding, shapes, dropout, and plain Keras training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(0, 50, (3, 7))
MASK = np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 2 + [0] * 5])


def test_outputs_of_the_encoder(config):
    outputs = RemBertEncoder(config)(IDS, output_hidden_states=True)
    assert sorted(outputs) == ["hidden_states", "last_hidden_state", "pooler_output"]
    assert outputs["last_hidden_state"].shape == (3, 7, 16)
    assert outputs["pooler_output"].shape == (3, 16)
    assert [state.shape for state in outputs["hidden_states"]] == [(3, 7, 16)] * 3
    np.testing.assert_array_equal(outputs["hidden_states"][-1], outputs["last_hidden_state"])
    assert list(RemBertEncoder(config, add_pooler=False)(IDS)) == ["last_hidden_state"]


def test_optional_inputs_have_the_documented_defaults(config):
    model = RemBertForTokenClassification(config)
    explicit = {
        "input_ids": IDS,
        "attention_mask": np.ones_like(IDS),
        "token_type_ids": np.zeros_like(IDS),
    }
    np.testing.assert_array_equal(model(IDS), model(explicit))
    np.testing.assert_array_equal(model({"input_ids": IDS, "attention_mask": None}), model(IDS))


@pytest.mark.parametrize("dtype", ["int32", "bool", "float32"])
def test_padding_changes_nothing_on_real_tokens(config, dtype):
    model = RemBertEncoder(config)
    hidden = model({"input_ids": IDS, "attention_mask": MASK.astype(dtype)})["last_hidden_state"]
    real = MASK.astype(bool)
    other_ids = np.where(real, IDS, RANDOM.integers(0, 50, IDS.shape))
    longer_ids = np.concatenate([other_ids, RANDOM.integers(0, 50, (3, 4))], axis=1)
    longer_mask = np.concatenate([MASK, np.zeros((3, 4))], axis=1).astype(dtype)
    for ids, mask in ((other_ids, MASK.astype(dtype)), (longer_ids, longer_mask)):
        again = model({"input_ids": ids, "attention_mask": mask})["last_hidden_state"]
        np.testing.assert_allclose(again.numpy()[:, :7][real], hidden.numpy()[real], atol=3e-6)
    assert not np.allclose(
        model(other_ids)["last_hidden_state"].numpy()[real], hidden.numpy()[real]
    )


def test_masked_positions_pick_from_all_positions(config):
    model = RemBertForMaskedLM(config)
    positions = np.array([[0, 6, 3], [4, 4, 0], [1, 0, 0]])
    picked = model({"input_ids": IDS, "attention_mask": MASK, "masked_lm_positions": positions})
    everything = model({"input_ids": IDS, "attention_mask": MASK})
    expected = np.take_along_axis(everything.numpy(), positions[..., None], axis=1)
    np.testing.assert_allclose(picked, expected, atol=1e-5)


def test_open_static_and_compiled_shapes_agree(dropout_config):
    model = RemBertForMaskedLM(dropout_config)
    features = {
        "input_ids": tf.constant(IDS, tf.int32),
        "attention_mask": tf.constant(MASK, tf.int32),
        "token_type_ids": tf.zeros((3, 7), tf.int32),
        "masked_lm_positions": tf.constant([[1, 2], [0, 4], [1, 1]], tf.int32),
        "dropout_keys": tf.constant([5, 6, 2**32 - 1], tf.uint32),
    }
    open_shapes = {
        name: tf.TensorSpec([None] * x.shape.rank, x.dtype) for name, x in features.items()
    }
    eager = model(features, training=True)
    graph = tf.function(lambda x: model(x, training=True), input_signature=[open_shapes])
    np.testing.assert_allclose(graph(features), eager, atol=1e-5)
    xla = tf.function(lambda x: model(x, training=True), jit_compile=True)
    np.testing.assert_allclose(xla(features), eager, atol=1e-4)
    assert not np.allclose(model(features), eager, atol=1e-2)


def test_symbolic_call(config):
    model = RemBertForTokenClassification(config)
    inputs = {
        "input_ids": keras.Input((None,), dtype="int32", name="input_ids"),
        "attention_mask": keras.Input((None,), dtype="bool", name="attention_mask"),
    }
    functional = keras.Model(inputs, model(inputs))
    assert functional.output_shape == (None, None, 3)
    features = {"input_ids": IDS, "attention_mask": MASK.astype(bool)}
    np.testing.assert_allclose(functional(features), model(features), atol=1e-6)


def test_dropout_keys_decide_in_training(dropout_config):
    model = RemBertForSequenceClassification(dropout_config)
    features = {"input_ids": IDS, "dropout_keys": np.array([1, 2, 3], "uint32")}
    once = model(features, training=True).numpy()
    np.testing.assert_array_equal(model(features, training=True), once)
    # The key belongs to the example, wherever in the batch it stands.
    turned = {name: np.roll(x, 1, axis=0) for name, x in features.items()}
    np.testing.assert_allclose(model(turned, training=True), np.roll(once, 1, axis=0), atol=1e-5)
    other = model({**features, "dropout_keys": np.array([1, 2, 4], "uint32")}, training=True)
    np.testing.assert_allclose(other[:2], once[:2], atol=1e-5)
    assert not np.allclose(other[2], once[2], atol=1e-3)
    np.testing.assert_array_equal(model(features), model(IDS))


def test_without_keys_they_come_from_a_keras_seed(dropout_config):
    keras.utils.set_random_seed(1)
    model = RemBertForSequenceClassification(dropout_config)
    first, second = (model(IDS, training=True).numpy() for _ in range(2))
    assert not np.allclose(first, second, atol=1e-3)
    keras.utils.set_random_seed(1)
    again = RemBertForSequenceClassification(dropout_config)
    np.testing.assert_array_equal(again(IDS, training=True), first)


def test_plain_compile_and_fit_learn(dropout_config):
    keras.utils.set_random_seed(0)
    smaller = dropout_config.replace(num_hidden_layers=1, classifier_dropout_prob=0.1)
    model = RemBertForTokenClassification(smaller)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    features, labels = {"input_ids": IDS, "attention_mask": np.ones_like(IDS)}, IDS % 3
    before = model.evaluate(features, labels, verbose=0)
    repeated = {name: np.tile(x, (40, 1)) for name, x in features.items()}
    model.fit(repeated, np.tile(labels, (40, 1)), batch_size=3, verbose=0)
    assert model.evaluate(features, labels, verbose=0) < 0.5 * before


@pytest.mark.parametrize(
    ("model_class", "labels"),
    [(RemBertForMaskedLM, IDS[:, :2]), (RemBertForSequenceClassification, np.array([0, 2, 1]))],
)
def test_plain_compile_and_fit(config, model_class, labels):
    model = model_class(config.replace(num_hidden_layers=1))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss)
    features = {"input_ids": IDS}
    if model_class is RemBertForMaskedLM:
        features["masked_lm_positions"] = IDS[:, :2] % 7
    before = [variable.numpy() for variable in model.weights]
    model.fit(features, labels, verbose=0)
    assert all(np.any(old != new) for old, new in zip(before, model.get_weights(), strict=True))
    assert model.predict(features, verbose=0).shape[:-1] == labels.shape


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"input_id": IDS}, "Received: 'input_id'. Did you mean 'input_ids'?"),
        ({"attention_mask": MASK}, "`inputs` must hold input_ids. Received: ['attention_mask']"),
        (IDS.astype("float32"), "`input_ids` must be integers. Received: input_ids of type float"),
        (IDS[0], "`input_ids` must have 2 axes. Received: input_ids of shape (7,)"),
        (
            {"input_ids": IDS, "attention_mask": MASK[:, :6]},
            "`attention_mask` must have the shape of `input_ids`. Received: shapes (3, 6) and",
        ),
        ({"input_ids": IDS, "masked_lm_positions": IDS}, "Received: 'masked_lm_positions'"),
        (np.zeros((1, 13), "int32"), "Received: length 13, max_position_embeddings=12"),
    ],
)
def test_wrong_inputs(config, inputs, message):
    model = RemBertEncoder(config)
    with pytest.raises(ValueError) as error:
        model(inputs)
    assert message in str(error.value)
