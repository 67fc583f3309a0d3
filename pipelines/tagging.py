"""Tagging: tagged sentences to features, and predictions back to one tag a word.

Words are tokenised one by one, each with SentencePiece's own space in front, as XTREME does: the
file's words decide, also in languages that are written without spaces. A word's first piece carries
its tag; its other pieces have weight 0.
"""

import dataclasses
import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines import features as features_lib
from rembert_tf.pipelines import tsv, word_files
from rembert_tf.pipelines.conllu import NO_TAG

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedSentence:
    """The words of one sentence, their tags (`None` in a test file), and its first line."""

    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    line: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingFeatures(features_lib.Features):
    """Rows of `[CLS] pieces [SEP]`, and where the words stand in them.

    A sentence that is too long for one row takes several, cut between words. Rows and words are
    both in the order of the text, so joining the rows again needs nothing but the two arrays.

    Attributes:
        word_positions: position of each word's first piece among all positions, int64 `[W]`.
        words_of_sentence: how many words each sentence has, int64 `[N]`.
    """

    word_positions: np.ndarray
    words_of_sentence: np.ndarray


def read_sentences(
    path: str | os.PathLike, labels: Sequence[str] | None = None, *, language: str = ""
) -> list[TaggedSentence]:
    r"""Reads a file of words in any of the formats that `word_files.py` lists.

    A line that begins with a tab is an empty word, which keeps its place; so does a word that is a
    no-break space or another invisible character.

    Args:
        path: the file.
        labels: the label set; `None` accepts every tag. The tag `_` stands for none.
        language: code of the language, which CoNLL-U's multiword tokens depend on.

    Returns:
        The sentences, in the order of the file.

    Raises:
        ValueError: a tag outside the label set, another number of columns, lines with and lines
            without a tag in one file, no word at all. The message begins with `path:line`.
    """
    parsed, form = word_files.parse(path, tsv.read_lines(path), language)
    _check_tags(path, parsed, labels)
    tagged = any(line.tag not in ("", NO_TAG) for sentence in parsed for line in sentence)
    sentences = [
        TaggedSentence(
            tuple(line.word for line in sentence),
            tuple(line.tag for line in sentence) if tagged else None,
            sentence[0].number,
        )
        for sentence in parsed
    ]
    logging.info(
        "%s: %d sentences, %d words, %s tags, %s", path, len(sentences),
        sum(map(len, parsed)), "with" if tagged else "no", form,
    )  # fmt: skip
    return sentences


def _check_tags(
    path: str | os.PathLike,
    sentences: Sequence[Sequence[word_files.WordLine]],
    labels: Sequence[str] | None,
) -> None:
    """Raises for the first line that `read_sentences` must refuse."""
    first = sentences[0][0] if sentences else None
    known = None if labels is None else {*labels, NO_TAG, ""}
    for line in itertools.chain.from_iterable(sentences):
        if bool(line.tag) != bool(first.tag):
            has = f"line {first.number} has {'a' if first.tag else 'no'} tag"
            problem = f"all words must have a tag, or none. Received: tag {line.tag!r}, and {has}"
        elif known is not None and line.tag not in known:
            problem = features_lib.unknown_label(line.tag, labels)
        else:
            continue
        raise ValueError(f"{path}:{line.number}: {problem}")


def read_text(lines: Sequence[str]) -> list[TaggedSentence]:
    """Makes one sentence of each line of plain text, its words separated by white space."""
    return [
        TaggedSentence(tuple(line.split()), None, number)
        for number, line in enumerate(lines, start=1)
    ]


def inputs_of(sentence: TaggedSentence) -> tuple[str, ...]:
    """Returns what a model sees of a sentence: its words, as one group."""
    return (" ".join(sentence.words),)


def labels_of(sentences: Sequence[TaggedSentence]) -> set[str]:
    """Returns all tags that occur."""
    return {tag for sentence in sentences for tag in sentence.tags or ()} - {NO_TAG}


def make_features(
    sentences: Sequence[TaggedSentence],
    tokenizer: "RemBertTokenizer",
    labels: Sequence[str],
    max_seq_length: int,
) -> TaggingFeatures:
    """Makes rows of at most `max_seq_length` positions.

    A word without any piece (an empty one, an invisible character) gets the unknown piece. A word
    longer than a whole row is cut to it.

    Args:
        sentences: all with tags, or all without.
        tokenizer: the tokenizer.
        labels: the label set, in the order of its ids.
        max_seq_length: longest row, `[CLS]` and `[SEP]` included; at least 3.

    Returns:
        The features.

    Raises:
        ValueError: `max_seq_length` below 3, a tag outside the label set, or sentences with and
            sentences without tags.
    """
    if max_seq_length < 3:
        raise ValueError(
            "`max_seq_length` must be at least 3: [CLS], one piece, [SEP]. "
            f"Received: max_seq_length={max_seq_length}"
        )
    with_tags = sum(sentence.tags is not None for sentence in sentences)
    if with_tags not in (0, len(sentences)):
        raise ValueError(
            "`sentences` must all have tags, or none. "
            f"Received: {with_tags} of {len(sentences)} with tags"
        )

    words = [word for sentence in sentences for word in sentence.words]
    words_of_sentence = np.array([len(sentence.words) for sentence in sentences], np.int64)
    pieces = features_lib.RaggedPieces(tokenizer, words, if_empty=tokenizer.unk_id)
    limit = max_seq_length - 2
    lengths = np.minimum(pieces.lengths, limit)
    first_words = _first_word_of_rows(lengths, words_of_sentence, limit)

    # Row r holds [CLS], the pieces of its words, [SEP]: so piece p of row r moves by 2 r + 1.
    piece_splits = features_lib.row_splits(lengths)
    words_of_row = np.diff(first_words, append=len(words))
    row_of_word = np.repeat(np.arange(len(first_words)), words_of_row)
    row_splits = piece_splits[np.append(first_words, len(words))] + 2 * np.arange(
        len(first_words) + 1
    )
    word_positions = piece_splits[:-1] + 2 * row_of_word + 1
    input_ids = np.empty(row_splits[-1], np.int32)
    input_ids[features_lib.ranges(word_positions, lengths)] = pieces.cut(lengths)
    input_ids[row_splits[:-1]] = tokenizer.cls_id
    input_ids[row_splits[1:] - 1] = tokenizer.sep_id

    label_of_position = np.zeros(len(input_ids), np.int32)
    sample_weights = np.zeros(len(input_ids), np.float32)
    if with_tags:
        tags = np.array([tag for sentence in sentences for tag in sentence.tags], object)
        tagged = tags != NO_TAG
        label_of_position[word_positions[tagged]] = features_lib.label_ids(tags[tagged], labels)
        sample_weights[word_positions[tagged]] = 1.0
    logging.info(
        "%d sentences, %d words, %d positions in %d rows; %d words without a piece, %d words cut",
        len(sentences), len(words), len(input_ids), len(first_words),
        pieces.num_empty, np.sum(pieces.lengths > limit),
    )  # fmt: skip
    return TaggingFeatures(
        input_ids=input_ids,
        token_type_ids=np.zeros_like(input_ids),
        row_splits=row_splits,
        labels=label_of_position,
        sample_weights=sample_weights,
        pad_id=tokenizer.pad_id,
        label_names=tuple(labels),
        labels_belong_to="positions",
        outputs_belong_to="positions",
        word_positions=word_positions,
        words_of_sentence=words_of_sentence,
    )


def _first_word_of_rows(
    lengths: np.ndarray, words_of_sentence: np.ndarray, limit: int
) -> np.ndarray:
    """Returns the number of each row's first word: a row takes as many words as fit, int64 `[R]`.

    Args:
        lengths: pieces of each word, from 1 to `limit`, int64 `[W]`.
        words_of_sentence: words of each sentence, int64 `[N]`.
        limit: how many pieces a row holds.
    """
    splits = features_lib.row_splits(lengths)
    first_words = []
    first = 0
    for end in np.cumsum(words_of_sentence).tolist():
        while first < end:
            first_words.append(first)
            # The last word whose end lies within `limit` pieces of this row's start.
            fits = np.searchsorted(splits, splits[first] + limit, side="right") - 1
            first = min(end, int(fits))
    return np.array(first_words, np.int64)


def predicted_tags(features: TaggingFeatures, predictions: np.ndarray) -> list[list[str]]:
    """Returns one tag for each word of each sentence, in the order of the file.

    Args:
        features: the features that were predicted.
        predictions: for each position, the label's id, int `[S]`, or logits, float `[S, C]`.

    Returns:
        One list of tags a sentence.

    Raises:
        ValueError: the predictions are not one a position.
    """
    ids = features_lib.predicted_ids(predictions, features.row_splits[-1])
    tags = np.array(features.label_names, object)[ids[features.word_positions]].tolist()
    splits = features_lib.row_splits(features.words_of_sentence).tolist()
    return [tags[start:end] for start, end in itertools.pairwise(splits)]


def format_line(tags: Sequence[str]) -> str:
    """Writes the tags of one sentence as one line, for plain text."""
    return " ".join(tags)


def write_predictions(path: str | os.PathLike, sentences: Sequence[Sequence[str]]) -> None:
    """Writes one tag a line and a blank line between sentences, as XTREME's `evaluate.py` reads.

    Raises:
        ValueError: a sentence without a tag, which this layout cannot hold.
    """
    for number, tags in enumerate(sentences, start=1):
        if not tags:
            raise ValueError(f"each sentence must have a tag. Received: none in sentence {number}")
    lines = [line for tags in sentences for line in (*tags, "")]
    tsv.write_lines(path, lines[:-1])
