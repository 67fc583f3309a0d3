"""Text on disk: one file or one folder a language, read line by line.

An input folder holds, for each language, either one file (`sw.txt`, or compressed: `.txt.gz`, `.txt.bz2`, `.txt.xz`) or
one sub-folder with any number of such files. Names that start with a dot and files with other endings (a
`MANIFEST.json`, a `LICENSE`) are no text and are passed over. The name without its ending is the language.

A file is UTF-8 with one sentence or paragraph a line and a blank line between documents. Only line feeds end lines, so
that rare separators inside a sentence stay inside it.
"""

import bz2
import gzip
import lzma
import os
import pathlib
import re
import zlib
from collections.abc import Iterator, Sequence

from absl import logging

_OPENERS = {".txt": open, ".txt.gz": gzip.open, ".txt.bz2": bz2.open, ".txt.xz": lzma.open}
_LANGUAGE = re.compile(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*")


def find_inputs(
    folder: str | os.PathLike, languages: Sequence[str] = ()
) -> dict[str, tuple[pathlib.Path, ...]]:
    """Finds the text files of each language.

    Args:
        folder: The input folder.
        languages: Languages to keep; empty for all.

    Returns:
        Files by language, both in alphabetical order.

    Raises:
        FileNotFoundError: `folder` is absent.
        ValueError: It holds no text, two inputs of one language, or lacks a language that was asked for.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`input_dir` must be an existing folder. Received: input_dir={str(folder)!r}"
        )
    found: dict[str, tuple[pathlib.Path, ...]] = {}
    for entry in sorted(folder.iterdir()):
        files = _files_of(entry)
        if files is None:
            if not entry.name.startswith("."):
                logging.info("%s is no text file and is passed over.", entry)
            continue
        language = entry.name if entry.is_dir() else entry.name.removesuffix(_ending(entry))
        if not _LANGUAGE.fullmatch(language):
            raise ValueError(
                f"{entry}: the name before the ending must be a language such as sw or zh-Hant."
            )
        if language in found:
            raise ValueError(
                f"{entry}: a second input for language {language!r}, after {found[language][0]}."
            )
        found[language] = files
    if not found:
        raise ValueError(
            f"`input_dir` holds no {', '.join(_OPENERS)} file. Received: input_dir={str(folder)!r}"
        )
    missing = sorted(set(languages) - set(found))
    if missing:
        raise ValueError(
            f"`languages` must be among {', '.join(found)}. Received: languages={','.join(missing)}"
        )
    return {
        language: files
        for language, files in found.items()
        if not languages or language in languages
    }


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """Reads the lines of a file without their surrounding white space; memory is that of one line.

    Args:
        path: A file with one of the known endings.

    Yields:
        Each line, empty where it is blank.

    Raises:
        ValueError: The file is not UTF-8, or its compressed data is damaged or cut short.
    """
    path = pathlib.Path(path)
    number = 0
    with _OPENERS[_ending(path)](path, "rb") as file:
        while True:
            try:
                raw = file.readline()
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # the disk, not the content
                raise ValueError(
                    f"{path}: damaged compressed file after line {number}: {error}"
                ) from error
            if not raw:
                return
            number += 1
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}:{number}: not UTF-8: byte {error.start + 1} of the line is 0x{raw[error.start]:02x}."
                ) from error
            yield (line.removeprefix("\ufeff") if number == 1 else line).strip()


def _files_of(entry: pathlib.Path) -> tuple[pathlib.Path, ...] | None:
    if entry.name.startswith("."):
        return None
    if not entry.is_dir():
        return (entry,) if _ending(entry) else None
    files = tuple(
        sorted(file for file in entry.iterdir() if not file.name.startswith(".") and _ending(file))
    )
    if not files:
        raise ValueError(
            f"{entry}: the folder of a language must hold a {', '.join(_OPENERS)} file."
        )
    return files


def _ending(path: pathlib.Path) -> str:
    return next((ending for ending in _OPENERS if path.name.endswith(ending)), "")
