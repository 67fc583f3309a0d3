"""Runs the examples in the docstrings of the training package."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["trainer", "adamw", "lamb", "retrieval_config"])
def test_docstring_examples_run(module):
    module = importlib.import_module(f"rembert_tf.training.{module}")
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0
