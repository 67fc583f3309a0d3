"""The records of a run: all that the manifest names; or, where asked for, all of them that can be read."""

from typing import NamedTuple

import numpy as np
from absl import logging

from rembert_tf.pipelines import record_reader
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.manifest import MANIFEST_FILE, Manifest, Split
from rembert_tf.pipelines.record_index import RecordIndex
from rembert_tf.pipelines.record_reader import Run
from rembert_tf.pipelines.tokenization import RemBertTokenizer


class ReadableRecords(NamedTuple):
    """The records of a language that a run reads.

    Attributes:
        runs: Where they are.
        index: Lengths of their documents and sentences, in the order of the runs.
    """

    runs: list[Run]
    index: RecordIndex


def open_records(config: PretrainingDataConfig, tokenizer: RemBertTokenizer) -> Manifest:
    """Reads and checks the manifest of the records, restricted to the languages asked for.

    Raises:
        FileNotFoundError: There are no complete records.
        ValueError: They belong to another vocabulary; or a file has another size than the manifest says, and
            `skip_damaged` is off.
    """
    manifest = Manifest.read(config.records_dir).select(config.languages)
    manifest.check_vocabulary(tokenizer.fingerprint)
    if not config.skip_damaged:
        manifest.check_sizes()
    return manifest


def records_by_language(
    config: PretrainingDataConfig, manifest: Manifest, split: Split
) -> dict[str, ReadableRecords]:
    """Finds the records of each language; with `skip_damaged`, by reading all of them once.

    What is damaged is logged by file. The batches of a run are a function of what is left.

    Args:
        config: The settings.
        manifest: What `open_records` returned.
        split: "train" or "heldout".

    Returns:
        Records by language, in the order of the manifest.

    Raises:
        OSError: A file is absent or cannot be read.
        ValueError: An index does not fit the manifest; more than `max_damaged_share` of the documents, or all of a
            language, are damaged.
    """
    found = {}
    for language in manifest.languages:
        runs = [Run(path, 0, documents) for path, documents in manifest.shards(language, split)]
        record_reader.check_files(run.path for run in runs)
        found[language] = ReadableRecords(runs, _index(manifest, language, split))
    if not config.skip_damaged:
        return found
    total = sum(run.documents for records in found.values() for run in records.runs)
    readable = {language: _readable(records) for language, records in found.items()}
    damaged = total - sum(len(records.index.lengths) for records in readable.values())
    share = damaged / max(1, total)
    if damaged:
        logging.warning(
            "%s records: %d of %d documents (%.3f %%) are damaged and passed over.",
            split, damaged, total, 100 * share)  # fmt: skip
    if share > config.max_damaged_share:
        raise ValueError(
            f"{config.records_dir}: {damaged} of {total} {split} documents are damaged, more than `max_damaged_share` "
            f"allows. Received: max_damaged_share={config.max_damaged_share}"
        )
    for language, records in readable.items():
        if found[language].runs and not records.runs:
            raise ValueError(
                f"{config.records_dir}: all {split} documents of {language} are damaged."
            )
    return readable


def _index(manifest: Manifest, language: str, split: Split) -> RecordIndex:
    """Reads the index of a language and compares it with the manifest."""
    index = manifest.index(language, split)
    records = getattr(manifest.languages[language], split)
    counts = (
        len(index.lengths),
        len(index.sentence_lengths),
        int(index.lengths.sum(dtype=np.int64)),
    )
    expected = (
        sum(shard.documents for shard in records.shards), records.sentences, records.tokens)  # fmt: skip
    if counts != expected:
        raise ValueError(
            "{}: {} documents, {} sentences and {} pieces, where {} says {}, {} and {}.".format(
                manifest.folder / language / f"{split}-lengths.npy",
                *counts,
                MANIFEST_FILE,
                *expected,
            )
        )
    return index


def _readable(records: ReadableRecords) -> ReadableRecords:
    runs, kept = [], []
    for run in records.runs:
        readable = record_reader.readable_runs(run)
        can_be_read = np.zeros(run.documents, bool)
        for part in readable:
            can_be_read[part.first : part.first + part.documents] = True
        if not can_be_read.all():
            first = int(np.argmin(can_be_read))
            logging.warning(
                "%s: %d of %d documents are damaged, the first of them is record %d%s.",
                run.path, np.sum(~can_be_read), run.documents, first,
                record_reader.at_byte(run.path, first))  # fmt: skip
        runs += readable
        kept.append(can_be_read)
    if not runs:
        return ReadableRecords([], RecordIndex.of_lengths([]))
    return ReadableRecords(runs, records.index.keep(np.concatenate(kept)))
