"""Files that PyTorch really wrote, harmless ones and others."""

import json
import os
import pickle

import numpy as np
import pytest

from rembert_tf.checkpoints import pytorch_file
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.pytorch_file import open_pytorch
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

pytestmark = pytest.mark.oracle
torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

CONFIG = RemBertConfig(
    vocab_size=40, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
    input_embedding_size=4, output_embedding_size=6, max_position_embeddings=8,
)  # fmt: skip
WORD = "rembert.embeddings.word_embeddings.weight"


@pytest.fixture
def folder(tmp_path):
    """A masked LM's folder with PyTorch's file in place of safetensors; and the tensors in it."""
    model = RemBertForMaskedLM(CONFIG)
    save_pretrained(model, tmp_path / "model")
    file = tmp_path / "model" / "model.safetensors"
    tensors = safetensors_torch.load_file(file)
    file.unlink()
    torch.save(tensors, tmp_path / "model" / "pytorch_model.bin")
    return tmp_path / "model", model, tensors


def assert_same(one, other):
    for ours, theirs in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=ours.path)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before PyTorch 1.6"])
def test_a_file_gives_the_model(folder, zipped):
    path, model, tensors = folder
    torch.save(tensors, path / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    again, report = load_pretrained(path, RemBertForMaskedLM, strict=True)
    assert report.file == str(path / "pytorch_model.bin") and report.skipped == ()
    assert_same(again, model)


def test_an_encoder_of_an_old_transformers(folder):
    """No prefix, a buffer of positions, parameters in place of tensors."""
    path, model, tensors = folder
    state = {
        key.removeprefix("rembert."): torch.nn.Parameter(x)
        for key, x in tensors.items()
        if key.startswith("rembert.")
    }
    state["embeddings.position_ids"] = torch.arange(8)[None]
    torch.save(state, path / "pytorch_model.bin")
    encoder, report = load_pretrained(
        path, lambda *x, **y: RemBertEncoder(*x, add_pooler=False, **y)
    )
    assert report.skipped == () and report.newly_made == ()
    assert_same(encoder, model.encoder)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_types(folder, dtype):
    path, _, tensors = folder
    cast = {key: x.to(getattr(torch, dtype)) for key, x in tensors.items()}
    cast[WORD] = cast[WORD].T.contiguous().T  # not in the order of memory
    torch.save(cast, path / "pytorch_model.bin")
    weights = open_pytorch(path / "pytorch_model.bin")
    assert weights.read("rembert/embeddings/word_embeddings").dtype == dtype
    model = RemBertForMaskedLM.from_pretrained(path)
    np.testing.assert_array_equal(
        model.encoder.embeddings.word_embeddings.numpy(), cast[WORD].float().numpy()
    )
    kernel = cast["cls.predictions.dense.weight"].float().numpy().T
    np.testing.assert_array_equal(model.masked_lm_head.dense.kernel.numpy(), kernel)


def test_shards_and_files_mapped_anew(folder, monkeypatch):
    path, model, tensors = folder
    (path / "pytorch_model.bin").unlink()
    weight_map = {}
    for number in (1, 2):
        name = f"pytorch_model-{number:05}-of-00002.bin"
        part = {key: tensors[key] for key in sorted(tensors)[number - 1 :: 2]}
        torch.save(part, path / name)
        weight_map.update(dict.fromkeys(part, name))
    index = path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    monkeypatch.setattr(pytorch_file, "_MAPPED_BYTES", 1000)
    mapped, unpickle = [], pytorch_file._unpickle
    monkeypatch.setattr(
        pytorch_file, "_unpickle", lambda *x, **y: mapped.append(x) or unpickle(*x, **y)
    )
    again, report = load_pretrained(path, RemBertForMaskedLM, strict=True)
    assert report.file == str(index) and len(mapped) > 4
    assert_same(again, model)
    (path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(
        FileNotFoundError, match="1 of its 2 files are missing: pytorch_model-00002"
    ):
        load_pretrained(path)


class Program:
    """Unpickled by Python itself, it leaves a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("how", ["zip", "before PyTorch 1.6", "plain pickle"])
def test_a_file_with_a_program_in_it_is_refused_and_nothing_runs(folder, tmp_path, how):
    path, _, tensors = folder
    file, trace = path / "pytorch_model.bin", tmp_path / "trace"
    content = {**tensors, "program": Program(trace)}
    if how == "plain pickle":
        file.write_bytes(pickle.dumps({"program": Program(trace)}, protocol=2))
        pickle.loads(file.read_bytes())
        assert trace.exists()  # so it would have run
        trace.unlink()
    else:
        torch.save(content, file, _use_new_zipfile_serialization=how == "zip")
    with pytest.raises(ValueError, match="refused, since it holds more than tensors") as error:
        load_pretrained(path)
    assert str(error.value).startswith(f"{file}: ") and "\n" not in str(error.value)
    assert "weights_only" not in str(error.value)  # torch's advice to switch the check off
    assert not trace.exists()


def test_files_that_are_damaged_or_something_else(folder):
    path, _, tensors = folder
    file = path / "pytorch_model.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: damaged or half written"):
        load_pretrained(path)
    file.write_bytes(b"no pickle at all")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: "):
        load_pretrained(path)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=r"pytorch_model\.bin: damaged or half written"):
        load_pretrained(path)
    for content in ([tensors[WORD]], {"model": tensors}, {"epoch": 3}):
        torch.save(content, file)
        with pytest.raises(ValueError, match="expected tensors by name, as `state_dict"):
            load_pretrained(path)
    torch.save({**tensors, WORD: tensors[WORD].to(torch.int8)}, file)
    with pytest.raises(ValueError, match=f"{WORD} is stored as int8, and only float32"):
        load_pretrained(path)
