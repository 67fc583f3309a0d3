"""Saving replaces a folder whole or not at all."""

import os
import resource
import subprocess
import sys
import types

import pytest

from rembert_tf.checkpoints import safetensors_file
from rembert_tf.checkpoints.folder import load_pretrained, save_pretrained
from rembert_tf.checkpoints.saved_class import load_saved_class
from rembert_tf.models.encoder import RemBertEncoder


@pytest.fixture
def encoder(config):
    return RemBertEncoder(config)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_saving_again_replaces_and_keeps_the_vocabulary(folder, encoder, assert_same_weights):
    before = files(folder)
    save_pretrained(encoder, folder)
    assert_same_weights(RemBertEncoder.from_pretrained(folder), encoder)
    after = files(folder)
    for name in ("sentencepiece.model", "tokenizer.json", "tokenizer_config.json"):
        assert after[name] == before[name]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_failed_save_leaves_the_old_folder(folder, encoder, monkeypatch):
    before = files(folder)

    def full_disk(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(safetensors_file.safetensors.numpy, "save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_pretrained(encoder, folder)
    assert files(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("renames", [0, 1])
def test_a_save_that_fails_while_renaming_leaves_the_old_folder(
    folder, encoder, monkeypatch, renames
):
    before = files(folder)
    done, rename = [], os.rename

    def fail_once(*names):
        done.append(names)
        if len(done) == renames + 1:
            raise OSError("Input/output error")
        rename(*names)

    monkeypatch.setattr(os, "rename", fail_once)
    with pytest.raises(OSError, match="Input/output error"):
        save_pretrained(encoder, folder)
    assert files(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_the_next_save_clears_up_after_a_kill(folder, encoder, letters, assert_same_weights):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    folder.rename(folder.with_name(f".model.old.{process.pid}"))
    for load in (load_pretrained, load_saved_class):
        with pytest.raises(FileNotFoundError, match=f"mv .*/.model.old.{process.pid} {folder}"):
            load(folder)
    save_pretrained(encoder, folder)
    assert_same_weights(RemBertEncoder.from_pretrained(folder), encoder)
    assert (folder / "sentencepiece.model").read_bytes() == letters.model_bytes
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_link_to_a_folder_stays_one(folder, encoder, tmp_path):
    (tmp_path / "best").symlink_to("model")
    for _ in range(2):
        save_pretrained(encoder, tmp_path / "best")
    assert (tmp_path / "best").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best", "model"]


def test_a_disk_that_takes_no_more_is_an_os_error(encoder, tmp_path):
    """A limit on the size of files stands in for it; safetensors has an error class of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="model: could not be written: .*File too large"):
            save_pretrained(encoder, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_saving_refuses_to_replace_what_it_did_not_write(folder, encoder, tmp_path):
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"which also holds notes\.txt"):
        save_pretrained(encoder, folder)
    with pytest.raises(ValueError, match="which is a file"):
        save_pretrained(encoder, folder / "notes.txt")
    large = types.SimpleNamespace(vocab_size=51, model_bytes=b"")
    with pytest.raises(ValueError, match="Received: vocab_size=51, model vocab_size=50"):
        save_pretrained(encoder, tmp_path / "new", large)


def test_a_weight_too_large_for_the_type_leaves_the_old_folder(folder, encoder):
    before = files(folder)
    encoder.pooler.bias.assign(encoder.pooler.bias + 1e5)
    with pytest.raises(ValueError, match="`dtype` must hold every value, and rembert/pooler/bias"):
        save_pretrained(encoder, folder, dtype="float16")
    with pytest.raises(ValueError, match="`dtype` must be one of float32, bfloat16, float16"):
        save_pretrained(encoder, folder, dtype="int8")
    assert files(folder) == before


def test_whoever_may_read_the_configuration_may_read_the_weights(folder):
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert len(set(modes.values())) == 1, modes
