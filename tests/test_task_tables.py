"""Pipelines and evaluation know XTREME's tasks apart from each other; what they know must agree."""

import pytest

from rembert_tf.evaluation import tasks as evaluation
from rembert_tf.pipelines import classification, xtreme

NO_TAG = "_"  # stands in gold files of udpos; no model predicts it


def test_what_can_be_trained_can_be_evaluated():
    assert set(xtreme.TASKS) <= set(evaluation.TASKS)


@pytest.mark.parametrize("name", sorted(set(xtreme.TASKS) & set(evaluation.TASKS)))
def test_tasks_agree(name):
    trained, evaluated = xtreme.TASKS[name], evaluation.TASKS[name]
    assert trained.name == evaluated.name == name
    assert trained.kind == evaluated.kind
    assert trained.languages == evaluated.languages
    assert len(set(trained.labels)) == len(trained.labels)
    assert evaluated.labels in (set(trained.labels), {*trained.labels, NO_TAG})
    aliases = {
        spelling: label
        for spelling, label in classification.LABEL_ALIASES.items()
        if label in trained.labels
    }
    assert evaluated.aliases == aliases
