import pytest

from rembert_tf.pipelines import baselines
from rembert_tf.pipelines.classification import SentencePair
from rembert_tf.pipelines.tagging import TaggedSentence

TRAIN = [
    TaggedSentence(("the", "run", "ended"), ("DET", "NOUN", "VERB"), 1),
    TaggedSentence(("they", "run", "run", "fast"), ("PRON", "VERB", "VERB", "ADV"), 5),
    TaggedSentence(("Run",), ("NOUN",), 10),
]
TEST = [TaggedSentence(("the", "run"), None, 1), TaggedSentence(("Run", "slowly"), None, 4)]


def test_most_frequent_tag():
    assert baselines.most_frequent_tag(TRAIN, TEST) == [["VERB", "VERB"], ["VERB", "VERB"]]


def test_most_frequent_tag_of_the_word():
    predicted = baselines.most_frequent_tag_of_word(TRAIN, TEST)
    assert predicted == [["DET", "VERB"], ["NOUN", "VERB"]]


def test_majority_class():
    train = [SentencePair("a", "b", label, 1) for label in ("neutral", "entailment", "entailment")]
    assert (
        baselines.majority_class(train, [SentencePair("c", "d", None, 1)] * 3) == ["entailment"] * 3
    )


def test_among_equals_the_first_one():
    train = [SentencePair("a", "b", label, 1) for label in ("neutral", "entailment")]
    assert baselines.majority_class(train, train) == ["neutral", "neutral"]


def test_training_files_need_labels():
    with pytest.raises(ValueError, match="`train` must hold labelled examples"):
        baselines.most_frequent_tag_of_word(TEST, TEST)
    with pytest.raises(ValueError, match="`train` must hold labelled examples"):
        baselines.majority_class([SentencePair("c", "d", None, 1)], [])
