"""The examples in the docstrings of the data side run as written."""

import doctest
import importlib

import pytest

MODULES = [
    "config",
    "manifest",
    "masking",
    "packing",
    "piece_matching",
    "pretraining",
    "records",
    "sampling",
    "tokenization",
    "vocabulary_merge",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tokenizer, vocabulary_file, records_folder, tmp_path):
    module = importlib.import_module(f"rembert_tf.pipelines.{name}")
    names = dict(
        tokenizer=tokenizer,
        vocabulary_file=vocabulary_file,
        records_folder=str(records_folder),
        empty_folder=tmp_path,
    )
    result = doctest.testmod(module, extraglobs=names)
    assert result.attempted > 0 and result.failed == 0
