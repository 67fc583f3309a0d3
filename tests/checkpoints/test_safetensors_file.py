import json

import ml_dtypes
import numpy as np
import pytest
import safetensors
from safetensors.numpy import load_file, save_file

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.safetensors_file import open_safetensors
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

WORD = "rembert.embeddings.word_embeddings.weight"


@pytest.fixture
def shards(folder):
    """The folder's weights in three files beside an index; returns the index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for number in range(3):
        name = f"model-{number + 1:05}-of-00003.safetensors"
        part = {key: tensors[key] for key in sorted(tensors)[number::3]}
        save_file(part, folder / name, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, name))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return index


def test_shards_are_one_model(folder, config, shards, assert_same_weights, tmp_path):
    model, report = load_pretrained(folder, RemBertForMaskedLM, strict=True)
    assert report.file == str(shards) and report.skipped == ()
    save_pretrained(model, tmp_path / "whole")
    assert_same_weights(RemBertForMaskedLM.from_pretrained(tmp_path / "whole"), model)
    kept = json.loads(shards.read_text())["weight_map"]
    assert load_file(folder / kept[WORD])[WORD].tolist() == (
        model.encoder.embeddings.word_embeddings.numpy().tolist()
    )


def test_shards_that_are_missing_or_damaged_are_named(folder, shards):
    second = folder / "model-00002-of-00003.safetensors"
    whole = second.read_bytes()
    second.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=r"model-00002-of-00003\.safetensors: damaged, half writ"):
        open_safetensors(shards)
    tensors = load_file(folder / "model-00001-of-00003.safetensors")
    save_file(tensors, second)
    with pytest.raises(
        ValueError, match="names [0-9]+ tensors that model-00002-of-00003.* does not"
    ):
        open_safetensors(shards)
    second.unlink()
    with pytest.raises(FileNotFoundError, match="1 of its 3 files are missing: model-00002-of"):
        open_safetensors(shards)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"weight_map": ["a"]}', '{"weight_map": null}', b"\xff"]
)
def test_a_damaged_index_is_named(tmp_path, content):
    index = tmp_path / "model.safetensors.index.json"
    index.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"index\.json: damaged: expected \{\"weight_map\""):
        open_safetensors(index)


@pytest.mark.parametrize("name", ["../model.safetensors", "/etc/passwd", "a/b", "", "..", 3])
def test_an_index_cannot_reach_outside_its_folder(tmp_path, name):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {WORD: name}}))
    with pytest.raises(ValueError, match="which is no file in the same folder"):
        open_safetensors(index)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types_in_the_file_give_float32_models(folder, dtype):
    file = folder / "model.safetensors"
    stored = {key: x.astype(dtype) for key, x in load_file(file).items()}
    save_file(stored, file)
    assert open_safetensors(file).read("rembert/embeddings/word_embeddings").dtype == dtype
    model = RemBertForMaskedLM.from_pretrained(folder, dtype="mixed_bfloat16")
    assert model.compute_dtype == "bfloat16"
    assert all(variable.dtype == "float32" for variable in model.weights)
    table = model.encoder.embeddings.word_embeddings.numpy()
    np.testing.assert_array_equal(table, stored[WORD].astype("float32"))
    kernel = model.masked_lm_head.dense.kernel.numpy()
    np.testing.assert_array_equal(
        kernel, stored["cls.predictions.dense.weight"].T.astype("float32")
    )


@pytest.mark.parametrize(("dtype", "name"), [("int8", "I8"), ("float8_e4m3fn", "F8_E4M3")])
def test_types_of_quantized_models_are_refused(folder, dtype, name):
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({**tensors, WORD: tensors[WORD].astype(dtype)}, file)
    with pytest.raises(ValueError, match=f"{WORD} is stored as {name}, and only float32"):
        open_safetensors(file)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", None])
def test_a_model_is_stored_in_the_type_asked_for(config, tmp_path, dtype):
    model = RemBertForMaskedLM(config)
    save_pretrained(model, tmp_path / "model", dtype=dtype)
    stored = np.dtype(dtype or "float32")
    with safetensors.safe_open(tmp_path / "model/model.safetensors", "np") as file:
        assert {file.get_tensor(key).dtype for key in file.keys()} == {stored}
        assert file.metadata() == {"format": "pt"}
    again, report = load_pretrained(tmp_path / "model", RemBertForMaskedLM, strict=True)
    assert again.config == config and report.skipped == ()
    for path, variable in variables_by_path(model).items():
        expected = variable.numpy().astype(stored).astype("float32")
        np.testing.assert_array_equal(variables_by_path(again)[path].numpy(), expected)
    # Whatever the file holds, the model that is made of it is a float32 one, in transformers too.
    assert json.loads((tmp_path / "model/config.json").read_text())["dtype"] == "float32"
    card = (tmp_path / "model/README.md").read_text()
    assert (f"| weights stored as | {dtype} |" in card) == (dtype is not None)


def test_rounding_is_to_the_nearest_and_ties_go_to_even(config, tmp_path):
    encoder = RemBertEncoder(config)
    step = 2.0**-8  # bfloat16 has 8 significant bits
    values = [1 + step, 1 + 3 * step, 1 + 1.1 * step, 1 + 0.9 * step, -1 - step]
    bias = encoder.pooler.bias
    bias.assign(np.array([*values, *[0.0] * 11], dtype="float32"))
    save_pretrained(encoder, tmp_path / "model", dtype="bfloat16")
    tensors = open_safetensors(tmp_path / "model/model.safetensors")
    rounded = tensors.read("rembert/pooler/bias")
    assert rounded.dtype == ml_dtypes.bfloat16
    assert rounded[:5].tolist() == [1, 1 + 4 * step, 1 + 2 * step, 1, -1]


def test_numbers_that_no_type_holds_are_kept(config, tmp_path):
    """Infinities and NaN were there before; only a finite value must not become one."""
    encoder = RemBertEncoder(config)
    values = np.zeros(16, "float32")
    values[:3] = np.inf, -np.inf, np.nan
    encoder.pooler.bias.assign(values)
    save_pretrained(encoder, tmp_path / "model", dtype="float16")
    again = RemBertEncoder.from_pretrained(tmp_path / "model")
    np.testing.assert_array_equal(again.pooler.bias.numpy(), values)
    values[3] = 65_520  # halfway to the next power of two, where float16 ends
    encoder.pooler.bias.assign(values)
    with pytest.raises(
        ValueError, match="rembert/pooler/bias has 65520. Received: dtype='float16'"
    ):
        save_pretrained(encoder, tmp_path / "model", dtype="float16")


def test_the_tied_table_and_the_identity_are_recognized_in_any_type(coupled, tmp_path):
    model = RemBertForMaskedLM(coupled)
    save_pretrained(model, tmp_path / "model", dtype="bfloat16")
    again, report = load_pretrained(tmp_path / "model", RemBertForMaskedLM, strict=True)
    assert again.config == coupled and report.skipped == () and len(report.notes) == 2


def test_encoder_file_of_transformers_has_no_prefix(config, tmp_path, assert_same_weights):
    encoder = RemBertEncoder(config)
    encoder.save_pretrained(tmp_path / "encoder")
    file = tmp_path / "encoder" / "model.safetensors"
    tensors = {key.removeprefix("rembert."): x for key, x in load_file(file).items()}
    save_file({**tensors, "embeddings.position_ids": np.arange(12)[None]}, file)
    again, report = load_pretrained(tmp_path / "encoder", strict=True)
    assert_same_weights(again, encoder)
    assert report.skipped == ()
