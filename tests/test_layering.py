"""Who may import whom: the table of BUILD.md, held by reading the imports."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
FOLDERS = {
    "rembert_tf": "rembert_tf",
    "pipelines": "rembert_tf.pipelines",
    "flags": "rembert_tf.flags",
}

# Package (or module) -> what it may import of ours, and which third-party packages.
LIGHT = {"absl", "numpy"}
TENSORFLOW = {*LIGHT, "tensorflow", "tensorflow_text", "sentencepiece", "tqdm"}
LAYERS = {
    "rembert_tf": (set(), set()),  # rembert_tf/__init__.py: lazy, imports by name
    "rembert_tf.config": (set(), set()),
    "rembert_tf.atomic_files": (set(), set()),
    "rembert_tf.named_sizes": ({"rembert_tf.config"}, set()),
    "rembert_tf.layers": ({"rembert_tf.config"}, {"keras", "numpy"}),
    "rembert_tf.evaluation": (
        {"rembert_tf.config", "rembert_tf.atomic_files"},
        {"absl", "numpy", "seqeval", "matplotlib"},
    ),
    "rembert_tf.models": ({"rembert_tf.config", "rembert_tf.layers"}, {"keras", "numpy"}),
    "rembert_tf.pipelines": (
        {"rembert_tf.config", "rembert_tf.atomic_files"},
        {*TENSORFLOW, "matplotlib", "fontTools", "zstandard", "apache_beam"},
    ),
    "rembert_tf.checkpoints": (
        {
            "rembert_tf.config", "rembert_tf.named_sizes", "rembert_tf.layers", "rembert_tf.models",
            "rembert_tf.pipelines",
        },
        {*TENSORFLOW, "keras", "safetensors", "h5py", "ml_dtypes", "torch", "huggingface_hub"},
    ),
    "rembert_tf.training": (
        {
            "rembert_tf.config", "rembert_tf.atomic_files", "rembert_tf.named_sizes",
            "rembert_tf.layers", "rembert_tf.models", "rembert_tf.pipelines",
            "rembert_tf.evaluation", "rembert_tf.checkpoints", "rembert_tf.export",
        },
        {*TENSORFLOW, "keras", "matplotlib"},
    ),
    "rembert_tf.export_config": ({"rembert_tf.pipelines"}, set()),
    "rembert_tf.export": (
        {
            "rembert_tf.config", "rembert_tf.export_config", "rembert_tf.models",
            "rembert_tf.pipelines",
        },
        {*TENSORFLOW, "keras", "onnx", "onnxruntime", "tf2onnx"},
    ),
    "rembert_tf.flags": (set(), {"absl"}),
    "rembert_tf.bin": ({"rembert_tf"}, {"absl"}),
}  # fmt: skip

# Of the training package, only whole runs load or publish model folders.
MAY_IMPORT_CHECKPOINTS = {"pretraining", "finetuning", "prediction"}
# The written exceptions: two methods of the models' base class import the folder inside the call, and
# `python -m rembert_tf.config` prints the named sizes. The output embedding asks TensorFlow, where Keras runs on
# it, for a product that `keras.ops` lacks. Labels are made of published data by the readers, none of which imports
# TensorFlow, that also make the features: a second reader could count sentences otherwise.
EXCEPTIONS = {
    ("rembert_tf.models.pretrained_model", "rembert_tf.checkpoints"),
    ("rembert_tf.config", "rembert_tf.named_sizes"),
    ("rembert_tf.evaluation.published_labels", "rembert_tf.pipelines"),
    ("rembert_tf.layers.output_embedding", "tensorflow"),
}


def modules():
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join([package, *parts]).removesuffix(".__init__")
            yield pytest.param(name, path, id=name)


def imported_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def longest_prefix(name, candidates):
    fitting = [c for c in candidates if name == c or name.startswith(c + ".")]
    return max(fitting, key=len, default=None)


@pytest.mark.parametrize("name, path", list(modules()))
def test_imports_obey_the_table(name, path):
    layer = longest_prefix(name, LAYERS)
    ours, third_party = LAYERS[layer]
    for imported in imported_names(path):
        top = imported.split(".")[0]
        if top == "rembert_tf":
            target = longest_prefix(imported, LAYERS)
            allowed = target == layer or longest_prefix(imported, ours) is not None
            allowed = (
                allowed or (name, target) in EXCEPTIONS or imported == "rembert_tf.__version__"
            )
            assert allowed, f"{name} must not import {imported}"
            if layer == "rembert_tf.training" and target == "rembert_tf.checkpoints":
                assert name.rsplit(".")[-1] in MAY_IMPORT_CHECKPOINTS, f"{name} imports {imported}"
        elif top not in __import__("sys").stdlib_module_names:
            allowed = top in third_party or (name, top) in EXCEPTIONS
            assert allowed, f"{name} must not import {imported}"
        if imported.startswith("absl.flags"):
            assert layer in ("rembert_tf.flags", "rembert_tf.bin"), f"{name} imports absl.flags"


def test_no_module_has_a_name_that_says_nothing():
    names = {path.stem for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert not names & {"utils", "common", "helpers", "misc"}


def test_the_table_is_printed_in_build_md():
    text = (ROOT / "BUILD.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w.]+)` \|", text, flags=re.M))
    assert rows == {layer.removeprefix("rembert_tf.") for layer in LAYERS} - {"rembert_tf"}
