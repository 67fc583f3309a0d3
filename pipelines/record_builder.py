"""From text files to records, one language after the other; a build that was cut short is resumed.

A language is built in a hidden folder that gets its name only when it is complete, so a kill or a full disk leaves
nothing half-written under a final name, and a second run builds what is missing.
"""

import collections
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Sequence

import numpy as np
import tqdm
from absl import logging

from rembert_tf import __version__
from rembert_tf.pipelines import atomic_files, manifest, text_files
from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.documents import collect_documents, split_documents
from rembert_tf.pipelines.records import SplitWriter
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_LINES_AT_ONCE = 2048
_OLD = ".old"


def build_records(config: RecordsConfig) -> manifest.Manifest:
    """Builds the records of all languages, and `manifest.json` at the end.

    Args:
        config: The settings.

    Returns:
        The manifest.

    Raises:
        FileNotFoundError: Input folder or vocabulary are absent.
        OSError: The disk is full or cannot be written.
        ValueError: The text is unusable (file and line are named), the output folder is the input folder or has
            something else under the name of a language, or it holds records of other settings and `overwrite` is
            off.
    """
    _require_two_folders(config)
    inputs = text_files.find_inputs(config.input_dir, config.languages)
    tokenizer = RemBertTokenizer.from_file(config.tokenizer)
    folder = pathlib.Path(config.output_dir)
    settings = {language: _settings(config, tokenizer, files) for language, files in inputs.items()}
    complete = _complete(folder, settings, config.overwrite)

    if len(complete) < len(inputs):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / manifest.MANIFEST_FILE).unlink(missing_ok=True)
        tokenizer.save(folder)
    languages = {}
    for number, (language, files) in enumerate(inputs.items(), 1):
        place = f"{language} ({number} of {len(inputs)})"
        for end in (atomic_files.INCOMPLETE, _OLD):  # what a killed run left
            shutil.rmtree(folder / f".{language}{end}", ignore_errors=True)
        if language in complete:
            languages[language] = complete[language]
            logging.info("%s: complete already", place)
            continue
        languages[language] = _build_language(
            folder, language, files, tokenizer, config, settings[language]
        )
        built = languages[language]
        logging.info(
            "%s: %d sentences, %d documents, %d pieces; %d documents held out",
            place,
            built.train.sentences + built.heldout.sentences,
            built.train.documents + built.heldout.documents,
            built.train.tokens + built.heldout.tokens,
            built.heldout.documents,
        )
    result = manifest.Manifest(
        folder=folder,
        tool=f"rembert_tf {__version__}",
        vocabulary_sha256=tokenizer.fingerprint,
        vocab_size=tokenizer.vocab_size,
        languages=languages,
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
    return {
        "vocabulary_sha256": tokenizer.fingerprint,
        "heldout_fraction": config.heldout_fraction,
        "max_document_tokens": config.max_document_tokens,
        "tokens_per_shard": config.tokens_per_shard,
        "input_files": [[file.name, file.stat().st_size] for file in files],
    }


def _complete(
    folder: pathlib.Path, settings: dict[str, dict], overwrite: bool
) -> dict[str, manifest.LanguageRecords]:
    """Reads the languages that an earlier run completed with the same settings; the others must be replaceable."""
    complete = {}
    for language, wanted in settings.items():
        path = folder / language / manifest.LANGUAGE_FILE
        if not path.is_file():
            if os.path.lexists(path.parent):
                raise ValueError(
                    f"{path.parent} exists and holds no records, so it is not replaced. Received: "
                    f"output_dir={str(folder)!r}"
                )
            continue
        found = manifest.LanguageRecords.from_json(json.loads(path.read_text(encoding="utf-8")))
        differing = [name for name in wanted if found.settings.get(name) != wanted[name]]
        if not differing:
            complete[language] = found
        elif not overwrite:
            name = differing[0]
            raise ValueError(
                f"{path}: the records were built with {name}={found.settings.get(name)}. Received: "
                f"{name}={wanted[name]}. Choose another `output_dir`, or replace them with --overwrite."
            )
    return complete


def _build_language(
    folder: pathlib.Path,
    language: str,
    files: Sequence[pathlib.Path],
    tokenizer: RemBertTokenizer,
    config: RecordsConfig,
    settings: dict,
) -> manifest.LanguageRecords:
    final = folder / language
    incomplete, old = (folder / f".{language}{end}" for end in (atomic_files.INCOMPLETE, _OLD))
    incomplete.mkdir()
    try:
        with atomic_files.naming(incomplete):
            built = _write_language(incomplete, language, files, tokenizer, config, settings)
        if final.exists():
            os.rename(final, old)  # never half deleted under its name, whenever a kill comes
        os.rename(incomplete, final)
    except BaseException:
        shutil.rmtree(incomplete, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return built


def _write_language(
    incomplete, language, files, tokenizer, config, settings
) -> manifest.LanguageRecords:
    lines = collections.Counter()
    writers = {
        split: SplitWriter(incomplete, split, config.tokens_per_shard) for split in manifest.SPLITS
    }
    unigrams = np.zeros(tokenizer.vocab_size, np.int64)
    progress = tqdm.tqdm(
        _sentences(files, tokenizer, lines), desc=language, unit=" lines", disable=None, leave=False
    )
    for split, document in split_documents(
        collect_documents(progress, config.max_document_tokens), config.heldout_fraction
    ):
        writers[split].write(document)
        if split == "train":
            np.add.at(unigrams, np.concatenate(document), 1)
    if not lines["kept"]:
        raise ValueError(
            f"{files[0]}: language {language!r} has no usable line (of {lines['read']})."
        )
    written = {split: writer.close() for split, writer in writers.items()}
    if config.heldout_fraction and not written["heldout"].documents:
        logging.warning("%s: a single sentence is no document to hold out", language)
    np.save(incomplete / manifest.COUNTS_FILE, unigrams)
    built = manifest.LanguageRecords(
        settings=settings,
        lines={
            "read": lines["read"],
            "kept": lines["kept"],
            "dropped": {reason: lines[reason] for reason in ("blank", "without_pieces")},
        },
        **written,
    )
    atomic_files.write_json(incomplete / manifest.LANGUAGE_FILE, built.to_json())
    return built


def _sentences(
    files, tokenizer: RemBertTokenizer, lines: collections.Counter
) -> Iterator[np.ndarray | None]:
    """Yields the ids of each usable line, and None between documents; counts what becomes of each line."""
    stream = itertools.chain.from_iterable(
        itertools.chain(text_files.read_lines(file), (None,)) for file in files
    )
    while batch := list(itertools.islice(stream, _LINES_AT_ONCE)):
        for text, ids in zip(batch, tokenizer.encode([text or "" for text in batch]), strict=True):
            if text is None:  # the end of a file
                yield None
                continue
            lines["read"] += 1
            if len(ids):
                lines["kept"] += 1
                yield ids
            elif text:
                lines["without_pieces"] += 1
            else:
                lines["blank"] += 1
                yield None
