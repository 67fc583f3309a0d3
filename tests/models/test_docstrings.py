"""Every public layer and model shows how it is used, and the example works."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from keras import ops

import rembert_tf.layers
import rembert_tf.models
from rembert_tf.config import RemBertConfig
from rembert_tf.layers.embeddings import Embeddings

SIZES = ["rembert_tf.config", "rembert_tf.named_sizes"]
MODULES = SIZES + [
    f"{package.__name__}.{module.name}"
    for package in (rembert_tf.layers, rembert_tf.models)
    for module in pkgutil.iter_modules(package.__path__)
]
# Made to be inherited from.
BASES = {"PretrainedModel", "ClassificationModel"}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    shared = {"np": np, "ops": ops, "RemBertConfig": RemBertConfig, "Embeddings": Embeddings}
    runner = doctest.DocTestRunner()
    for example in doctest.DocTestFinder().find(module, globs={**vars(module), **shared}):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    if name not in SIZES:
        for class_name, found in inspect.getmembers(module, inspect.isclass):
            if found.__module__ == name and class_name not in BASES:
                assert ">>>" in found.__doc__, f"{class_name} has no example"
