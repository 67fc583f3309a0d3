"""A folder gives the model back, the same one or another one."""

import functools
import hashlib
import json
import shutil

import keras
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.model_garden import write_model_garden
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

IDS = np.array([[3, 14, 15, 9], [2, 6, 5, 3]])
MODELS = [
    RemBertEncoder,
    RemBertForMaskedLM,
    RemBertForQuestionAnswering,
    RemBertForSequenceClassification,
    RemBertForTokenClassification,
]


@pytest.mark.parametrize("model_class", MODELS)
@pytest.mark.parametrize("shape", ["config", "coupled"])
def test_round_trip_is_exact(request, model_class, shape, tmp_path, assert_same_weights):
    config = request.getfixturevalue(shape)
    model = model_class(config)
    model.save_pretrained(tmp_path / "model")
    again, report = load_pretrained(tmp_path / "model", model_class, strict=True)
    assert again.config == model.config
    assert_same_weights(again, model)
    shapes = {path: tuple(variable.shape) for path, variable in variables_by_path(model).items()}
    assert dict(report.loaded) == shapes
    assert report.skipped == () and report.newly_made == () and report.untrained == ()
    dropped = [] if shape == "config" else ["the input projection of the file is an identity"]
    if shape == "coupled" and model_class is RemBertForMaskedLM:
        dropped.append("the output table of the file is the input table again")
    assert len(report.notes) == len(dropped)
    assert all(map(str.startswith, report.notes, dropped))


def test_what_lies_in_the_folder(folder, config, letters):
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "sentencepiece.model",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    assert RemBertConfig.from_json_file(folder / "config.json") == config
    values = json.loads((folder / "config.json").read_text())
    assert values["architectures"] == ["RemBertForMaskedLM"] and values["dtype"] == "float32"
    assert (folder / "sentencepiece.model").read_bytes() == letters.model_bytes
    assert json.loads((folder / "tokenizer_config.json").read_text())["model_max_length"] == 12
    with safetensors.safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        keys = list(file.keys())
        assert file.get_slice("cls.predictions.dense.weight").get_shape() == [24, 16]
    assert all(key.startswith(("rembert.", "cls.predictions.")) for key in keys)
    card = (folder / "README.md").read_text()
    for name in ("model.safetensors", "sentencepiece.model", "config.json"):
        assert f"| {name} | {hashlib.sha256((folder / name).read_bytes()).hexdigest()} |" in card
    assert "RemBertForMaskedLM" in card and "| output_embedding_size | 24 |" in card


def test_masked_lm_folder_gives_an_encoder_and_a_classifier(folder, assert_same_weights):
    masked_lm = RemBertForMaskedLM.from_pretrained(folder)
    encoder, report = load_pretrained(
        folder, functools.partial(RemBertEncoder, add_pooler=False), strict=True
    )
    assert_same_weights(encoder, masked_lm.encoder)
    assert len(report.skipped) == 6 and report.newly_made == ()

    tagger, report = load_pretrained(
        folder, RemBertForTokenClassification, id2label=["X", "Y", "Z", "W"]
    )
    assert tagger.config.id2label == ("X", "Y", "Z", "W")
    assert_same_weights(tagger.encoder, masked_lm.encoder)
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
    assert dict(report.skipped) == {
        "rembert.pooler.dense.weight": (16, 16),
        "rembert.pooler.dense.bias": (16,),
    }
    assert model.masked_lm_head.output_embedding.table.numpy().std() > 0.1
    assert np.all(model.masked_lm_head.layer_norm.gamma.numpy() == 1)
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 6 are missing"):
        load_pretrained(tmp_path / "encoder", RemBertForMaskedLM, strict=True)


def test_loading_under_a_strategy(folder, assert_same_weights):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = RemBertForMaskedLM.from_pretrained(folder)
    assert_same_weights(model, RemBertForMaskedLM.from_pretrained(folder))


def test_report_is_readable_and_logged(folder, caplog):
    with caplog.at_level("INFO", logger="absl"):
        _, report = load_pretrained(folder, RemBertForSequenceClassification)
    assert str(report) in caplog.text
    lines = str(report).splitlines()
    assert lines[0] == f"{folder / 'model.safetensors'}: loaded 39 variables"
    assert "tensors skipped: 6 (cls.predictions." in lines[1]
    assert "cls.predictions.decoder.weight [50, 24]" in lines[1]
    assert "variables newly made: 4 (rembert/pooler/kernel [16, 16]" in lines[2]


def test_tensors_that_are_of_nothing_are_warned_of(folder, caplog):
    def load_and_log():
        caplog.clear()
        with caplog.at_level("INFO", logger="absl"):
            report = load_pretrained(folder, RemBertForMaskedLM)[1]
        return report, [record.levelname for record in caplog.records]

    assert load_and_log()[1] == ["INFO"]
    tensors = load_file(folder / "model.safetensors")
    tensors["rembert.adapter.weight"] = np.ones((2, 3), "float32")
    save_file(tensors, folder / "model.safetensors")
    report, levels = load_and_log()
    assert levels == ["WARNING"] and report.skipped == (("rembert.adapter.weight", (2, 3)),)
    assert "tensors skipped: 1 (rembert.adapter.weight [2, 3])" in str(report)


def test_an_encoder_without_pooler_says_so(folder, tmp_path):
    RemBertForMaskedLM.from_pretrained(folder).encoder.save_pretrained(tmp_path / "encoder")
    no_pooler = "There is no pooler: transformers makes a random one."
    assert no_pooler in (tmp_path / "encoder" / "README.md").read_text()
    encoder, report = load_pretrained(tmp_path / "encoder")
    assert encoder.pooler is not None
    assert report.newly_made == (
        ("rembert/pooler/kernel", (16, 16)),
        ("rembert/pooler/bias", (16,)),
    )

    encoder.save_pretrained(tmp_path / "converted")
    card = (tmp_path / "converted" / "README.md").read_text()
    assert "Not trained yet, and random: rembert/pooler/kernel, rembert/pooler/bias." in card
    assert no_pooler not in card
    with pytest.raises(
        ValueError, match="2 are missing .2 as saved before they were trained.: rem"
    ):
        load_pretrained(tmp_path / "converted", strict=True)


def test_a_head_of_ones_own_is_refused_by_name(config, tmp_path):
    class WithTopics(RemBertForMaskedLM):
        def __init__(self, config):
            super().__init__(config, name="with_topics")
            self.topics = keras.layers.Dense(3, name="topics")
            self.topics.build((None, 16))

    model = WithTopics(config)
    for save in (save_pretrained, write_model_garden):
        with pytest.raises(ValueError, match="WithTopics has topics/kernel, .* `model.encoder`"):
            save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    save_pretrained(model.encoder, tmp_path / "model")


def test_fewer_layers(folder):
    whole = RemBertForMaskedLM.from_pretrained(folder)
    model, report = load_pretrained(folder, RemBertForMaskedLM, num_hidden_layers=1, strict=True)
    assert model.config.num_hidden_layers == 1
    states = [m.encoder(IDS, output_hidden_states=True)["hidden_states"] for m in (whole, model)]
    np.testing.assert_array_equal(states[0][1], states[1][1])
    assert len(report.skipped) == 16
    with pytest.raises(ValueError, match="between 1 and 2. Received: num_hidden_layers=3"):
        load_pretrained(folder, num_hidden_layers=3)


def test_label_names_decide_whether_a_head_is_kept(config, tmp_path, assert_same_weights):
    tagger = RemBertForTokenClassification(config)
    tagger.save_pretrained(tmp_path / "tagger")
    load = functools.partial(load_pretrained, tmp_path / "tagger", RemBertForTokenClassification)
    again, report = load(id2label=("A", "B", "C"))
    assert_same_weights(again, tagger)
    _, report = load(id2label=("A", "C", "B"))
    assert len(report.newly_made) == 2
    assert dict(report.skipped).keys() == {"classifier.weight", "classifier.bias"}


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
    with pytest.raises(ValueError, match="`path` must be a folder. Received.*, which is a file"):
        load_pretrained(folder / "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no config\.json. Found: an empty folder"):
        load_pretrained(tmp_path / "empty")
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors, nor .*Found: README\.md"):
        load_pretrained(folder)


def test_another_kind_of_folder_is_named_with_what_to_do(folder, tmp_path):
    prefix = tmp_path / "google" / "model.ckpt"
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("bert/pooler/dense/bias", [3])
        session.run(tf.compat.v1.global_variables_initializer())
        prefix.parent.mkdir()
        tf.compat.v1.train.Saver().save(session, str(prefix), write_state=False)
    with pytest.raises(FileNotFoundError, match=r"no config\.json, but a TensorFlow 1 checkpoint"):
        load_pretrained(tmp_path / "google")
    with pytest.raises(ValueError, match="which is a TensorFlow 1 .*: rembert-convert --input="):
        load_pretrained(prefix)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no config\.json, but weights without their"):
        load_pretrained(folder)


def test_files_that_are_damaged_or_something_else(folder):
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


def test_the_methods_of_a_model_pass_their_arguments_on(folder, tmp_path, config):
    model = RemBertForMaskedLM.from_pretrained(folder, num_hidden_layers=1)
    model.save_pretrained(tmp_path / "small", dtype="bfloat16")
    with safetensors.safe_open(tmp_path / "small" / "model.safetensors", "np") as file:
        assert file.get_slice("cls.predictions.decoder.bias").get_dtype() == "BF16"
    with pytest.raises(ValueError, match="`revision` is for models of the Hub"):
        RemBertEncoder.from_pretrained(folder, revision="v1")
    save_pretrained(model, tmp_path / "small")
    assert (tmp_path / "small/model.safetensors").stat().st_size > 4 * model.count_params()
