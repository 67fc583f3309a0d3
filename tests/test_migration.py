"""MIGRATION.md tells the truth: its blocks run, in order, on folders as transformers 4 left them."""

import base64
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.config import RemBertConfig
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.pipelines import tokenization

ROOT = pathlib.Path(__file__).parent.parent
MIGRATION = (ROOT / "MIGRATION.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", MIGRATION, flags=re.M | re.S)


def _layout():
    """The module that knows TensorFlow's names of a model of two layers."""
    path = ROOT / "tests/checkpoints/test_tensorflow_file.py"
    spec = importlib.util.spec_from_file_location("tensorflow_layout", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def old_folder(vocabulary_file, tmp_path):
    """A classifier of two labels, as TFRemBertForSequenceClassification.save_pretrained left it."""
    config = RemBertConfig(
        vocab_size=300,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        input_embedding_size=8,
        output_embedding_size=24,
        max_position_embeddings=64,
        id2label=("LABEL_0", "LABEL_1"),
    )
    layout = _layout()
    names = {**layout.ENCODER, **layout.POOLER, **layout.CLASSIFIER}
    arrays = layout._arrays(RemBertForSequenceClassification(config), names)
    folder = tmp_path / "old_folder"
    folder.mkdir()
    layout.write_h5(folder / "tf_model.h5", arrays)
    values = config.replace(id2label=()).to_dict() | {
        "architectures": ["RemBertForSequenceClassification"],
        "is_decoder": False,
        "tf_legacy_loss": True,
        "transformers_version": "4.20.1",
    }
    del values["input_projection"], values["embedding_dropout_prob"]
    (folder / "config.json").write_text(json.dumps(values))
    shutil.copy(vocabulary_file, folder)
    return folder


def test_python_blocks_run_as_written_and_in_order(old_folder, tokenizer, monkeypatch):
    monkeypatch.chdir(old_folder.parent)
    *others, from_tokenizer_json = BLOCKS
    namespace = {}
    for block in others:
        exec(compile(block, "MIGRATION.md", "exec"), namespace)
    assert namespace["report"].skipped == namespace["report"].newly_made == ()
    assert namespace["model"].config.id2label == ("LABEL_0", "LABEL_1")
    assert namespace["logits"].shape == (1, 2) and len(namespace["states"]) == 3
    assert (old_folder.parent / "new_folder" / "sentencepiece.model").is_file()

    file = old_folder / "sentencepiece.model"
    proto = sentencepiece_model_pb2.ModelProto.FromString(file.read_bytes())
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    steps = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Precompiled", "precompiled_charsmap": charsmap},
    ]
    saved = {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "model": {"vocab": [[piece.piece, piece.score] for piece in proto.pieces]},
    }
    (old_folder / "tokenizer.json").write_text(json.dumps(saved))
    file.unlink()
    exec(compile(from_tokenizer_json, "MIGRATION.md", "exec"), {})
    texts = ["The old boat", "Старый дом", "ＦＵＬＬ  width [MASK]", "古い家"]
    made = tokenization.RemBertTokenizer.from_file(file)
    for one, other in zip(made.encode(texts), tokenizer.encode(texts), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_command_runs_as_written(old_folder):
    (command,) = re.findall(r"^```sh\nrembert-convert (.*)\n```", MIGRATION, flags=re.M)
    result = subprocess.run(
        [sys.executable, "-m", "rembert_tf.bin.convert", *command.split()],
        cwd=old_folder.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    values = json.loads((old_folder.parent / "new_folder" / "config.json").read_text())
    assert values["architectures"] == ["RemBertForSequenceClassification"]
    assert (old_folder.parent / "new_folder" / "model.safetensors").is_file()


def test_classes_of_the_table_exist():
    import rembert_tf

    rows = re.findall(r"^\| `TFRemBert\w+` \| `(\w+)`", MIGRATION, flags=re.M)
    assert len(rows) == 6 and all(hasattr(rembert_tf, name) for name in rows)


def test_a_decoder_is_refused():
    with pytest.raises(ValueError, match="old/config.json: `is_decoder` must be false: attention"):
        RemBertConfig.from_dict({"is_decoder": True}, source="old/config.json")


def test_keras_2_is_neither_needed_nor_touched(old_folder):
    """Where TF_USE_LEGACY_KERAS is left over from transformers 4, and tf_keras is not installed."""
    code = """
import sys
sys.modules["tf_keras"] = None  # importing it fails
import keras, numpy as np, rembert_tf
model, _ = rembert_tf.load_pretrained("old_folder", rembert_tf.RemBertForSequenceClassification)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(np.ones((2, 3), int), np.array([0, 1]), verbose=0)
print(keras.__version__, model(np.ones((2, 3), int)).shape)
try:
    rembert_tf.RemBertTokenizer
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=old_folder.parent, capture_output=True, text=True,
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    answer, error = result.stdout.splitlines()
    assert answer.startswith("3.") and answer.endswith("(2, 2)")
    assert error.endswith("alone: unset it. Received: TF_USE_LEGACY_KERAS=1")


def test_keras_2_may_be_there(monkeypatch):
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setitem(sys.modules, "tf_keras", None)
    with pytest.raises(ImportError, match="asks for Keras 2, which is not installed"):
        tokenization.check_keras()
    monkeypatch.setitem(sys.modules, "tf_keras", sys.modules["json"])
    tokenization.check_keras()
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    monkeypatch.setitem(sys.modules, "tf_keras", None)
    tokenization.check_keras()
