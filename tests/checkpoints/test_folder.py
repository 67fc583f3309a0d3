import functools
import hashlib
import json
import os
import resource
import shutil
import types

import keras
import ml_dtypes  # noqa: F401  (numpy learns bfloat16 by it)
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import rembert_tf.checkpoints.folder
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

IDS = np.array([[3, 14, 15, 9], [2, 6, 5, 3]])
MODELS = [
    RemBertEncoder,
    RemBertForMaskedLM,
    RemBertForSequenceClassification,
    RemBertForTokenClassification,
]
TOKENIZER = types.SimpleNamespace(vocab_size=50, model_bytes=b"a vocabulary")


def _assert_same_weights(one, other):
    ours, theirs = variables_by_path(one), variables_by_path(other)
    assert list(ours) == list(theirs)
    for path, variable in ours.items():
        np.testing.assert_array_equal(variable.numpy(), theirs[path].numpy(), err_msg=path)


@pytest.fixture
def folder(config, tmp_path):
    """A masked LM's folder."""
    save_pretrained(RemBertForMaskedLM(config), tmp_path / "model", TOKENIZER)
    return tmp_path / "model"


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("shape", ["config", "coupled"])
def test_round_trip_is_exact(request, model_class, shape, tmp_path):
    config = request.getfixturevalue(shape)
    model = model_class(config)
    model.save_pretrained(tmp_path / "model")
    again, report = load_pretrained(tmp_path / "model", model_class, strict=True)
    assert again.config == config
    _assert_same_weights(again, model)
    assert set(report.loaded) == set(variables_by_path(model))
    assert report.skipped == () and report.newly_made == () and report.notes == ()


def test_what_lies_in_the_folder(folder, config):
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "sentencepiece.model",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert RemBertConfig.from_json_file(folder / "config.json") == config
    assert json.loads((folder / "config.json").read_text())["architectures"] == [
        "RemBertForMaskedLM"
    ]
    assert (folder / "sentencepiece.model").read_bytes() == b"a vocabulary"
    with safetensors.safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        keys = list(file.keys())
        assert file.get_slice("cls.predictions.dense.weight").get_shape() == [24, 16]
    assert all(key.startswith(("rembert.", "cls.predictions.")) for key in keys)
    card = (folder / "README.md").read_text()
    for name in ("model.safetensors", "sentencepiece.model", "config.json"):
        assert f"| {name} | {hashlib.sha256((folder / name).read_bytes()).hexdigest()} |" in card
    assert "RemBertForMaskedLM" in card and "| output_embedding_size | 24 |" in card


def test_tied_table_is_written_twice_and_comes_back_as_one(coupled, tmp_path):
    save_pretrained(RemBertForMaskedLM(coupled), tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    word, decoder = "rembert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    np.testing.assert_array_equal(tensors[word], tensors[decoder])
    projection = tensors["rembert.encoder.embedding_hidden_mapping_in.weight"]
    np.testing.assert_array_equal(projection, np.eye(16))
    again = RemBertForMaskedLM.from_pretrained(tmp_path / "model")
    output_table = again.masked_lm_head.output_embedding.table
    assert output_table is again.encoder.embeddings.word_embeddings
    assert again.encoder.input_projection is None


def test_what_another_library_trained_apart_is_not_lost(coupled, tmp_path):
    """transformers trains both tables and the identity, and keeps our configuration."""
    save_pretrained(RemBertForMaskedLM(coupled), tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    tensors = load_file(file)
    tensors["cls.predictions.decoder.weight"] += 1
    tensors["rembert.encoder.embedding_hidden_mapping_in.bias"] += 2
    save_file(tensors, file)
    model, report = load_pretrained(tmp_path / "model", RemBertForMaskedLM, strict=True)
    assert not model.config.tie_word_embeddings and model.config.input_projection
    np.testing.assert_array_equal(
        model.masked_lm_head.output_embedding.table.numpy(),
        tensors["cls.predictions.decoder.weight"],
    )
    np.testing.assert_array_equal(model.encoder.input_projection.bias.numpy(), np.full(16, 2.0))
    assert len(report.notes) == 2 and "two tables differ" in str(report)


def test_masked_lm_folder_gives_an_encoder_and_a_classifier(folder):
    masked_lm = RemBertForMaskedLM.from_pretrained(folder)
    encoder, report = load_pretrained(
        folder, functools.partial(RemBertEncoder, add_pooler=False), strict=True
    )
    _assert_same_weights(encoder, masked_lm.encoder)
    assert len(report.skipped) == 6 and report.newly_made == ()

    tagger, report = load_pretrained(
        folder, RemBertForTokenClassification, id2label=["X", "Y", "Z", "W"]
    )
    assert tagger.config.id2label == ("X", "Y", "Z", "W")
    _assert_same_weights(tagger.encoder, masked_lm.encoder)
    assert report.newly_made == (
        ("classifier/dense/kernel", (16, 4)),
        ("classifier/dense/bias", (4,)),
    )
    kernel = tagger.classifier.dense.kernel.numpy()
    assert 0.05 < kernel.std() < 0.4 and not tagger.classifier.dense.bias.numpy().any()


def test_encoder_folder_gives_a_masked_lm_with_a_new_head(config, tmp_path):
    encoder = RemBertEncoder(config)
    encoder.save_pretrained(tmp_path / "encoder")
    model, report = load_pretrained(tmp_path / "encoder", RemBertForMaskedLM)
    np.testing.assert_array_equal(
        model.encoder(IDS)["last_hidden_state"], encoder(IDS)["last_hidden_state"]
    )
    made = {path: shape for path, shape in report.newly_made}
    assert made["masked_lm_head/output_embedding/table"] == (50, 24) and len(made) == 6
    assert set(report.skipped) == {"rembert.pooler.dense.weight", "rembert.pooler.dense.bias"}
    assert model.masked_lm_head.output_embedding.table.numpy().std() > 0.1
    assert np.all(model.masked_lm_head.layer_norm.gamma.numpy() == 1)
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 6 are missing"):
        load_pretrained(tmp_path / "encoder", RemBertForMaskedLM, strict=True)


def test_loading_draws_no_random_values_that_it_throws_away(folder, monkeypatch):
    drawn = []

    def draw(self, shape, dtype=None):
        drawn.append(tuple(shape))
        return np.ones(shape, dtype)

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", draw)
    load_pretrained(folder, RemBertForMaskedLM)
    assert drawn == []
    load_pretrained(folder, RemBertForSequenceClassification)
    assert drawn == [(16, 16), (16, 3)]
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 4 are missing"):
        load_pretrained(folder, RemBertForSequenceClassification, strict=True)
    assert len(drawn) == 2


def test_loading_under_a_strategy(folder):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = RemBertForMaskedLM.from_pretrained(folder)
    _assert_same_weights(model, RemBertForMaskedLM.from_pretrained(folder))


def test_report_is_readable_and_logged(folder, caplog):
    with caplog.at_level("INFO", logger="absl"):
        _, report = load_pretrained(folder, RemBertForSequenceClassification)
    assert str(report) in caplog.text
    lines = str(report).splitlines()
    assert lines[0] == f"{folder / 'model.safetensors'}: loaded 39 variables"
    assert "tensors skipped: 6 (cls.predictions." in lines[1]
    assert "variables newly made: 4 (rembert/pooler/kernel [16, 16]" in lines[2]


def test_fewer_layers(folder):
    whole = RemBertForMaskedLM.from_pretrained(folder)
    model, report = load_pretrained(folder, RemBertForMaskedLM, num_hidden_layers=1, strict=True)
    assert model.config.num_hidden_layers == 1
    states = [m.encoder(IDS, output_hidden_states=True)["hidden_states"] for m in (whole, model)]
    np.testing.assert_array_equal(states[0][1], states[1][1])
    assert len(report.skipped) == 16
    with pytest.raises(ValueError, match="between 1 and 2. Received: num_hidden_layers=3"):
        load_pretrained(folder, num_hidden_layers=3)


def test_label_names_decide_whether_a_head_is_kept(config, tmp_path):
    tagger = RemBertForTokenClassification(config)
    tagger.save_pretrained(tmp_path / "tagger")
    load = functools.partial(load_pretrained, tmp_path / "tagger", RemBertForTokenClassification)
    again, report = load(id2label=("A", "B", "C"))
    _assert_same_weights(again, tagger)
    _, report = load(id2label=("A", "C", "B"))
    assert len(report.newly_made) == 2
    assert set(report.skipped) == {"classifier.weight", "classifier.bias"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_precision_and_other_types_in_the_file(folder, dtype):
    file = folder / "model.safetensors"
    stored = {key: x.astype(dtype) for key, x in load_file(file).items()}
    save_file(stored, file)
    model = RemBertForMaskedLM.from_pretrained(folder, dtype="mixed_bfloat16")
    assert model.compute_dtype == "bfloat16"
    assert all(variable.dtype == "float32" for variable in model.weights)
    table = model.encoder.embeddings.word_embeddings.numpy()
    np.testing.assert_array_equal(table, stored["rembert.embeddings.word_embeddings.weight"])


def test_encoder_file_of_transformers_has_no_prefix(config, tmp_path):
    encoder = RemBertEncoder(config)
    encoder.save_pretrained(tmp_path / "encoder")
    file = tmp_path / "encoder" / "model.safetensors"
    tensors = {key.removeprefix("rembert."): x for key, x in load_file(file).items()}
    save_file({**tensors, "embeddings.position_ids": np.arange(12)[None]}, file)
    again, report = load_pretrained(tmp_path / "encoder", strict=True)
    _assert_same_weights(again, encoder)
    assert report.skipped == ()


def test_saving_again_replaces_and_keeps_the_vocabulary(folder, config):
    other = RemBertEncoder(config)
    save_pretrained(other, folder)
    _assert_same_weights(RemBertEncoder.from_pretrained(folder), other)
    assert (folder / "sentencepiece.model").read_bytes() == b"a vocabulary"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_failed_save_leaves_the_old_folder(folder, config, monkeypatch):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full_disk(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(rembert_tf.checkpoints.folder.safetensors.numpy, "save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_pretrained(RemBertEncoder(config), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("renames", [0, 1])
def test_a_save_that_fails_while_renaming_leaves_the_old_folder(
    folder, config, monkeypatch, renames
):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done, rename = [], os.rename

    def fail_once(*names):
        done.append(names)
        if len(done) == renames + 1:
            raise OSError("Input/output error")
        rename(*names)

    monkeypatch.setattr(os, "rename", fail_once)
    with pytest.raises(OSError, match="Input/output error"):
        save_pretrained(RemBertEncoder(config), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("between_the_renames", [True, False])
def test_the_next_save_clears_up_after_a_kill(folder, config, between_the_renames):
    parent = folder.parent
    shutil.copytree(folder, parent / ".model.incomplete")
    if between_the_renames:
        folder.rename(parent / ".model.old")
        with pytest.raises(FileNotFoundError):
            load_pretrained(folder)
    else:
        (parent / ".model.old").mkdir()
        (parent / ".model.old" / "sentencepiece.model").write_bytes(b"older")
    model = RemBertEncoder(config)
    save_pretrained(model, folder)
    _assert_same_weights(RemBertEncoder.from_pretrained(folder), model)
    assert (folder / "sentencepiece.model").read_bytes() == b"a vocabulary"
    assert [path.name for path in parent.iterdir()] == ["model"]


def test_a_link_to_a_folder_stays_one(folder, config, tmp_path):
    (tmp_path / "best").symlink_to("model")
    for _ in range(2):
        save_pretrained(RemBertEncoder(config), tmp_path / "best")
    assert (tmp_path / "best").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "model"]


def test_a_disk_that_takes_no_more_is_an_os_error(config, tmp_path):
    """A limit on the size of files stands in for it; safetensors has an error class of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="model: could not be written: .*File too large"):
            save_pretrained(RemBertEncoder(config), tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_saving_refuses_to_replace_what_it_did_not_write(folder, config, tmp_path):
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"which also holds notes\.txt"):
        save_pretrained(RemBertEncoder(config), folder)
    with pytest.raises(ValueError, match="which is a file"):
        save_pretrained(RemBertEncoder(config), folder / "notes.txt")
    large = types.SimpleNamespace(vocab_size=51, model_bytes=b"")
    with pytest.raises(ValueError, match="Received: vocab_size=51, model vocab_size=50"):
        save_pretrained(RemBertEncoder(config), tmp_path / "new", large)


def test_wrong_shapes_are_one_error(folder):
    config = RemBertConfig.from_json_file(folder / "config.json")
    config.replace(intermediate_size=40).to_json_file(folder / "config.json")
    with pytest.raises(ValueError) as error:
        load_pretrained(folder)
    message = str(error.value)
    assert message.startswith(f"{folder / 'model.safetensors'}: wrong shapes: ")
    assert (
        "rembert.encoder.layer.0.intermediate.dense.weight gives [16, 32], the configuration asks "
        "for rembert/layer_0/intermediate/kernel [16, 40]" in message
    )
    assert "\n" not in message


def test_folders_that_are_none(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="`path` must be a folder that exists"):
        load_pretrained(tmp_path / "nothing")
    with pytest.raises(ValueError, match="`path` must be a folder. Received"):
        load_pretrained(folder / "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no config\.json. Found: an empty folder"):
        load_pretrained(tmp_path / "empty")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors \(transformers' .* Found"):
        load_pretrained(folder)


def test_files_that_are_damaged_or_something_else(folder, tmp_path):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"model\.safetensors: damaged, half written"):
        load_pretrained(folder)
    save_file({"model.layers.0.weight": np.ones(3)}, file)
    with pytest.raises(ValueError, match="no tensor of this architecture. Found: .*model.layers.0"):
        load_pretrained(folder)
    shutil.copy(folder / "README.md", folder / "config.json")
    with pytest.raises(ValueError, match=r"config\.json:1: not valid JSON"):
        load_pretrained(folder)
