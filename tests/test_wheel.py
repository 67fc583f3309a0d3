"""A wheel built from the tree holds every file of the package and works outside the checkout."""

import os
import pathlib
import shutil
import site
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parent.parent
FOLDERS = {
    "rembert_tf": "rembert_tf",
    "pipelines": "rembert_tf/pipelines",
    "flags": "rembert_tf/flags",
}
PACKAGES = os.pathsep.join(site.getsitepackages())


def files_of(folder):
    return {
        path.relative_to(folder)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def python(*arguments, cwd, path=PACKAGES):
    """Runs Python without its site: an editable install of the checkout is not found."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    result = subprocess.run(
        [sys.executable, "-S", *map(str, arguments)], cwd=cwd, text=True, capture_output=True,
        env=environment | {"PYTHONPATH": path}, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of the sources, which an editable install or an old build cannot reach."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    # Offline: the build's own requirement is met by any setuptools that is here.
    python("-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check", cwd=source)
    (path,) = (source / "dist").iterdir()
    return path


@pytest.fixture(scope="module")
def target(wheel, tmp_path_factory):
    """The folder that the wheel was installed into."""
    folder = tmp_path_factory.mktemp("target")
    python("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel,
           cwd=folder)  # fmt: skip
    return folder


def test_the_wheel_holds_the_files_of_the_package_and_no_others(wheel):
    expected = {
        f"{package}/{path.as_posix()}"
        for folder, package in FOLDERS.items()
        for path in files_of(ROOT / folder)
    }
    names = set(zipfile.ZipFile(wheel).namelist())
    held = {name for name in names if ".dist-info/" not in name}
    assert expected - held == set()
    assert held - expected == set()
    assert any(name.endswith(".dist-info/entry_points.txt") for name in names)
    assert any(name.endswith("LICENSE") for name in names - held)
    assert wheel.name == "rembert_tf-0.1.0-py3-none-any.whl"


def test_binaries_run_from_another_folder(target, tmp_path):
    path = os.pathsep.join([str(target), PACKAGES])
    scripts = sorted(script.name for script in (target / "bin").iterdir())
    assert "rembert-pretrain" in scripts and len(scripts) == len(
        list((ROOT / "rembert_tf/bin").glob("[a-z]*.py"))
    )
    for script in scripts:
        text = python(target / "bin" / script, "--help", cwd=tmp_path, path=path)
        assert text.startswith(f"{script}\n") and "--flagfile" in text

    sample, file = python(
        "-c", "import rembert_tf, rembert_tf.pipelines as p; print(p.sample_folder());"
        "print(rembert_tf.__file__)", cwd=tmp_path, path=path,
    ).split()  # fmt: skip
    assert pathlib.Path(file) == target / "rembert_tf/__init__.py"
    assert pathlib.Path(sample) == target / "rembert_tf/pipelines/sample"
    python(target / "bin" / "rembert-train-tokenizer", f"--input_dir={sample}/text",
           "--output=vocabulary", "--vocab_size=1000", cwd=tmp_path, path=path)  # fmt: skip
    assert (tmp_path / "vocabulary/sentencepiece.model").stat().st_size > 10_000
