import doctest

import pytest

from rembert_tf.evaluation import (
    accuracy,
    config,
    label_folder,
    languages,
    markdown_tables,
    question_answering,
    retrieval,
    retrieval_files,
    scores,
    tagging,
    tasks,
    thresholds,
)

MODULES = (
    accuracy, config, label_folder, languages, markdown_tables, question_answering, retrieval, retrieval_files,
    scores, tagging, tasks, thresholds,
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_are_true(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
