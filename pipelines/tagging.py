r"""Tagging: files with one word a line to features, and predictions back to one tag a word.

The layout is XTREME's: `word<TAB>tag`, or the word alone in a test file, with a blank line
between sentences. Words are tokenised one by one, each with SentencePiece's own space in front,
as XTREME does: the file's words decide, also in languages that are written without spaces. A
word's first piece carries its tag; its other pieces have weight 0.
"""

import dataclasses
import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines import features as features_lib
from rembert_tf.pipelines import tsv

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
    path: str | os.PathLike, labels: Sequence[str] | None = None
) -> list[TaggedSentence]:
    r"""Reads a tagging file.

    Any number of lines that are empty or hold nothing but spaces is one sentence boundary. A line
    that begins with a tab is an empty word, which keeps its place; so does a word that is a
    no-break space or another invisible character.

    Args:
        path: the file.
        labels: the label set; `None` accepts every tag.

    Returns:
        The sentences, in the order of the file.

    Raises:
        ValueError: a tag outside the label set, more than two columns, lines with and lines
            without a tag in one file, no word at all. The message begins with `path:line`.
    """
    numbered_lines = enumerate(tsv.read_lines(path), start=1)
    sentences = []
    for is_blank, group in itertools.groupby(numbered_lines, lambda line: not line[1].strip(" ")):
        if not is_blank:
            numbers, lines = zip(*group, strict=True)
            words, _, tags = zip(*(line.partition("\t") for line in lines), strict=True)
            tags = tuple(tag.strip(" ") for tag in tags)
            sentences.append(TaggedSentence(words, tags, numbers[0]))
    if not sentences:
        raise ValueError(f"{path}:1: the file holds no word.")
    _check_tags(path, sentences, labels)
    if not sentences[0].tags[0]:
        sentences = [dataclasses.replace(sentence, tags=None) for sentence in sentences]
    return sentences


def _check_tags(
    path: str | os.PathLike, sentences: Sequence[TaggedSentence], labels: Sequence[str] | None
) -> None:
    """Raises for the first line that `read_sentences` must refuse; a missing tag is empty here."""
    with_tags = bool(sentences[0].tags[0])
    known = None if labels is None else {*labels, ""}
    for sentence in sentences:
        for number, tag in enumerate(sentence.tags, start=sentence.line):
            if "\t" in tag:
                problem = f"a line must be `word<TAB>tag` or a word. Received: tag {tag!r}"
            elif bool(tag) != with_tags:
                first = f"line {sentences[0].line} has {'a' if with_tags else 'no'} tag"
                problem = f"all words must have a tag, or none. Received: tag {tag!r}, and {first}"
            elif known is not None and tag not in known:
                problem = features_lib.unknown_label(tag, labels)
            else:
                continue
            raise ValueError(f"{path}:{number}: {problem}")


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
        tags = [tag for sentence in sentences for tag in sentence.tags]
        label_of_position[word_positions] = features_lib.label_ids(tags, labels)
        sample_weights[word_positions] = 1.0
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
