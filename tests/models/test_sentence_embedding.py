"""Vectors of sentences: pooling by hand, padding, and folders of all models."""

import keras
import numpy as np
import pytest

import rembert_tf
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.models.token_classification import RemBertForTokenClassification

INPUTS = {
    "input_ids": np.array([[3, 14, 15, 16, 4], [3, 20, 4, 0, 0], [3, 4, 0, 0, 0]]),
    "attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]),
}
LENGTHS = (5, 3, 2)


@pytest.fixture
def model(config):
    keras.utils.set_random_seed(0)
    return RemBertSentenceEncoder(config)


def hidden_states(model):
    outputs = model.encoder(INPUTS, output_hidden_states=True)["hidden_states"]
    return [np.asarray(hidden) for hidden in outputs]


def test_vectors_are_what_the_layers_give_by_hand(model):
    hidden = hidden_states(model)
    assert len(hidden) == 3
    for layer in range(3):
        rows = [h[:n] for h, n in zip(hidden[layer], LENGTHS, strict=True)]
        for options, expected in (
            ({}, [row.mean(axis=0) for row in rows]),
            ({"pooling": "first"}, [row[0] for row in rows]),
            (
                {"special_tokens": False},
                [row[1:-1].mean(axis=0) if len(row) > 2 else 0 * row[0] for row in rows],
            ),
        ):
            for number in (layer, layer - 3):  # from the start and from the end
                model.pool_by(layer=number, **options)
                np.testing.assert_allclose(model(INPUTS), expected, atol=1e-6)
            np.testing.assert_allclose(model.call_all_layers(INPUTS)[:, layer], expected, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"pooling": "first"}, {"special_tokens": False}])
def test_a_row_does_not_see_padding_nor_its_neighbours(model, options):
    model.pool_by(**options)
    together = np.asarray(model(INPUTS))
    other_padding = {
        "input_ids": np.pad(INPUTS["input_ids"][::-1], [[0, 0], [0, 4]], constant_values=33),
        "attention_mask": np.pad(INPUTS["attention_mask"][::-1], [[0, 0], [0, 4]]),
    }
    np.testing.assert_allclose(np.asarray(model(other_padding))[::-1], together, atol=1e-5)
    for row, length in enumerate(LENGTHS):
        alone = model(INPUTS["input_ids"][row : row + 1, :length])
        np.testing.assert_allclose(alone[0], together[row], atol=1e-5)


def test_unit_length_also_of_nothing(model):
    model.pool_by(special_tokens=False, normalize=True)
    lengths = np.linalg.norm(model(INPUTS), axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0], atol=1e-6)


def test_vectors_are_float32_whatever_the_model_computes_in(config):
    assert RemBertSentenceEncoder(config, dtype="mixed_bfloat16")(INPUTS).dtype == "float32"


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layer": 3}, r"`layer` must be 0 \(the input\) to 2, .* Received: layer=3"),
        ({"layer": -4}, "Received: layer=-4"),
        ({"pooling": "max"}, "`pooling` must be 'mean' or 'first'. Received: pooling='max'"),
        ({"pooling": "first", "special_tokens": False}, "`special_tokens` must be True where"),
    ],
)
def test_what_cannot_be_pooled_is_refused(config, model, options, message):
    with pytest.raises(ValueError, match=message):
        RemBertSentenceEncoder(config, **options)
    with pytest.raises(ValueError, match=message):
        model.pool_by(**options)


def test_a_keras_file_keeps_how_vectors_are_made(config, tmp_path):
    model = RemBertSentenceEncoder(config, layer=1, special_tokens=False, normalize=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is RemBertSentenceEncoder is rembert_tf.RemBertSentenceEncoder
    assert (loaded.layer, loaded.pooling, loaded.special_tokens) == (1, "mean", False)
    np.testing.assert_array_equal(loaded(INPUTS), model(INPUTS))


@pytest.mark.parametrize(
    "model_class", [RemBertEncoder, RemBertForMaskedLM, RemBertForTokenClassification]
)
def test_the_encoder_of_any_folder(config, tmp_path, model_class):
    saved = model_class(config)
    saved.save_pretrained(tmp_path / "saved")
    model = RemBertSentenceEncoder.from_pretrained(
        tmp_path / "saved", strict=True, layer=1, pooling="first"
    )
    assert model.newly_made == ()
    encoder = getattr(saved, "encoder", saved)
    expected = encoder(INPUTS, output_hidden_states=True)["hidden_states"][1][:, 0]
    np.testing.assert_array_equal(model(INPUTS), expected)
    model.save_pretrained(tmp_path / "again")
    again = RemBertEncoder.from_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(
        again(INPUTS)["last_hidden_state"], encoder(INPUTS)["last_hidden_state"]
    )


def test_it_trains_with_fit(model):
    before = [v.numpy() for v in model.trainable_variables]
    model.compile("sgd", "mse")
    model.fit(INPUTS, np.ones([3, 16], "float32"), verbose=0)
    moved = [
        v.path for v, old in zip(model.trainable_variables, before, strict=True)
        if not np.array_equal(v, old)
    ]  # fmt: skip
    assert len(moved) == len(before), set(v.path for v in model.trainable_variables) - set(moved)
