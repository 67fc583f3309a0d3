"""Models through Keras' own files: `.keras` without custom objects, and `.weights.h5`."""

import h5py
import keras
import numpy as np
import pytest

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

# Where a file keeps the variables, and how many in each place: files of older releases must load.
# What comes after `layers` in the alphabet lies there, by class and number.
LAYER_PLACES = {
    "attention/query": 2,
    "attention/key": 2,
    "attention/value": 2,
    "attention/output_dense": 2,
    "attention_norm": 2,
    "intermediate": 2,
    "output_dense": 2,
    "output_norm": 2,
}
ENCODER_PLACES = {
    "embeddings": 3,
    "embeddings/layer_norm": 2,
    "input_projection": 2,
    **{f"layer_0/{place}": count for place, count in LAYER_PLACES.items()},
}
OTHER_PLACES = {
    RemBertEncoder: {"layers/dense_1": 2},  # the pooler
    RemBertForMaskedLM: {
        "layers/masked_lm_head/dense": 2,
        "layers/masked_lm_head/layer_norm": 2,
        "layers/masked_lm_head/output_embedding": 2,
    },
    RemBertForQuestionAnswering: {"layers/dense": 2},
    RemBertForSequenceClassification: {"encoder/layers/dense_1": 2, "classifier/dense": 2},
    RemBertForTokenClassification: {"classifier/dense": 2},
}
RANDOM = np.random.default_rng(0)
FEATURES = {
    "input_ids": RANDOM.integers(0, 50, (3, 7)),
    "attention_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [1] * 2 + [0] * 5]),
    "token_type_ids": np.array([[0, 0, 0, 1, 1, 1, 1]] * 3),
}
TIED = {"output_embedding_size": 8, "tie_word_embeddings": True}


def _outputs(model):
    outputs = keras.tree.flatten(model(FEATURES))
    return [keras.ops.convert_to_numpy(keras.ops.cast(x, "float32")) for x in outputs]


def _assert_same_outputs(one, other):
    for ours, theirs in zip(_outputs(one), _outputs(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def _input_table(model):
    return model.encoder.embeddings.word_embeddings


@pytest.mark.parametrize("model_class", OTHER_PLACES)
def test_a_keras_file_needs_no_custom_objects(dropout_config, model_class, tmp_path):
    assert keras.saving.get_registered_name(model_class) == f"rembert_tf>{model_class.__name__}"
    model = model_class(dropout_config.replace(**TIED), dtype="mixed_bfloat16", name="mine")
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is model_class
    assert again.config == model.config
    assert again.dtype_policy.name == "mixed_bfloat16" and again.name == "mine"
    assert [v.path for v in again.variables] == [v.path for v in model.variables]
    _assert_same_outputs(model, again)


def test_a_tied_model_stays_tied_in_a_keras_file(config, tmp_path):
    model = RemBertForMaskedLM(config.replace(**TIED))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    table = _input_table(again)
    assert again.masked_lm_head.output_embedding.table is table
    assert again.count_params() == model.count_params()
    ids = np.array([[3, 4, 5]])
    before = again(ids).numpy()
    table.assign(table.numpy() + np.eye(50, 8, k=-9))  # changes rows 9 to 16, at the output alone
    after = again(ids).numpy()
    changed = np.flatnonzero(np.any(np.abs(after - before) > 1e-5, axis=(0, 1)))
    assert changed.tolist() == list(range(9, 17))
    table.assign(table.numpy() + np.eye(50, 8, k=-3))  # row 3 is looked up at the input, too
    assert np.all(np.any(np.abs(again(ids).numpy() - after) > 1e-5, axis=(0, 1)))


def test_an_untied_model_keeps_both_tables_in_a_keras_file(config, tmp_path):
    model = RemBertForMaskedLM(config.replace(output_embedding_size=8))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    _assert_same_outputs(model, again)
    output_table = again.masked_lm_head.output_embedding.table
    assert output_table is not _input_table(again)
    hidden = again.encoder(FEATURES)["last_hidden_state"].numpy()
    output_table.assign(output_table + 1.0)
    np.testing.assert_array_equal(again.encoder(FEATURES)["last_hidden_state"], hidden)


@pytest.mark.parametrize("model_class", OTHER_PLACES)
@pytest.mark.parametrize("shape", [{}, TIED], ids=["decoupled", "tied"])
def test_weights_files(config, model_class, shape, tmp_path):
    model, again = (model_class(config.replace(num_hidden_layers=1, **shape)) for _ in range(2))
    model.save_weights(tmp_path / "model.weights.h5")
    again.load_weights(tmp_path / "model.weights.h5")
    _assert_same_outputs(model, again)

    prefix = "" if model_class is RemBertEncoder else "encoder/"
    places = {prefix + place: count for place, count in ENCODER_PLACES.items()}
    places |= OTHER_PLACES[model_class]
    if model_class is RemBertForMaskedLM and shape is TIED:
        places["layers/masked_lm_head/output_embedding"] = 1  # the bias
    expected = {f"{place}/vars/{n}" for place, count in places.items() for n in range(count)}
    assert _datasets(tmp_path / "model.weights.h5") == expected


def _datasets(path):
    names = set()
    with h5py.File(path) as file:
        file.visititems(lambda name, x: names.add(name) if isinstance(x, h5py.Dataset) else None)
    return names


@pytest.mark.parametrize("from_tied", [True, False])
def test_tied_and_untied_weights_files_do_not_pass_for_each_other(config, from_tied, tmp_path):
    tied, untied = TIED, {"output_embedding_size": 8}
    source, target = (tied, untied) if from_tied else (untied, tied)
    RemBertForMaskedLM(config.replace(**source)).save_weights(tmp_path / "model.weights.h5")
    with pytest.raises(ValueError, match="could not be loaded"):
        RemBertForMaskedLM(config.replace(**target)).load_weights(tmp_path / "model.weights.h5")
