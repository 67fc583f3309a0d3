"""Documents: how long they may be, which are held out, and the bytes of their records."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.manifest import Split


class Document(NamedTuple):
    """A document of piece ids.

    Attributes:
        input_ids: The pieces of all its sentences, int32 [pieces].
        sentence_lengths: Pieces of each sentence, int32 [sentences].
        record: Both as a serialized `tf.train.Example`.

    Example:
        >>> document = Document.of([5, 6, 7, 8], [3, 1])  # two sentences
        >>> [part.input_ids.tolist() for part in document.cut(1)]
        [[5, 6, 7], [8]]
    """

    input_ids: np.ndarray
    sentence_lengths: np.ndarray
    record: bytes

    @classmethod
    def of(cls, input_ids: Sequence[int], sentence_lengths: Sequence[int]) -> "Document":
        """Serializes a document, the same bytes each time.

        Args:
            input_ids: int32 [pieces].
            sentence_lengths: int32 [sentences].
        """
        input_ids = np.asarray(input_ids, np.int32)
        sentence_lengths = np.asarray(sentence_lengths, np.int32)
        example = tf.train.Example()
        features = example.features.feature
        features["input_ids"].int64_list.value.extend(input_ids.tolist())
        features["sentence_lengths"].int64_list.value.extend(sentence_lengths.tolist())
        return cls(input_ids, sentence_lengths, example.SerializeToString(deterministic=True))

    def cut(self, sentences: int) -> tuple["Document", "Document"]:
        """Returns the first `sentences` sentences and the others as two documents."""
        pieces = int(self.sentence_lengths[:sentences].sum())
        return (
            Document.of(self.input_ids[:pieces], self.sentence_lengths[:sentences]),
            Document.of(self.input_ids[pieces:], self.sentence_lengths[sentences:]),
        )


def split_long(sentence_lengths: Iterable[int], max_tokens: int) -> Iterator[list[int]]:
    """Splits a document where it gets too long.

    Args:
        sentence_lengths: Pieces of each sentence.
        max_tokens: A document ends in front of the sentence that would take it past this number of pieces; a single
            longer sentence is a document by itself.

    Yields:
        The sentence lengths of each document.
    """
    document: list[int] = []
    size = 0
    for length in sentence_lengths:
        if document and size + length > max_tokens:
            yield document
            document, size = [], 0
        document.append(length)
        size += length
    if document:
        yield document


def is_held_out(number: int, heldout_fraction: float) -> bool:
    """Says whether a document of a language with several is held out.

    With k = 1 / fraction, rounded, the second document and every k-th after it are.

    Args:
        number: Number of the document in its language, from 0.
        heldout_fraction: Share to hold out, 0 to 0.5.
    """
    return bool(heldout_fraction) and number % round(1 / heldout_fraction) == 1


def hold_out(
    document: Document, number: int, documents: int, heldout_fraction: float
) -> Iterator[tuple[Split, Document]]:
    """Says whether a document is trained on or held out; cuts it if it is the only one of its language.

    Args:
        document: The document.
        number: Its number in its language, from 0.
        documents: How many the language has; what matters is whether there is more than one.
        heldout_fraction: Share to hold out, 0 to 0.5. Of a single document, the last sentences are held out, that share
            of them and at least one, unless it has only one.

    Yields:
        "train" or "heldout", and the document or a part of it.
    """
    sentences = len(document.sentence_lengths)
    if heldout_fraction and documents == 1 and sentences > 1:
        parts = document.cut(sentences - max(1, round(sentences * heldout_fraction)))
        yield from zip(("train", "heldout"), parts, strict=True)
    else:
        yield ("heldout" if is_held_out(number, heldout_fraction) else "train"), document


def split_documents(
    stream: Iterable[Document], heldout_fraction: float
) -> Iterator[tuple[Split, Document]]:
    """Does `hold_out` for all documents of a language."""
    stream = iter(stream)
    first_two = list(itertools.islice(stream, 2))
    for number, document in enumerate(itertools.chain(first_two, stream)):
        yield from hold_out(document, number, len(first_two), heldout_fraction)
