"""Files in the layout of transformers 4's TensorFlow classes; the names were taken from real ones.

tests/oracles/test_transformers4.py reads what those classes themselves write.
"""

import json

import h5py
import numpy as np
import pytest
from safetensors.numpy import save_file

from rembert_tf.checkpoints.model_from_weights import model_from_weights, variables_by_path
from rembert_tf.checkpoints.tensorflow_file import (
    is_tensorflow_safetensors,
    open_tensorflow_h5,
    open_tensorflow_safetensors,
)
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

ENCODER = {
    "rembert/embeddings/word_embeddings/weight:0": "rembert/embeddings/word_embeddings",
    "rembert/embeddings/token_type_embeddings/embeddings:0": "rembert/embeddings/token_type_embeddings",
    "rembert/embeddings/position_embeddings/embeddings:0": "rembert/embeddings/position_embeddings",
    "rembert/embeddings/LayerNorm/gamma:0": "rembert/embeddings/layer_norm/gamma",
    "rembert/embeddings/LayerNorm/beta:0": "rembert/embeddings/layer_norm/beta",
    "rembert/encoder/embedding_hidden_mapping_in/kernel:0": "rembert/input_projection/kernel",
    "rembert/encoder/embedding_hidden_mapping_in/bias:0": "rembert/input_projection/bias",
}
LAYER = {
    "attention/self/query/kernel:0": "attention/query/kernel",
    "attention/self/query/bias:0": "attention/query/bias",
    "attention/self/key/kernel:0": "attention/key/kernel",
    "attention/self/key/bias:0": "attention/key/bias",
    "attention/self/value/kernel:0": "attention/value/kernel",
    "attention/self/value/bias:0": "attention/value/bias",
    "attention/output/dense/kernel:0": "attention/output/kernel",
    "attention/output/dense/bias:0": "attention/output/bias",
    "attention/output/LayerNorm/gamma:0": "attention_norm/gamma",
    "attention/output/LayerNorm/beta:0": "attention_norm/beta",
    "intermediate/dense/kernel:0": "intermediate/kernel",
    "intermediate/dense/bias:0": "intermediate/bias",
    "output/dense/kernel:0": "output/kernel",
    "output/dense/bias:0": "output/bias",
    "output/LayerNorm/gamma:0": "output_norm/gamma",
    "output/LayerNorm/beta:0": "output_norm/beta",
}
for number in range(2):
    ENCODER |= {
        f"rembert/encoder/layer_._{number}/{theirs}": f"rembert/layer_{number}/{ours}"
        for theirs, ours in LAYER.items()
    }
POOLER = {
    "rembert/pooler/dense/kernel:0": "rembert/pooler/kernel",
    "rembert/pooler/dense/bias:0": "rembert/pooler/bias",
}
MASKED_LM = {
    "mlm___cls/predictions/decoder/weight:0": "masked_lm_head/output_embedding/table",
    "mlm___cls/predictions/decoder/bias:0": "masked_lm_head/output_embedding/bias",
    "mlm___cls/predictions/dense/kernel:0": "masked_lm_head/dense/kernel",
    "mlm___cls/predictions/dense/bias:0": "masked_lm_head/dense/bias",
    "mlm___cls/predictions/LayerNorm/gamma:0": "masked_lm_head/layer_norm/gamma",
    "mlm___cls/predictions/LayerNorm/beta:0": "masked_lm_head/layer_norm/beta",
}
CLASSIFIER = {
    "classifier/kernel:0": "classifier/dense/kernel",
    "classifier/bias:0": "classifier/dense/bias",
}
ANSWER = {"qa_outputs/kernel:0": "qa_outputs/kernel", "qa_outputs/bias:0": "qa_outputs/bias"}
CLASSES = [
    (RemBertEncoder, "tf_rem_bert_model", POOLER),
    (RemBertForMaskedLM, "tf_rem_bert_for_masked_lm_1", MASKED_LM),
    (
        RemBertForSequenceClassification,
        "tf_rem_bert_for_sequence_classification",
        {**POOLER, **CLASSIFIER},
    ),
    (RemBertForTokenClassification, "tf_rem_bert_for_token_classification", CLASSIFIER),
    (RemBertForQuestionAnswering, "tf_rem_bert_for_question_answering", ANSWER),
]


def write_h5(file, arrays, model_name="tf_rem_bert_model"):
    """A group for each layer of the model, and in it the full names."""
    with h5py.File(file, "w") as opened:
        opened.attrs["layer_names"] = sorted({key.split("/")[0] for key in arrays})
        opened.attrs["backend"] = "tensorflow"
        opened.create_group("dropout_28").attrs["weight_names"] = np.zeros(0)
        opened.create_group("top_level_model_weights").attrs["weight_names"] = np.zeros(0)
        for key, array in arrays.items():
            opened[f"{key.split('/')[0]}/{model_name}/{key}"] = array


def write_h5_shards(index, arrays, model_name="tf_rem_bert_model"):
    keys = list(arrays)
    shards = {"tf_model-00001-of-00002.h5": keys[::2], "tf_model-00002-of-00002.h5": keys[1::2]}
    for name, part in shards.items():
        with h5py.File(index.parent / name, "w") as opened:
            for key in part:
                opened[key] = arrays[key]
    places = {f"{model_name}/{key}": name for name, part in shards.items() for key in part}
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))


def write_safetensors(file, arrays, model_name=None):
    save_file(arrays, file, {"format": "tf"})


def write_safetensors_shards(index, arrays, model_name="tf_rem_bert_model"):
    write_h5_shards(index, arrays, model_name)
    content = json.loads(index.read_text())
    places = {key: name.replace(".h5", ".st") for key, name in content["weight_map"].items()}
    for shard in set(places.values()):
        part = {key: arrays[key] for key in arrays if places[f"{model_name}/{key}"] == shard}
        save_file(part, index.parent / shard, {"format": "tf"})
    index.write_text(json.dumps({"weight_map": places}))


LAYOUTS = {
    "h5": ("weights", write_h5, open_tensorflow_h5),
    "h5 shards": ("weights.index.json", write_h5_shards, open_tensorflow_h5),
    "safetensors": ("weights", write_safetensors, open_tensorflow_safetensors),
    "safetensors shards": (
        "weights.index.json",
        write_safetensors_shards,
        open_tensorflow_safetensors,
    ),
}


@pytest.fixture
def encoder(config):
    return RemBertEncoder(config)


@pytest.fixture
def arrays(encoder):
    """An encoder's values under TensorFlow's names."""
    return _arrays(encoder, {**ENCODER, **POOLER})


def _arrays(model, names):
    variables = variables_by_path(model)
    assert variables.keys() == set(names.values())
    random = np.random.default_rng(0)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape))
    return {key: variables[path].numpy() for key, path in names.items()}


def _assert_same_weights(model, other):
    others = variables_by_path(other)
    for path, variable in variables_by_path(model).items():
        np.testing.assert_array_equal(variable.numpy(), others[path].numpy(), err_msg=path)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("model_class", "model_name", "head"), CLASSES)
def test_every_tensor_finds_its_variable(layout, model_class, model_name, head, config, tmp_path):
    name, write, open_weights = LAYOUTS[layout]
    names = {**ENCODER, **head}
    model = model_class(config)
    write(tmp_path / name, _arrays(model, names), model_name)
    weights = open_weights(tmp_path / name)
    assert weights.path == str(tmp_path / name)
    assert not weights.unknown and not weights.notes
    assert {path: tensor.key for path, tensor in weights.tensors.items()} == {
        path: f"{key.split('/')[0]}/{model_name}/{key}" if layout == "h5" else key
        for key, path in names.items()
    }
    again, report = model_from_weights(weights, config, model_class, strict=True)
    assert report.skipped == ()
    _assert_same_weights(again, model)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_that_are_not_ours(layout, arrays, encoder, config, tmp_path):
    name, write, open_weights = LAYOUTS[layout]
    foreign = (
        "rembert/encoder/layer_._0/crossattention/self/query/kernel:0",
        "rembert/encoder/layer_._0/output/dense/scale:0",
        "my_head/dense/kernel:0",
    )
    write(tmp_path / name, {**arrays, **{key: np.ones(3, "float32") for key in foreign}})
    weights = open_weights(tmp_path / name)
    assert len(weights.unknown) == 3
    assert all(any(key.endswith(end) for end in foreign) for key in weights.unknown)
    model, report = model_from_weights(weights, config, RemBertEncoder, strict=True)
    assert report.skipped == tuple(weights.unknown.items())
    assert set(weights.unknown.values()) == {(3,)}
    _assert_same_weights(model, encoder)


def test_another_architecture(config, tmp_path):
    write_h5(tmp_path / "tf_model.h5", {"bert/pooler/dense/bias:0": np.ones(16, "float32")})
    weights = open_tensorflow_h5(tmp_path / "tf_model.h5")
    with pytest.raises(ValueError, match="no tensor of this architecture. Found: bert/tf_rem"):
        model_from_weights(weights, config, RemBertEncoder)


def test_the_copies_that_a_resized_model_lists(arrays, encoder, config, tmp_path):
    key = "rembert/embeddings/word_embeddings/weight:0"
    write_h5(tmp_path / "tf_model.h5", arrays)
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        file[f"top_level_model_weights/tf_rem_bert_model/{key}"] = arrays[key]
    weights = open_tensorflow_h5(tmp_path / "tf_model.h5")
    assert weights.unknown == {}
    _assert_same_weights(model_from_weights(weights, config, RemBertEncoder)[0], encoder)


def test_two_encoders_in_one_file(arrays, tmp_path):
    twice = {f"question/{key}": x for key, x in arrays.items()} | arrays
    save_file(twice, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="model.safetensors: holds two tensors for rembert/"):
        open_tensorflow_safetensors(tmp_path / "model.safetensors")


@pytest.mark.parametrize("layout", ["h5", "safetensors"])
def test_tensors_are_read_when_they_are_asked_for(layout, arrays, tmp_path):
    name, write, open_weights = LAYOUTS[layout]
    write(tmp_path / name, arrays)
    weights = open_weights(tmp_path / name)
    key = "rembert/pooler/dense/kernel:0"
    np.testing.assert_array_equal(weights.read("rembert/pooler/kernel"), arrays[key])
    (tmp_path / name).unlink()
    assert weights.shape("rembert/pooler/kernel") == (16, 16)
    with pytest.raises(FileNotFoundError):
        weights.read("rembert/pooler/kernel")


@pytest.mark.parametrize("metadata", [None, {"format": "tf"}, {"format": "pt"}])
def test_names_tell_whose_safetensors_it_is(metadata, arrays, encoder, tmp_path):
    theirs, ours = tmp_path / "model.safetensors", tmp_path / "ours" / "model.safetensors"
    save_file(arrays, theirs, metadata)
    assert is_tensorflow_safetensors(theirs)
    encoder.save_pretrained(ours.parent)
    assert not is_tensorflow_safetensors(ours)
    # An encoder that transformers' PyTorch class saved alone: `embeddings.LayerNorm.bias`.
    save_file({"embeddings.LayerNorm.bias": np.ones(3, "float32")}, ours, metadata)
    assert not is_tensorflow_safetensors(ours)


def test_an_index_tells_it_too(arrays, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    write_safetensors_shards(index, arrays)
    assert is_tensorflow_safetensors(index)
    save_file({"rembert.pooler.dense.bias": np.ones(16, "float32")}, tmp_path / "shard.st")
    index.write_text(json.dumps({"weight_map": {"rembert.pooler.dense.bias": "shard.st"}}))
    assert not is_tensorflow_safetensors(index)


@pytest.mark.parametrize("layout", ["h5", "safetensors"])
def test_damaged_files(layout, arrays, tmp_path):
    name, write, open_weights = LAYOUTS[layout]
    file = tmp_path / name
    write(file, arrays)
    whole = file.read_bytes()
    for damaged in (b"", b"version https://git-lfs", whole[:100], whole[: len(whole) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=f"{name}: damaged, half written, or no "):
            open_weights(file)
    # Half of the inside overwritten: whichever part it hits, the file is named.
    file.write_bytes(whole[:200] + b"\xff" * (len(whole) // 2) + whole[200 + len(whole) // 2 :])
    with pytest.raises(ValueError, match=f"{name}: damaged"):
        open_weights(file)
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_weights(tmp_path / "nothing")


def test_shards_that_do_not_fit_their_index(arrays, tmp_path):
    index = tmp_path / "tf_model.h5.index.json"
    write_h5_shards(index, arrays)
    (tmp_path / "tf_model-00002-of-00002.h5").unlink()
    with pytest.raises(FileNotFoundError, match="1 of its 2 files are missing: tf_model-00002-of"):
        open_tensorflow_h5(index)
    for damaged in ("", "[]", '{"weight_map": [1]}', "{}"):
        index.write_text(damaged)
        with pytest.raises(ValueError, match="index.json: damaged: expected"):
            open_tensorflow_h5(index)


@pytest.mark.parametrize("layout", ["h5", "safetensors"])
def test_a_shard_of_another_checkpoint_and_a_quantized_tensor_are_named(layout, arrays, tmp_path):
    write, end, open_weights = {
        "h5": (write_h5_shards, "h5", open_tensorflow_h5),
        "safetensors": (write_safetensors_shards, "st", open_tensorflow_safetensors),
    }[layout]
    index, key = tmp_path / "index.index.json", "rembert/pooler/dense/kernel:0"
    write(index, {**arrays, key: arrays[key].astype("int8")})
    with pytest.raises(ValueError, match=f"{key} is stored as .*8, and only float32, bfloat16"):
        open_weights(index)
    write(index, arrays)
    first, second = (tmp_path / f"tf_model-0000{n}-of-00002.{end}" for n in (1, 2))
    second.write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match=f"tensors that {second.name} does not hold: rembert/"):
        open_weights(index)


def test_weights_that_keras_numbered(encoder, tmp_path):
    encoder.save_weights(tmp_path / "encoder.weights.h5")
    with pytest.raises(ValueError, match="written by Keras' `save_weights`.*`model.load_weights"):
        open_tensorflow_h5(tmp_path / "encoder.weights.h5")
