"""Records read from end to end and compared with what their manifest says."""

import hashlib
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.pipelines import chunk_documents
from rembert_tf.pipelines.manifest import COUNTS_FILE, SPLITS, Manifest, Shard, Split
from rembert_tf.pipelines.ordered_map import Map, ordered_map
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_FRAMING = 16  # bytes of a TFRecord beside its content: length, two checksums


class ShardToVerify(NamedTuple):
    """A record file and what it must hold.

    Attributes:
        path: The file.
        shard: What the manifest says of it.
        lengths: Pieces of each of its documents, int32 [documents].
        sentence_lengths: Pieces of each of their sentences, int32 [sentences].
        is_text: Whether an id may stand in a document, bool [V].
    """

    path: pathlib.Path
    shard: Shard
    lengths: np.ndarray
    sentence_lengths: np.ndarray
    is_text: np.ndarray


def verify_records(folder: str | os.PathLike, num_processes: int = 1) -> Manifest:
    """Reads all records of a folder: sizes, checksums, framing, counts, lengths, ids, unigram counts, lines.

    Args:
        folder: What `rembert-build-data` wrote.
        num_processes: Processes that read.

    Returns:
        The manifest.

    Raises:
        FileNotFoundError: There is no manifest.
        ValueError: Something is damaged. Each damage is logged, with file and offset; the error names the first.
    """
    manifest = Manifest.read(folder)
    tokenizer = RemBertTokenizer.from_file(manifest.folder)
    manifest.check_vocabulary(tokenizer.fingerprint)
    is_text = np.zeros(tokenizer.vocab_size, bool)
    is_text[tokenizer.ordinary_ids] = is_text[tokenizer.unk_id] = True
    found = []
    with ordered_map(num_processes, __name__, chunk_documents.use_one_thread) as parallel:
        for language in manifest.languages:
            problems = list(_problems(manifest, language, is_text, parallel))
            for problem in problems:
                logging.error("%s", problem)
            if not problems:
                logging.info("%s: right", language)
            found.extend(problems)
    if found:
        raise ValueError(f"{manifest.folder}: {len(found)} damages, the first: {found[0]}")
    logging.info("%s: everything is as the manifest says", manifest.folder)
    return manifest


def verify_shard(task: ShardToVerify) -> tuple[list[str], np.ndarray]:
    """Reads one record file.

    Returns:
        What is wrong, and how often each id occurs, int64 [V].
    """
    problems = []
    counts = np.zeros(len(task.is_text), np.int64)
    if not task.path.is_file():
        return [f"{task.path}: the manifest names this file, and it is absent"], counts
    with open(task.path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    size = task.path.stat().st_size
    if size != task.shard.bytes:
        problems.append(f"{task.path}: {size} bytes, where the manifest says {task.shard.bytes}")
    elif digest != task.shard.sha256:
        problems.append(
            f"{task.path}: sha256 {digest}, where the manifest says {task.shard.sha256}"
        )
    number = offset = sentences = 0
    records = tf.data.TFRecordDataset(str(task.path)).as_numpy_iterator()
    while True:
        place = f"{task.path}: record {number}, at byte {offset}"
        try:
            record = next(records, None)
            if record is None:
                break
            ids, lengths = _parse(record)
            _check_document(task, number, sentences, ids, lengths)
        except tf.errors.DataLossError:
            return [*problems, f"{place}: damaged"], counts
        except ValueError as error:
            return [*problems, f"{place}: {error}"], counts
        np.add.at(counts, ids, 1)
        number, sentences = number + 1, sentences + len(lengths)
        offset += _FRAMING + len(record)
    if number != task.shard.documents:
        problems.append(f"{place}: the end, where there must be {task.shard.documents} records")
    return problems, counts


def _parse(record: bytes) -> tuple[np.ndarray, np.ndarray]:
    try:
        feature = tf.train.Example.FromString(record).features.feature
    except Exception as error:  # protobuf's DecodeError, whose class moves between versions
        raise ValueError("not a tf.train.Example") from error
    names = ("input_ids", "sentence_lengths")
    ids, lengths = (np.array(feature[name].int64_list.value, np.int64) for name in names)
    return ids, lengths


def _check_document(
    task: ShardToVerify, number: int, sentences: int, ids: np.ndarray, lengths: np.ndarray
):
    wanted = task.sentence_lengths[sentences : sentences + len(lengths)]
    if not len(ids) or lengths.sum() != len(ids):
        raise ValueError(f"{len(ids)} pieces in sentences of {lengths.sum()}")
    if len(ids) not in task.lengths[number : number + 1] or not np.array_equal(lengths, wanted):
        raise ValueError("not the document that the index says")
    if ids.min() < 0 or ids.max() >= len(task.is_text) or not task.is_text[ids].all():
        raise ValueError("an id that is no piece of text")


def _problems(
    manifest: Manifest, language: str, is_text: np.ndarray, parallel: Map
) -> Iterator[str]:
    records, folder = manifest.languages[language], manifest.folder / language
    kept, dropped = records.lines["kept"], sum(records.lines["dropped"].values())
    if records.lines["read"] != kept + dropped:
        yield f"{folder}: of {records.lines['read']} lines, {kept} were kept and {dropped} dropped"
    if kept != records.train.sentences + records.heldout.sentences:
        yield f"{folder}: {kept} lines were kept, and the records have another number of sentences"
    named = {shard.file for split in SPLITS for shard in getattr(records, split).shards}
    for path in sorted(set(folder.glob("*.tfrecord")) - {folder / name for name in named}):
        yield f"{path}: the manifest does not name this file"
    for split in SPLITS:
        try:
            tasks = _tasks(manifest, language, split, is_text)
        except (OSError, ValueError) as error:
            yield str(error)
            continue
        counts = np.zeros(len(is_text), np.int64)
        damaged = False
        for problems, in_shard in parallel(verify_shard, tasks):
            yield from problems
            damaged |= bool(problems)
            counts += in_shard
        if split == "train" and not damaged:
            if not np.array_equal(counts, manifest.unigram_counts(language)):
                yield f"{folder / COUNTS_FILE}: not the counts of the records"


def _tasks(
    manifest: Manifest, language: str, split: Split, is_text: np.ndarray
) -> list[ShardToVerify]:
    """Lists the record files of a split, each with its part of the index."""
    said = getattr(manifest.languages[language], split)
    index = manifest.index(language, split)
    found = (len(index.lengths), len(index.sentence_lengths), index.lengths.sum())
    if found != (said.documents, said.sentences, said.tokens):
        raise ValueError(
            f"{manifest.folder / language}: documents, sentences and pieces of {split} are {said.documents}, "
            f"{said.sentences}, {said.tokens} in the manifest and {', '.join(map(str, found))} in the index"
        )
    documents = np.cumsum([0, *(shard.documents for shard in said.shards)])
    sentences = np.append(0, np.cumsum(index.sentences_per_document()))[documents]
    return [
        ShardToVerify(
            path=manifest.folder / language / shard.file,
            shard=shard,
            lengths=index.lengths[documents[number] : documents[number + 1]],
            sentence_lengths=index.sentence_lengths[sentences[number] : sentences[number + 1]],
            is_text=is_text,
        )
        for number, shard in enumerate(said.shards)
    ]
