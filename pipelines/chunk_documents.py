"""From a chunk of text to documents, in two steps that know nothing of other chunks: clean-up, splitting into pieces.

The local builder runs the steps in its own process or in several, Apache Beam on many machines; between the two steps,
duplicates may drop out.
"""

import collections
import functools
import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import duplicates, text_files
from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.documents import Document, split_long
from rembert_tf.pipelines.text_chunks import Chunk, TextPart
from rembert_tf.pipelines.text_cleaning import clean_up
from rembert_tf.pipelines.tokenization import RemBertTokenizer

DROPPED = ("blank", "too_long", "not_utf8", "duplicate", "without_pieces")  # why a line is


Vocabulary = tuple[str, str]  # path of the file, and its fingerprint


class CleanChunk(NamedTuple):
    """A chunk of clean text.

    Attributes:
        documents: The lines of each document.
        lines: How many lines were read, and dropped for what reason.
        first: The first line of those dropped as too_long or not_utf8, as "file:line".
        hashes: Of each line, or of each document, uint64; empty if duplicates stay.
    """

    documents: list[list[str]]
    lines: collections.Counter
    first: dict[str, str]
    hashes: np.ndarray


class BuiltChunk(NamedTuple):
    """The documents of a chunk.

    Attributes:
        documents: The documents.
        lines: How many lines were read, kept, and dropped for what reason.
        first: As in `CleanChunk`.
    """

    documents: list[Document]
    lines: collections.Counter
    first: dict[str, str]


def clean_chunk(chunk: Chunk, config: RecordsConfig) -> CleanChunk:
    """Decodes and cleans lines, and groups them into documents.

    Raises:
        ValueError: A line is not UTF-8, and `config.invalid_utf8` is "error".
    """
    lines, first = collections.Counter(), {}
    documents: list[list[str]] = []
    for part in chunk:
        texts = _texts(part, config, lines, first)
        for has_text, group in itertools.groupby(texts, bool):
            if not has_text:
                lines["blank"] += sum(1 for _ in group)
            elif config.line_is == "document":
                documents.extend([text] for text in group)
            else:
                documents.append(list(group))
    units: Iterable[str] = ()
    if config.drop_duplicates == "line":
        units = itertools.chain.from_iterable(documents)
    elif config.drop_duplicates == "document":
        units = ("\n".join(document) for document in documents)
    return CleanChunk(documents, lines, first, duplicates.hashes(units))


def keep_first(chunk: CleanChunk, is_first: np.ndarray, config: RecordsConfig) -> CleanChunk:
    """Drops what occurred before.

    Args:
        chunk: The chunk.
        is_first: Of each of its hashes, whether it occurs for the first time, bool.
        config: The settings.
    """
    before = sum(map(len, chunk.documents))
    if config.drop_duplicates == "document":
        kept = list(itertools.compress(chunk.documents, is_first))
    else:
        flags = iter(is_first)
        kept = [[line for line in document if next(flags)] for document in chunk.documents]
    dropped = before - sum(map(len, kept))
    return chunk._replace(
        documents=kept, lines=chunk.lines + collections.Counter(duplicate=dropped)
    )


def split_into_pieces(
    chunk: CleanChunk, config: RecordsConfig, vocabulary: Vocabulary
) -> BuiltChunk:
    """Turns lines into piece ids, and documents that are too long into several."""
    texts = [line.encode() for document in chunk.documents for line in document]
    pieces = _load_tokenizer(*vocabulary).tokenize(tf.constant(texts, tf.string, [len(texts)]))
    values, lengths = pieces.values.numpy(), iter(np.diff(pieces.row_splits.numpy()).tolist())
    documents, start, kept = [], 0, 0
    for document in chunk.documents:
        filled = [length for length in itertools.islice(lengths, len(document)) if length]
        kept += len(filled)
        for part in split_long(filled, config.max_document_tokens):
            end = start + sum(part)
            documents.append(Document.of(values[start:end], part))
            start = end
    lines = chunk.lines + collections.Counter(kept=kept, without_pieces=len(texts) - kept)
    return BuiltChunk(documents, lines, chunk.first)


def build_chunk(chunk: Chunk, config: RecordsConfig, vocabulary: Vocabulary) -> BuiltChunk:
    """Does both steps; for records in which duplicates stay."""
    return split_into_pieces(clean_chunk(chunk, config), config, vocabulary)


def use_one_thread():
    """Makes TensorFlow use one thread in a process that is one of many."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


@functools.lru_cache(maxsize=1)
def _load_tokenizer(path: str, fingerprint: str) -> RemBertTokenizer:
    """Loads the tokenizer, once in each process."""
    tokenizer = RemBertTokenizer.from_file(path)
    if tokenizer.fingerprint != fingerprint:
        raise ValueError(f"{path}: the vocabulary file has changed during the run.")
    return tokenizer


def _texts(
    part: TextPart, config: RecordsConfig, lines: collections.Counter, first: dict[str, str]
) -> list[str]:
    """Returns the lines of a part, clean and without white space around; lines that drop out are counted."""
    rows = part.content.split(b"\n")
    if not rows[-1]:
        rows.pop()  # the content ends with a line feed
    lines["read"] += len(rows)
    clean = clean_up if config.unicode_clean_up else str
    try:
        if max(map(len, rows), default=0) <= config.max_line_bytes:
            text = text_files.decode(b"\n".join(rows), part.path, part.first_line)
            return [line.strip() for line in clean(text).split("\n")] if rows else []
    except ValueError:
        if config.invalid_utf8 == "error":
            raise
    texts = []
    for number, row in enumerate(rows, part.first_line):
        reason = "too_long"
        if len(row) <= config.max_line_bytes:
            try:
                texts.append(clean(text_files.decode(row, part.path, number)).strip())
                continue
            except ValueError:
                if config.invalid_utf8 == "error":
                    raise
                reason = "not_utf8"
        lines[reason] += 1
        first.setdefault(reason, f"{part.path}:{number}")
    return texts
