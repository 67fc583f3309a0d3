"""Predictions that need no model: what a score must beat before it means anything.

They have the form of a model's predictions, so they are written and scored like any other.
"""

import collections
from collections.abc import Iterable, Sequence

from rembert_tf.pipelines.classification import SentencePair
from rembert_tf.pipelines.tagging import TaggedSentence


def most_frequent_tag(
    train: Sequence[TaggedSentence], sentences: Sequence[TaggedSentence]
) -> list[list[str]]:
    """Gives every word the tag that most words of the training sentences have."""
    tag = _most_frequent(tag for sentence in train for tag in sentence.tags or ())
    return [[tag] * len(sentence.words) for sentence in sentences]


def most_frequent_tag_of_word(
    train: Sequence[TaggedSentence], sentences: Sequence[TaggedSentence]
) -> list[list[str]]:
    """Gives each word the tag that it most often has in the training sentences.

    Words that are not there get the tag that is the most frequent of all. Words are compared as
    they stand, capitals included.
    """
    default = _most_frequent(tag for sentence in train for tag in sentence.tags or ())
    tags_of_word = collections.defaultdict(list)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags or (), strict=False):
            tags_of_word[word].append(tag)
    tag_of_word = {word: _most_frequent(tags) for word, tags in tags_of_word.items()}
    return [[tag_of_word.get(word, default) for word in sentence.words] for sentence in sentences]


def majority_class(train: Sequence[SentencePair], pairs: Sequence[SentencePair]) -> list[str]:
    """Gives every pair the label that most training pairs have."""
    label = _most_frequent(pair.label for pair in train if pair.label is not None)
    return [label] * len(pairs)


def _most_frequent(names: Iterable[str]) -> str:
    """Returns the most frequent name; among equals, the one that comes first."""
    counts = collections.Counter(names)
    if not counts:
        raise ValueError("`train` must hold labelled examples. Received: none with a label")
    return counts.most_common(1)[0][0]
