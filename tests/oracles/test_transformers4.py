"""Folders that transformers 4's TensorFlow classes write, loaded by ours: the same answers.

The other side runs in a process of its own: transformers 4 lies in a folder beside the environment
(`PREFIX/transformers4`), since transformers 5 is what the environment holds.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.checkpoints.tensorflow_file import (
    is_tensorflow_safetensors,
    open_tensorflow_h5,
    open_tensorflow_safetensors,
)
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines.tokenization import RemBertTokenizer

pytestmark = pytest.mark.oracle

SCRIPT = pathlib.Path(__file__).parent / "make_transformers4_folders.py"
TRANSFORMERS4 = pathlib.Path(sys.prefix, "transformers4")
LAYOUTS = {
    "h5": ("tf_model.h5", open_tensorflow_h5),
    "h5_shards": ("tf_model.h5.index.json", open_tensorflow_h5),
    "safetensors": ("model.safetensors", open_tensorflow_safetensors),
    "safetensors_shards": ("model.safetensors.index.json", open_tensorflow_safetensors),
}
CLASSES = {
    "TFRemBertModel": RemBertEncoder,
    "TFRemBertForMaskedLM": RemBertForMaskedLM,
    "Resized": RemBertForMaskedLM,
    "TFRemBertForSequenceClassification": RemBertForSequenceClassification,
    "TFRemBertForTokenClassification": RemBertForTokenClassification,
    "TFRemBertForQuestionAnswering": RemBertForQuestionAnswering,
    # A choice is a sequence with one score.
    "TFRemBertForMultipleChoice": RemBertForSequenceClassification,
}


@pytest.fixture(scope="module")
def folders(vocabulary_file, tmp_path_factory):
    if not TRANSFORMERS4.is_dir():
        pytest.skip(f"no transformers 4 in {TRANSFORMERS4}")
    path = tmp_path_factory.mktemp("transformers4")
    result = subprocess.run(
        [sys.executable, SCRIPT, path, vocabulary_file],
        env={**os.environ, "PYTHONPATH": str(TRANSFORMERS4)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return path


def _assert_same_answers(model, folders, name):
    inputs = dict(np.load(folders / "inputs.npz"))
    encoder = model if isinstance(model, RemBertEncoder) else model.encoder
    states = encoder(inputs, output_hidden_states=True)["hidden_states"]
    answers = model(inputs)
    answers = dict(answers) if isinstance(answers, dict) else {"logits": answers}
    answers |= {f"state {number}": state for number, state in enumerate(states)}
    expected = np.load(folders / name / "outputs.npz")
    assert answers.keys() == set(expected)
    for output in expected:
        np.testing.assert_allclose(
            np.reshape(answers[output], expected[output].shape), expected[output],
            rtol=1e-5, atol=1e-5, err_msg=output,
        )  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CLASSES)
def test_every_class_and_layout(folders, name, layout):
    folder = folders / name / layout
    file, open_weights = LAYOUTS[layout]
    config = RemBertConfig.from_json_file(folder / "config.json")
    if name.endswith("MultipleChoice"):
        config = config.replace(id2label=("choice",))
    weights = open_weights(folder / file)
    assert weights.unknown == {}
    model, report = model_from_weights(weights, config, CLASSES[name], strict=True)
    assert report.skipped == () and report.newly_made == ()
    _assert_same_answers(model, folders, name)
    if layout.startswith("safetensors"):
        assert is_tensorflow_safetensors(folder / file)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["TFRemBertForMaskedLM", "TFRemBertForMultipleChoice"])
def test_as_a_folder(folders, name, layout):
    model, report = load_pretrained(folders / name / layout, CLASSES[name], strict=True)
    assert report.skipped == ()
    _assert_same_answers(model, folders, name)


def test_a_masked_lm_folder_gives_an_encoder_and_a_new_classifier(folders):
    folder = folders / "TFRemBertForMaskedLM" / "h5"
    model, report = load_pretrained(folder, RemBertForSequenceClassification, id2label=("X", "Y"))
    assert len(report.skipped) == 6 and len(report.newly_made) == 4
    assert all("mlm___cls/predictions/" in key for key, _ in report.skipped)


def test_a_decoder_is_refused(folders):
    with pytest.raises(ValueError, match="`is_decoder` must be false"):
        load_pretrained(folders / "TFRemBertForCausalLM" / "h5", RemBertForMaskedLM)
    weights = open_tensorflow_h5(folders / "TFRemBertForCausalLM" / "h5" / "tf_model.h5")
    assert "masked_lm_head/output_embedding/table" in weights.tensors and not weights.unknown


def test_tokenizer(folders, vocabulary_file, tmp_path, monkeypatch):
    ours = RemBertTokenizer.from_file(vocabulary_file)
    theirs = json.loads((folders / "tokens.json").read_text())
    ids = {text: ours.encode([text])[0].tolist() for text in theirs["ids"]}
    space, mask = ours.pieces().index("▁"), ours.mask_id
    slow, fast = theirs["ids"].pop("two words ")
    assert ids["two words "] == slow == fast[:-1] and fast[-1] == space
    slow, fast = theirs["ids"].pop("[MASK] here")
    assert slow == fast and slow[0] == mask and mask not in ids["[MASK] here"]
    for text, (slow, fast) in theirs["ids"].items():
        assert ids[text] == slow == fast
    first, second = (ids[text] for text in list(ids)[:2])
    assert theirs["pair"]["input_ids"] == [
        ours.cls_id, *first, ours.sep_id, *second, ours.sep_id
    ]  # fmt: skip
    assert sum(theirs["pair"]["token_type_ids"]) == len(second) + 1

    # MIGRATION.md takes the vocabulary out of tokenizer.json.
    guide = (pathlib.Path(__file__).parents[2] / "MIGRATION.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(import base64.*?)^```", guide, flags=re.M | re.S)
    (tmp_path / "old_folder").mkdir()
    content = (folders / "tokenizer" / "tokenizer.json").read_bytes()
    (tmp_path / "old_folder" / "tokenizer.json").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "MIGRATION.md", "exec"), {})
    made = RemBertTokenizer.from_file("old_folder")
    assert {text: made.encode([text])[0].tolist() for text in ids} == ids


@pytest.mark.parametrize("name", ["TFRemBertModel", "TFRemBertForMaskedLM"])
def test_and_on_to_pytorch(folders, name, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model, _ = load_pretrained(folders / name / "h5", CLASSES[name], strict=True)
    model.save_pretrained(tmp_path / "new")
    theirs, information = getattr(transformers, name.removeprefix("TF")).from_pretrained(
        tmp_path / "new", output_loading_info=True
    )
    assert not any(information.values()), information
    inputs = {key: torch.tensor(x) for key, x in np.load(folders / "inputs.npz").items()}
    with torch.no_grad():
        answers = theirs.eval()(**inputs)
    expected = np.load(folders / name / "outputs.npz")
    for output in ("last_hidden_state", "pooler_output", "logits"):
        if output in expected:
            np.testing.assert_allclose(
                answers[output].numpy(), expected[output], rtol=1e-5, atol=1e-5, err_msg=output
            )
