import json

import numpy as np
import pytest

import rembert_tf
from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.checkpoints.saved_class import CLASSES, load_saved_class
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.pretrained_model import PretrainedModel


@pytest.fixture
def folder(config, tmp_path):
    """An encoder's folder."""
    save_pretrained(RemBertEncoder(config), tmp_path / "model")
    return tmp_path / "model"


def name_classes(folder, names):
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, "architectures": names}))


def test_every_public_model_is_found_by_its_name():
    public = {name: getattr(rembert_tf, name) for name in rembert_tf.__all__}
    models = {
        name: value
        for name, value in public.items()
        if isinstance(value, type) and issubclass(value, PretrainedModel)
    }
    del models["RemBertSentenceEncoder"]  # its folder is an encoder's
    assert len(models) == 5
    assert CLASSES == {**models, "RemBertModel": RemBertEncoder}


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_that_was_saved_comes_back(config, tmp_path, name):
    model = CLASSES[name](config)
    save_pretrained(model, tmp_path / "model")
    name_classes(tmp_path / "model", [name])
    again = load_saved_class(tmp_path / "model", dtype="mixed_bfloat16")
    assert type(again) is CLASSES[name]
    assert again.config == model.config and again.compute_dtype == "bfloat16"
    ours, theirs = variables_by_path(model), variables_by_path(again)
    assert list(ours) == list(theirs)
    for path, variable in ours.items():
        np.testing.assert_array_equal(variable.numpy(), theirs[path].numpy(), err_msg=path)


def test_every_variable_must_be_there(folder):
    name_classes(folder, ["RemBertForMaskedLM"])
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 6 are missing"):
        load_saved_class(folder)


def test_missing_files(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="must be a folder that exists.*nowhere"):
        load_saved_class(tmp_path / "nowhere")
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model: no model.safetensors"):
        load_saved_class(folder)


@pytest.mark.parametrize(
    "names", [None, [], ["BertModel"], "RemBertModel", [["RemBertModel"]], 3], ids=str
)
def test_classes_that_are_not_ours(folder, names):
    name_classes(folder, names)
    with pytest.raises(ValueError) as error:
        load_saved_class(folder)
    assert str(error.value) == (
        f"{folder / 'config.json'}: `architectures` must name one of RemBertEncoder, "
        "RemBertForMaskedLM, RemBertForQuestionAnswering, RemBertForSequenceClassification, "
        f"RemBertForTokenClassification, RemBertModel. Received: architectures={names!r}"
    )


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"hidden_size": 16,\n oops}', r"config\.json:2: not valid JSON"),
        (b'["RemBertModel"]', r"config\.json: expected a JSON object. Received: list"),
        (b'{"architectures": ["\xff"]}', r"config\.json: not UTF-8"),
    ],
    ids=["broken", "list", "latin1"],
)
def test_a_damaged_configuration_is_named(folder, content, message):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_saved_class(folder)
