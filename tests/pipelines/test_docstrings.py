"""The examples in the docstrings of the data side run as written."""

import doctest
import importlib

import pytest

MODULES = [
    "chains",
    "config",
    "manifest",
    "masked_batches",
    "masking",
    "packing",
    "piece_matching",
    "piece_spans",
    "pretraining",
    "record_index",
    "record_writer",
    "documents",
    "duplicates",
    "text_cleaning",
    "sampling",
    "spaceless_scripts",
    "tokenization",
    "unigram_training",
    "vocabulary",
    "vocabulary_measures",
    "vocabulary_merge",
    "vocabulary_sample",
    "word_pieces",
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
