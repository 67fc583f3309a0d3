"""What is on disk, and what is no id; tests/oracles/test_hub.py talks to a server."""

import doctest
import pathlib
import sys

import pytest

from rembert_tf.checkpoints import hub
from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.checkpoints.hub import local_folder


@pytest.fixture(autouse=True)
def _without_huggingface_hub(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # an import of it fails
    monkeypatch.chdir(tmp_path)


def test_what_is_on_disk_comes_before_any_id(folder, tmp_path):
    (tmp_path / "google").mkdir()
    folder.rename(tmp_path / "google" / "rembert")
    assert local_folder("google/rembert") == "google/rembert"
    model, _ = load_pretrained("google/rembert")
    assert model.config.vocab_size == 50
    (tmp_path / "model.ckpt.index").touch()
    assert local_folder("model.ckpt") == "model.ckpt"
    with pytest.raises(ValueError, match="`revision` is for models of the Hub, and google/rembert"):
        local_folder("google/rembert", revision="main")


@pytest.mark.parametrize(
    "path", ["a/b/c", "./model", "google/", "/google", "~/model", "", "a b", pathlib.Path("a/b")]
)
def test_what_is_no_id_is_a_folder_that_is_missing(path):
    with pytest.raises(FileNotFoundError, match="`path` must be a folder that exists. Received: p"):
        local_folder(path)


@pytest.mark.parametrize("path", ["rembert", "google/rembert", "Org-1/model_2.v3"])
def test_an_id_needs_the_extra(path):
    with pytest.raises(FileNotFoundError) as error:
        load_pretrained(path)
    assert str(error.value) == (
        "`path` must be a folder that exists, or the id of a model on the Hub, which needs "
        f"`pip install 'rembert_tf[hf]'`. Received: path={path!r}"
    )


def test_example_in_the_docstring(folder, vocabulary_file):
    (folder / "sentencepiece.model").write_bytes(vocabulary_file.read_bytes())
    results = doctest.testmod(hub, extraglobs={"path": str(folder)})
    assert results.attempted == 4 and results.failed == 0
