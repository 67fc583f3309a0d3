"""The scripts of examples/ run as their docstrings say (demo.py has a test of its own)."""

import pathlib
import re
import subprocess
import sys

import pytest

from rembert_tf import RemBertForTokenClassification, RemBertTokenizer, load_pretrained

SCRIPT = pathlib.Path(__file__).parent.parent / "examples" / "finetune_with_fit.py"


def run(*arguments):
    result = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return float(re.search(r"^dev accuracy (\d\.\d+)$", result.stdout, flags=re.M)[1])


def test_finetuning_with_keras_alone(tmp_path):
    accuracy = run(tmp_path / "first")
    assert accuracy > 0.4  # the most frequent tag has 21 %
    model, report = load_pretrained(
        tmp_path / "first/model", RemBertForTokenClassification, strict=True
    )
    assert not report.skipped and len(model.config.id2label) == 17
    tokenizer = RemBertTokenizer.from_file(tmp_path / "first/model")
    assert tokenizer.vocab_size == model.config.vocab_size == 1000


@pytest.mark.slow
def test_finetuning_goes_on_from_a_folder(tmp_path):
    """The second run starts where the first one ended, not from random weights."""
    accuracy = run(tmp_path / "first")
    assert run(tmp_path / "second", tmp_path / "first/model") > accuracy
