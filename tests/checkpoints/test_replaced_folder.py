"""A folder is replaced whole, whoever was killed and whoever else writes it."""

import os
import subprocess
import sys

import pytest

from rembert_tf.checkpoints.replaced_folder import check_not_interrupted, replaced_folder

OTHER = os.getppid()  # another process, and it lives


@pytest.fixture
def dead():
    """The number of a process that lives no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def path(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "text").write_text("old")
    return tmp_path / "model"


def write(path, text="new"):
    with replaced_folder(path) as folder:
        with open(os.path.join(folder, "text"), "w") as file:
            file.write(text)
        assert not os.path.exists(path / "text") or (path / "text").read_text() != text


def leave(path, kind, process, text="left"):
    folder = path.with_name(f".{path.name}.{kind}.{process}")
    folder.mkdir()
    (folder / "text").write_text(text)
    return folder


def test_a_folder_is_made_and_replaced(path, tmp_path):
    write(path)
    write(tmp_path / "deep" / "other")
    assert (path / "text").read_text() == (tmp_path / "deep/other/text").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["deep", "model"]
    assert os.listdir(tmp_path / "deep") == ["other"]


def test_what_dead_processes_left_is_removed_and_what_living_ones_write_is_not(path, dead):
    for kind in ("incomplete", "old"):
        leave(path, kind, dead)
        leave(path, kind, OTHER)
        leave(path, kind, os.getpid())  # numbers come again, in a container above all
        leave(path.with_name("model.b"), kind, dead)
    write(path)
    assert (path / "text").read_text() == "new"
    assert sorted(os.listdir(path.parent)) == [
        f".model.b.incomplete.{dead}", f".model.b.old.{dead}",
        f".model.incomplete.{OTHER}", f".model.old.{OTHER}", "model",
    ]  # fmt: skip


def test_a_kill_between_the_renames_is_named_and_the_next_one_takes_the_old_folder_back(path, dead):
    check_not_interrupted(path)
    old = path.with_name(f".model.old.{dead}")
    path.rename(old)
    with pytest.raises(FileNotFoundError, match=f"{path}: .* killed .*: mv {old} {path}"):
        check_not_interrupted(path)
    with pytest.raises(OSError, match="full"), replaced_folder(path):
        raise OSError("the disk is full")
    assert (path / "text").read_text() == "old"
    assert os.listdir(path.parent) == ["model"]


def test_what_another_process_replaces_right_now_is_not_taken_back(path):
    path.rename(path.with_name(f".model.old.{OTHER}"))
    check_not_interrupted(path)
    write(path)
    assert (path / "text").read_text() == "new"
    assert (path.with_name(f".model.old.{OTHER}") / "text").read_text() == "old"


def test_the_folder_of_a_faster_process_is_replaced(path, monkeypatch):
    rename = os.rename

    def overtaken(source, target):
        rename(source, target)
        if target.endswith(f".old.{os.getpid()}") and not path.exists():
            monkeypatch.setattr(os, "rename", rename)
            path.mkdir()
            (path / "text").write_text("of the faster one")

    monkeypatch.setattr(os, "rename", overtaken)
    write(path)
    assert (path / "text").read_text() == "new"
    assert os.listdir(path.parent) == ["model"]
