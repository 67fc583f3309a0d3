import json
import os

import keras
import ml_dtypes  # noqa: F401  (numpy learns bfloat16 by it)
import numpy as np
import pytest

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.checkpoints.hugging_face_folder import open_hugging_face_folder
from rembert_tf.checkpoints.model_from_weights import model_from_weights, variables_by_path
from rembert_tf.checkpoints.stored_weights import StoredTensor
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification


@pytest.fixture
def drawn(monkeypatch):
    """The shapes of all tensors that are drawn at random."""
    shapes = []

    def draw(self, shape, dtype=None):
        shapes.append(tuple(shape))
        return np.ones(shape, dtype)

    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", draw)
    return shapes


def test_loading_draws_no_random_values_that_it_throws_away(folder, drawn):
    load_pretrained(folder, RemBertForMaskedLM)
    assert drawn == []
    load_pretrained(folder, RemBertForSequenceClassification)
    assert drawn == [(16, 16), (16, 3)]
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 4 are missing"):
        load_pretrained(folder, RemBertForSequenceClassification, strict=True)
    assert len(drawn) == 2


def test_a_configuration_larger_than_any_machine_is_a_misfit(folder, drawn):
    """Nothing of the model that does not fit is ever made."""
    config = json.loads((folder / "config.json").read_text())
    for size in ({"vocab_size": 10**13}, {"hidden_size": 10**9, "num_attention_heads": 1}):
        (folder / "config.json").write_text(json.dumps({**config, **size}))
        with pytest.raises(ValueError, match="model.safetensors: wrong shapes: "):
            load_pretrained(folder, RemBertForMaskedLM)
    assert drawn == []


def test_a_file_that_fails_midway_ends_loading_at_once(folder, config, drawn):
    weights = open_hugging_face_folder(folder)
    read = []

    def fail():
        read.append(True)
        raise OSError("Input/output error")

    bias = "rembert/layer_0/attention/query/bias"
    broken = StoredTensor("key", weights.shape(bias), fail)
    weights = weights.replace(tensors={**weights.tensors, bias: broken})
    with pytest.raises(OSError, match="Input/output error"):
        model_from_weights(weights, config, RemBertForMaskedLM)
    assert read == [True] and drawn == []
    # Nothing of the model that failed is left for the next one to make.
    load_pretrained(folder, RemBertForMaskedLM)
    assert read == [True] and drawn == []


def test_the_largest_tensor_is_read_when_no_other_is_there(folder, config):
    weights = open_hugging_face_folder(folder)
    order = []
    tensors = {
        path: StoredTensor(t.key, t.shape, lambda t=t: order.append(t.shape) or t.read())
        for path, t in weights.tensors.items()
    }
    model_from_weights(weights.replace(tensors=tensors), config, RemBertForMaskedLM)
    sizes = [np.prod(shape) for shape in order]
    assert order[0] == (50, 24) and sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("policy", ["float32", "bfloat16", "mixed_float16"])
def test_values_in_variables_of_any_type(folder, policy):
    stored = open_hugging_face_folder(folder)
    model = RemBertForMaskedLM.from_pretrained(folder, dtype=policy)
    kernel = variables_by_path(model)["masked_lm_head/dense/kernel"]
    assert kernel.dtype == ("bfloat16" if policy == "bfloat16" else "float32")
    for path, variable in variables_by_path(model).items():
        expected = stored.read(path).astype(variable.dtype)
        np.testing.assert_array_equal(variable.numpy(), expected, err_msg=path)


def test_loaded_variables_can_be_trained(folder):
    """Their memory came from numpy; updates in place must neither fail nor reach a second model."""
    one, other = (RemBertForMaskedLM.from_pretrained(folder) for _ in range(2))
    before = {path: variable.numpy() for path, variable in variables_by_path(other).items()}
    for variable in one.weights:
        variable.assign_add(keras.ops.ones_like(variable))
    for path, variable in variables_by_path(one).items():
        np.testing.assert_array_equal(variable.numpy(), before[path] + 1, err_msg=path)
    for path, variable in variables_by_path(other).items():
        np.testing.assert_array_equal(variable.numpy(), before[path], err_msg=path)


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="Linux counts memory")
def test_loading_holds_the_weights_once(config, tmp_path):
    """In the proportions of the published size, whose output table is two fifths of the model."""
    config = config.replace(
        vocab_size=30_000, hidden_size=288, num_hidden_layers=8, intermediate_size=1152,
        input_embedding_size=64, output_embedding_size=416,
    )  # fmt: skip
    model = RemBertForMaskedLM(config)
    model.save_pretrained(tmp_path / "model")
    size = 4 * model.count_params()
    del model
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = _memory("VmRSS")
    model = RemBertForMaskedLM.from_pretrained(tmp_path / "model")
    assert model.count_params() * 4 == size
    assert _memory("VmHWM") - before < 1.25 * size


def _memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
