"""From text files to records: read in chunks, clean up, split into pieces, write; what was cut short is resumed.

    files ─► chunks ─► clean lines ─► (no duplicates) ─► documents of pieces ─► train or held out ─► shards
             1 process  many           1                  many                   1

Every step is a function of the chunk alone, or goes through the chunks in order, so the records are the same for any
number of processes; `beam_builder.py` does the same steps on many machines. A language that is complete has its final
name (`language_folder.py`), and a second run builds what is missing.
"""

import collections
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import tqdm
from absl import logging

from rembert_tf import __version__
from rembert_tf.pipelines import (
    chunk_documents,
    language_folder,
    manifest,
    text_chunks,
    text_files,
)
from rembert_tf.pipelines.chunk_documents import BuiltChunk, CleanChunk, Vocabulary
from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.documents import Document, split_documents
from rembert_tf.pipelines.duplicates import SeenHashes
from rembert_tf.pipelines.ordered_map import Map, ordered_map
from rembert_tf.pipelines.record_writer import SplitWriter
from rembert_tf.pipelines.text_chunks import Chunk
from rembert_tf.pipelines.tokenization import RemBertTokenizer

Inputs = Mapping[str, Sequence[pathlib.Path]]


def build_records(config: RecordsConfig) -> manifest.Manifest:
    """Builds the records of all languages, and `manifest.json` at the end.

    Args:
        config: The settings.

    Returns:
        The manifest.

    Raises:
        FileNotFoundError: Input folder or vocabulary are absent.
        ImportError: `beam_options` are given, and Apache Beam is not installed.
        OSError: The disk is full or cannot be written, or a process was killed.
        ValueError: The text is unusable (file and line are named), the output folder is the input folder or has
            something else under the name of a language, or it holds records of other settings and `overwrite` is
            off.
    """
    _require_two_folders(config)
    inputs = text_files.find_inputs(config.input_dir, config.languages)
    tokenizer = RemBertTokenizer.from_file(config.tokenizer)
    folder = pathlib.Path(config.output_dir)
    settings = {language: _settings(config, tokenizer, files) for language, files in inputs.items()}
    complete = language_folder.read_complete(folder, settings, config.overwrite)
    missing = {language: files for language, files in inputs.items() if language not in complete}
    logging.info("%d of %d languages are complete already", len(complete), len(inputs))
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / manifest.MANIFEST_FILE).unlink(missing_ok=True)
        tokenizer.save(folder)
    for language in inputs:
        language_folder.remove_leftovers(folder, language)
    if config.beam_options and missing:
        try:
            from rembert_tf.pipelines import beam_builder
        except ModuleNotFoundError as error:
            raise ImportError(
                "`beam_options` need Apache Beam: pip install 'rembert_tf[beam]'"
            ) from error
        built = beam_builder.build_languages(missing, settings, config, tokenizer)
    else:
        built = _build_languages(missing, settings, config, tokenizer)
    for number, (language, records) in enumerate(built, len(complete) + 1):
        _report(f"{language} ({number} of {len(inputs)})", records)
        complete[language] = records
    result = manifest.Manifest(
        folder=folder,
        tool=f"rembert_tf {__version__}",
        vocabulary_sha256=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        languages={language: complete[language] for language in inputs},
    )
    result.write()
    return result


def _require_two_folders(config: RecordsConfig):
    """Keeps text in sub-folders, which have the names that the records would get, from being replaced."""
    if pathlib.Path(config.input_dir).resolve() == pathlib.Path(config.output_dir).resolve():
        raise ValueError(
            "`output_dir` must be another folder than `input_dir`. Received: "
            f"input_dir={config.input_dir!r}, output_dir={config.output_dir!r}"
        )


def _settings(
    config: RecordsConfig, tokenizer: RemBertTokenizer, files: Sequence[pathlib.Path]
) -> dict:
    """Collects what decides the bytes of a language's records."""
    sizes = [[file.name, file.stat().st_size] for file in files]
    names = (
        "line_is", "unicode_clean_up", "drop_duplicates", "invalid_utf8", "max_line_bytes",
        "heldout_fraction", "max_document_tokens", "tokens_per_shard",
    )  # fmt: skip
    return {
        "vocabulary_sha256": tokenizer.fingerprint,
        **{name: getattr(config, name) for name in names},
        "input_files": len(files),
        "input_bytes": sum(size for _, size in sizes),
        "input_names_and_sizes_sha256": hashlib.sha256(json.dumps(sizes).encode()).hexdigest(),
    }


def _build_languages(
    inputs: Inputs, settings: dict[str, dict], config: RecordsConfig, tokenizer: RemBertTokenizer
) -> Iterator[tuple[str, manifest.LanguageRecords]]:
    """Builds one language after the other; the chunks of all of them go through one stream."""
    folder = pathlib.Path(config.output_dir)
    vocabulary = (config.tokenizer, tokenizer.fingerprint)
    with ordered_map(
        config.num_processes, chunk_documents.__name__, chunk_documents.use_one_thread
    ) as parallel:
        stream = _built_chunks(inputs, config, vocabulary, parallel)
        for language, items in itertools.groupby(stream, key=lambda item: item[0]):
            with (
                language_folder.building(folder, language) as incomplete,
                tqdm.tqdm(desc=language, unit=" lines", disable=None, leave=False) as progress,
            ):
                records = _write_language(
                    incomplete,
                    language,
                    (chunk for _, chunk in items),
                    settings[language],
                    config,
                    tokenizer.vocab_size,
                    progress,
                )
            yield language, records


def _built_chunks(
    inputs: Inputs, config: RecordsConfig, vocabulary: Vocabulary, parallel: Map
) -> Iterator[tuple[str, BuiltChunk]]:
    def in_parallel(function, stream, **arguments):
        function = functools.partial(function, config=config, **arguments)
        return parallel(functools.partial(_with_language, function), stream)

    chunks = _read(inputs, config)
    if config.drop_duplicates == "none":
        return in_parallel(chunk_documents.build_chunk, chunks, vocabulary=vocabulary)
    clean = in_parallel(chunk_documents.clean_chunk, chunks)
    unique = _without_duplicates(clean, config)
    return in_parallel(chunk_documents.split_into_pieces, unique, vocabulary=vocabulary)


def _with_language(function, item):
    language, value = item
    return language, function(value)


def _read(inputs: Inputs, config: RecordsConfig) -> Iterator[tuple[str, Chunk]]:
    for language, files in inputs.items():
        yield language, []  # ends the language before it, whatever becomes of this one
        for unit in text_chunks.reading_units(files):
            for chunk in text_chunks.read_chunks(unit, config.line_is, config.max_line_bytes):
                yield language, chunk


def _without_duplicates(
    stream: Iterable[tuple[str, CleanChunk]], config: RecordsConfig
) -> Iterator[tuple[str, CleanChunk]]:
    for language, chunks in itertools.groupby(stream, key=lambda item: item[0]):
        seen = SeenHashes()
        for _, chunk in chunks:
            yield language, chunk_documents.keep_first(chunk, seen.add(chunk.hashes), config)


def _write_language(
    folder: pathlib.Path,
    language: str,
    chunks: Iterable[BuiltChunk],
    settings: dict,
    config: RecordsConfig,
    vocab_size: int,
    progress: tqdm.tqdm,
) -> manifest.LanguageRecords:
    lines, first = collections.Counter(), {}
    writers = {
        split: SplitWriter(folder, split, config.tokens_per_shard) for split in manifest.SPLITS
    }
    unigrams = np.zeros(vocab_size, np.int64)

    def documents() -> Iterator[Document]:
        for chunk in chunks:
            lines.update(chunk.lines)
            first.update(
                {reason: place for reason, place in chunk.first.items() if reason not in first}
            )
            progress.update(chunk.lines["read"])
            yield from chunk.documents

    for split, document in split_documents(documents(), config.heldout_fraction):
        writers[split].write(document)
        if split == "train":
            np.add.at(unigrams, document.input_ids, 1)
    splits = {split: writer.close() for split, writer in writers.items()}
    return language_folder.finish(folder, language, settings, lines, first, splits, unigrams)


def _report(place: str, built: manifest.LanguageRecords):
    logging.info(
        "%s: %d sentences, %d documents, %d pieces; %d documents held out; lines dropped: %s",
        place,
        built.train.sentences + built.heldout.sentences,
        built.train.documents + built.heldout.documents,
        built.train.tokens + built.heldout.tokens,
        built.heldout.documents,
        ", ".join(f"{count} {reason}" for reason, count in built.lines["dropped"].items() if count)
        or "none",
    )
