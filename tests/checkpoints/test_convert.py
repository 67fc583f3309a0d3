"""Every layout through the converter, and what it changes on the way."""

import json
import typing

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.convert import convert
from rembert_tf.checkpoints.convert_config import ConvertConfig
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.model_garden import write_model_garden
from rembert_tf.checkpoints.saved_class import CLASSES
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.tokenization import RemBertTokenizer

MODELS = [
    RemBertEncoder,
    RemBertForMaskedLM,
    RemBertForSequenceClassification,
    RemBertForTokenClassification,
    RemBertForQuestionAnswering,
]


def run(source, target, **settings):
    return convert(ConvertConfig(input=str(source), output=str(target), **settings))


def values(model):
    return {path: variable.numpy() for path, variable in variables_by_path(model).items()}


def assert_same(one, other):
    one, other = values(one), values(other)
    assert one.keys() == other.keys()
    for path in one:
        np.testing.assert_array_equal(one[path], other[path], err_msg=path)


def write_google_tf1(model, prefix):
    prefix.parent.mkdir()
    arrays = values(model)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for path, array in arrays.items():
            row = names.by_variable_path(path)
            array = array.T if row.google_tf1_transposed else array
            tf.compat.v1.get_variable(row.google_tf1, initializer=array)
        tf.compat.v1.get_variable("global_step", initializer=np.int64(7))
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(prefix), write_state=False)


@pytest.mark.parametrize("model_class", MODELS)
def test_a_folder_keeps_its_class_and_its_weights(model_class, config, tmp_path):
    model = model_class(config)
    save_pretrained(model, tmp_path / "in")
    report = run(tmp_path / "in", tmp_path / "out", strict=True)
    assert report.newly_made == () and report.skipped == ()
    assert_same(load_pretrained(tmp_path / "out", model_class, strict=True)[0], model)
    saved = json.loads((tmp_path / "out/config.json").read_text())
    assert saved["architectures"] == [model_class.__name__.replace("Encoder", "Model")]


def test_google_tf1_needs_nothing_but_its_prefix(config, tmp_path):
    config = config.replace(id2label=())
    model = RemBertForMaskedLM(config)
    write_google_tf1(model, tmp_path / "in" / "model.ckpt")
    report = run(tmp_path / "in" / "model.ckpt", tmp_path / "out", num_attention_heads=2)
    again, _ = load_pretrained(tmp_path / "out", RemBertForMaskedLM, strict=True)
    assert_same(again, model)
    assert any("global_step 7" in note for note in report.notes)


def test_model_garden_and_back(coupled, tmp_path):
    model = RemBertEncoder(coupled.replace(id2label=(), hidden_act="gelu_new"))
    write_model_garden(model, tmp_path / "in")
    run(tmp_path / "in", tmp_path / "folder")
    again, _ = load_pretrained(tmp_path / "folder", strict=True)
    assert again.config.hidden_act == "gelu_new" and again.config.num_attention_heads == 2
    assert_same(again, model)
    run(tmp_path / "folder", tmp_path / "out", output_format="model_garden")
    run(tmp_path / "out", tmp_path / "folder2")
    assert_same(load_pretrained(tmp_path / "folder2", strict=True)[0], model)


def test_a_head_that_the_input_lacks(config, tmp_path):
    save_pretrained(RemBertEncoder(config), tmp_path / "in")
    report = run(tmp_path / "in", tmp_path / "out", model_class="RemBertForMaskedLM")
    assert len(report.newly_made) == 6
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 6 are missing"):
        run(tmp_path / "in", tmp_path / "new", model_class="RemBertForMaskedLM", strict=True)
    assert not (tmp_path / "new").exists()


def test_fewer_layers_other_vocabulary_size_other_type(config, tmp_path):
    save_pretrained(RemBertForMaskedLM(config), tmp_path / "in")
    run(tmp_path / "in", tmp_path / "out", num_hidden_layers=1, vocab_size=60, dtype="bfloat16")
    model, _ = load_pretrained(tmp_path / "out", RemBertForMaskedLM, strict=True)
    assert model.config.num_hidden_layers == 1 and model.config.vocab_size == 60
    assert model.masked_lm_head.output_embedding.table.shape == (60, 24)
    size = (tmp_path / "out/model.safetensors").stat().st_size
    assert size < 2.2 * model.count_params() + 4000


def test_what_cannot_be_converted_says_why(config, tmp_path):
    with pytest.raises((ValueError, FileNotFoundError), match="nothing-there"):
        run(tmp_path / "nothing-there", tmp_path / "out")
    (tmp_path / "served").mkdir()
    (tmp_path / "served/saved_model.pb").touch()
    with pytest.raises(ValueError, match="it is a SavedModel: .* take the folder"):
        run(tmp_path / "served", tmp_path / "out")
    save_pretrained(RemBertEncoder(config), tmp_path / "in")
    with pytest.raises(ValueError, match="`config` has no use here: .* has a config.json"):
        run(tmp_path / "in", tmp_path / "out", config="tiny")
    with pytest.raises(ValueError, match="`num_hidden_layers` must be between 1 and 2"):
        run(tmp_path / "in", tmp_path / "out", num_hidden_layers=3)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").touch()
    with pytest.raises(ValueError, match="which also holds thesis.tex"):
        run(tmp_path / "no-matter", tmp_path / "full")
    with pytest.raises(ValueError, match="Give either `tokenizer` or `vocab_size`"):
        run(tmp_path / "in", tmp_path / "out", tokenizer="x", vocab_size=5)
    with pytest.raises(ValueError, match="`dtype` is for a model folder"):
        run(tmp_path / "in", tmp_path / "out", dtype="bfloat16", output_format="model_garden")


def test_a_file_of_the_folder_does_for_the_folder(config, tmp_path):
    model = RemBertEncoder(config)
    save_pretrained(model, tmp_path / "in")
    run(tmp_path / "in" / "model.safetensors", tmp_path / "out")
    assert_same(load_pretrained(tmp_path / "out", strict=True)[0], model)


def test_what_a_checkpoint_of_model_garden_shows_is_not_overruled(coupled, tmp_path):
    write_model_garden(RemBertEncoder(coupled.replace(id2label=())), tmp_path / "in")
    with pytest.raises(ValueError, match="the checkpoint has 2 attention heads. Received: .*=4"):
        run(tmp_path / "in", tmp_path / "out", num_attention_heads=4)
    with pytest.raises(ValueError, match="`name_map` has no use here"):
        run(tmp_path / "in", tmp_path / "out", name_map="map.json")
    report = run(tmp_path / "in", tmp_path / "out", hidden_act="gelu")
    assert "hidden_act='gelu' is taken; no tensor shows it" in report.notes


def test_special_ids_of_a_checkpoint_are_those_of_its_vocabulary(config, vocabulary_file, tmp_path):
    tokenizer = RemBertTokenizer.from_file(vocabulary_file)
    model = RemBertForMaskedLM(config.replace(vocab_size=tokenizer.vocab_size, id2label=()))
    write_google_tf1(model, tmp_path / "in" / "model.ckpt")
    settings = {"num_attention_heads": 2, "num_hidden_layers": 1}
    report = run(tmp_path / "in", tmp_path / "out", tokenizer=str(vocabulary_file), **settings)
    again, _ = load_pretrained(tmp_path / "out", RemBertForMaskedLM, strict=True)
    ids = again.config.pad_token_id, again.config.bos_token_id, again.config.eos_token_id
    assert ids == (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id)
    assert again.config.num_hidden_layers == 1 and len(report.skipped) == 16
    assert (tmp_path / "out/sentencepiece.model").read_bytes() == tokenizer.model_bytes


def test_the_flag_names_every_class():
    flag = typing.get_args(typing.get_type_hints(ConvertConfig)["model_class"])
    assert set(flag) == {"", *CLASSES} - {"RemBertModel"}
