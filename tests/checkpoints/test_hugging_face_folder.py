import importlib.util

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rembert_tf.checkpoints import hugging_face_folder, pytorch_file
from rembert_tf.checkpoints.hugging_face_folder import WEIGHT_FILES, open_hugging_face_folder

WORD = "rembert/embeddings/word_embeddings"


@pytest.fixture
def opened(monkeypatch):
    """The PyTorch files that were opened; nothing is read."""
    paths = []
    monkeypatch.setattr(pytorch_file, "open_pytorch", lambda path: paths.append(path) or path)
    return paths


def test_safetensors_come_first(folder, opened):
    for name in list(WEIGHT_FILES)[1:]:
        (folder / name).write_bytes(b"something else")
    weights = open_hugging_face_folder(folder)
    assert weights.path == str(folder / "model.safetensors") and opened == []
    assert weights.shape(WORD) == (50, 8)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model.bin.index.json"])
def test_then_pytorch_files_where_torch_is(folder, opened, name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: module)
    (folder / "model.safetensors").rename(folder / name)
    (folder / "tf_model.h5").write_bytes(b"something else")
    open_hugging_face_folder(folder)
    assert opened == [str(folder / name)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None)
    with pytest.raises(ValueError, match="tf_model.h5: damaged"):
        open_hugging_face_folder(folder)
    (folder / "tf_model.h5").unlink()
    open_hugging_face_folder(folder)
    assert opened == [str(folder / name)] * 2


def test_then_those_of_tensorflow(folder):
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    name = "rembert/rembert/embeddings/word_embeddings/weight:0"
    with h5py.File(folder / "tf_model.h5", "w") as file:
        file[name] = tensors["rembert.embeddings.word_embeddings.weight"]
    weights = open_hugging_face_folder(folder)
    np.testing.assert_array_equal(
        weights.read(WORD), tensors["rembert.embeddings.word_embeddings.weight"]
    )


def test_the_names_inside_tell_tensorflows_safetensors_from_pytorchs(folder):
    kernel = np.arange(6, dtype="float32").reshape(2, 3)
    file = folder / "model.safetensors"
    save_file({"rembert/pooler/dense/kernel:0": kernel}, file, metadata={"format": "tf"})
    np.testing.assert_array_equal(
        open_hugging_face_folder(folder).read("rembert/pooler/kernel"), kernel
    )
    save_file({"rembert.pooler.dense.weight": kernel}, file, metadata={"format": "pt"})
    np.testing.assert_array_equal(
        open_hugging_face_folder(folder).read("rembert/pooler/kernel"), kernel.T
    )


def test_a_folder_without_weights_names_what_is_wanted_and_what_is_there(folder):
    (folder / "model.safetensors").rename(folder / "model.safetensor")
    with pytest.raises(FileNotFoundError) as error:
        open_hugging_face_folder(folder)
    assert str(error.value) == (
        f"{folder}: no model.safetensors, nor model.safetensors.index.json, pytorch_model.bin, "
        "pytorch_model.bin.index.json, tf_model.h5, tf_model.h5.index.json. Found: README.md, "
        "config.json, model.safetensor, sentencepiece.model, tokenizer.json, tokenizer_config.json"
    )
    with pytest.raises(FileNotFoundError, match="nowhere"):
        hugging_face_folder.open_hugging_face_folder(folder / "nowhere")


def test_a_pointer_of_git_lfs_is_named(folder):
    (folder / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 2305000000\n"
    )
    with pytest.raises(ValueError, match="only a pointer to the weights.* run `git lfs pull`"):
        open_hugging_face_folder(folder)
