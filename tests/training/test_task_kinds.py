import types

import pytest

from rembert_tf.pipelines import readers, xtreme
from rembert_tf.pipelines.classification import SentencePair
from rembert_tf.pipelines.tagging import TaggedSentence
from rembert_tf.training.task_kinds import KINDS, dev_score


def test_every_trainable_task_has_a_model_and_a_reader():
    for name in xtreme.TRAINABLE:
        task = xtreme.get_task(name)
        assert task.kind in KINDS
        reader = readers.get_reader(task.kind)
        assert bool(task.labels) == (task.kind != "question_answering")
        assert all(callable(field) for field in reader[:8])


def test_scores_by_hand():
    pairs = [SentencePair("a", "b", label, 1) for label in ("0", "1", "1", "0")]
    assert dev_score("accuracy", pairs, ["0", "1", "0", "0"], "en") == 0.75
    tags = [TaggedSentence(("a", "b", "c"), ("B-PER", "I-PER", "O"), 1),
            TaggedSentence(("d",), ("B-LOC",), 5)]  # fmt: skip
    predicted = [["B-PER", "O", "O"], ["B-LOC"]]
    assert dev_score("token_accuracy", tags, predicted, "en") == 0.75
    assert dev_score("span_f1", tags, predicted, "en") == pytest.approx(0.5)


def test_answers_are_scored_with_the_words_of_their_language():
    def question(*answers):
        return types.SimpleNamespace(answers=[types.SimpleNamespace(text=t) for t in answers])

    questions = [question("the red car"), question("x", "a blue car"), question("left")]
    answers = [types.SimpleNamespace(text=text) for text in ("red car", "blue", "right")]
    # 1, then 2 * 1 * 0.5 / 1.5, then 0; articles do not count.
    assert dev_score("answer_f1_corrected", questions, answers, "en") == pytest.approx(
        (1 + 2 / 3) / 3
    )
    chinese = [question("红色的车")], [types.SimpleNamespace(text="红色")]
    assert dev_score("answer_f1_corrected", *chinese, "zh") == pytest.approx(2 / 3)
