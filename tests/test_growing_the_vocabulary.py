"""docs/growing_the_vocabulary.md tells the truth: its commands and its code run as written."""

import json
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.pipelines import text_files
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.optimizers import AdamW

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs/growing_the_vocabulary.md").read_text(encoding="utf-8")
TABLES = (
    "rembert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
)

# Runs all commands in one process, each with its own flags: TensorFlow is imported once.
RUNNER = """
import importlib, json, sys
from absl import flags
import absl.logging  # defines flags of its own, which are no binary's

for binary, *arguments in json.loads(sys.argv[1]):
    known = set(flags.FLAGS)
    sys.argv = [binary, *arguments]
    name = binary.removeprefix("rembert-").replace("-", "_")
    try:
        importlib.import_module(f"rembert_tf.bin.{name}").run()
    except SystemExit as exit:
        if exit.code:
            sys.exit(f"{binary} ended with {exit.code}")
    for name in set(flags.FLAGS) - known:
        delattr(flags.FLAGS, name)
    flags.FLAGS.unparse_flags()
"""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, flags=re.M | re.S)


def commands(folder):
    """The commands of the page in order, in another folder, and with less training."""
    text = "\n".join(blocks("sh")).replace("\\\n", " ").replace("growing/", f"{folder}/")
    for line in text.splitlines():
        if line.startswith("rembert-"):
            shorter = ["--steps=3"] if line.startswith("rembert-pretrain") else []
            yield [*shlex.split(line), *shorter]


@pytest.mark.slow
def test_the_commands_grow_a_model(tmp_path):
    made = list(commands(tmp_path))
    assert [command[0] for command in made[3:]] == [
        "rembert-train-tokenizer", "rembert-convert", "rembert-build-data", "rembert-pretrain",
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", RUNNER, json.dumps(made)], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr

    old, new = (RemBertTokenizer.from_file(tmp_path / name) for name in ("old/model", "vocabulary"))
    assert new.pieces()[:2500] == old.pieces() and new.vocab_size == 3000
    greek = list(text_files.read_lines(ROOT / "pipelines/sample/text/el.txt"))
    unknown = [sum((ids == t.unk_id).sum() for ids in t.encode(greek)) for t in (old, new)]
    assert unknown[0] > 1000 > 50 > unknown[1]

    before, grown, after = (
        safetensors.numpy.load_file(tmp_path / folder / "model.safetensors")
        for folder in ("old/model", "model", "grown/model")
    )
    for name, value in before.items():
        rows = 2500 if name in TABLES else None
        np.testing.assert_array_equal(grown[name][:rows], value, err_msg=name)
        assert after[name].shape == grown[name].shape
    for name in TABLES:
        assert len(grown[name]) == 3000 and np.any(after[name][2500:] != grown[name][2500:])
    config = RemBertConfig.from_json_file(tmp_path / "grown/model/config.json")
    assert config.vocab_size == 3000 and config.bos_token_id == new.cls_id
    lines = (tmp_path / "grown/metrics.jsonl").read_text().splitlines()
    heldout = [line for line in map(json.loads, lines) if line["kind"] == "heldout"]
    assert [line["step"] for line in heldout] == [0, 3] and "el" in heldout[0]["languages"]


def test_the_code_runs(tokenizer):
    config = RemBertConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=24, bos_token_id=2,
        eos_token_id=3,
    )  # fmt: skip
    model = RemBertForMaskedLM(config)
    optimizer = AdamW(0.1)
    optimizer.build(model.trainable_variables)
    names = {
        "model": model, "optimizer": optimizer, "old_tokenizer": tokenizer,
        "new_tokenizer": tokenizer,
    }  # fmt: skip
    (block,) = blocks("python")
    exec(compile(block, "growing_the_vocabulary.md", "exec"), names)
    assert names["grown"].config.vocab_size == 300 and names["longer"].config.vocab_size == 308
    assert names["optimizer"] is not optimizer and names["optimizer"].built


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", PAGE))
def test_links_lead_to_files(link):
    assert (ROOT / "docs" / link).exists()
