"""The folder of a language: it gets its name only when everything in it is complete.

Until then it is a hidden folder beside it, so a kill or a full disk leaves nothing half-written under a final name.
"""

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping

import numpy as np
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.pipelines import manifest
from rembert_tf.pipelines.chunk_documents import DROPPED

_OLD = ".old"


@contextlib.contextmanager
def building(folder: pathlib.Path, language: str) -> Iterator[pathlib.Path]:
    """Gives an empty folder, which takes the place of `<folder>/<language>` when the block ends well."""
    final = folder / language
    incomplete, old = (folder / f".{language}{end}" for end in (atomic_files.INCOMPLETE, _OLD))
    incomplete.mkdir()
    try:
        with atomic_files.naming(incomplete):
            yield incomplete
        if final.exists():
            os.rename(final, old)  # never half deleted under its name, whenever a kill comes
        os.rename(incomplete, final)
    except BaseException:
        shutil.rmtree(incomplete, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(folder: pathlib.Path, language: str):
    """Removes what a killed run left."""
    for end in (atomic_files.INCOMPLETE, _OLD):
        shutil.rmtree(folder / f".{language}{end}", ignore_errors=True)


def finish(
    folder: pathlib.Path,
    language: str,
    settings: dict,
    lines: Mapping[str, int],
    first_dropped: Mapping[str, str],
    splits: Mapping[manifest.Split, manifest.SplitRecords],
    unigrams: np.ndarray,
) -> manifest.LanguageRecords:
    """Writes what stands beside the records: unigram counts, and `language.json` last.

    Args:
        folder: The incomplete folder.
        language: Its language.
        settings: What decided the content.
        lines: How many lines were read, kept, and dropped for what reason.
        first_dropped: By reason, where the first such line was, as "file:line".
        splits: The records.
        unigrams: How often each piece occurs in the training documents, int64 [V].

    Raises:
        ValueError: No line was kept.
    """
    if not lines["kept"]:
        raise ValueError(f"The language {language!r} has no usable line (of {lines['read']}).")
    for reason, place in first_dropped.items():
        logging.warning("%s: dropped, %s, as the first of %d lines", place, reason, lines[reason])
    if settings["heldout_fraction"] and not splits["heldout"].documents:
        logging.warning("%s: a single sentence is no document to hold out", language)
    np.save(folder / manifest.COUNTS_FILE, unigrams)
    dropped = {reason: lines[reason] for reason in DROPPED}
    built = manifest.LanguageRecords(
        settings=settings,
        lines={"read": lines["read"], "kept": lines["kept"], "dropped": dropped},
        **splits,
    )
    atomic_files.write_json(folder / manifest.LANGUAGE_FILE, built.to_json())
    return built


def read_complete(
    folder: pathlib.Path, settings: Mapping[str, dict], overwrite: bool
) -> dict[str, manifest.LanguageRecords]:
    """Reads the languages that an earlier run completed with the same settings.

    Args:
        folder: Folder of all languages.
        settings: By language, what decides the content.
        overwrite: Whether languages with other settings may be replaced.

    Raises:
        ValueError: A language's place is taken by something else, or by records of other settings.
    """
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
        try:
            found = manifest.LanguageRecords.from_json(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: damaged: {error}. Remove {path.parent}.") from error
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
