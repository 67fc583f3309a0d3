import doctest

import pytest

from rembert_tf.evaluation import accuracy, config, scores, tagging, tasks


@pytest.mark.parametrize("module", [accuracy, config, scores, tagging, tasks])
def test_examples_in_docstrings_are_true(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
