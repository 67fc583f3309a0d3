"""Text on disk: one file or one folder a language, read line by line or in chunks.

An input folder holds, for each language, either one file (`sw.txt`, or compressed: `.txt.gz`, `.txt.bz2`, `.txt.xz`,
`.txt.zst`) or one sub-folder with any number of such files. Names that start with a dot and files with other endings (a
`MANIFEST.json`, a `LICENSE`) are no text and are passed over. The name without its ending is the language, with a
region or script if need be: `bg-Latn`, `zh_TW`.

A file is UTF-8 with one sentence, paragraph or document a line and a blank line between documents. Only line feeds end
lines, so that rare separators inside a sentence stay inside it.
"""

import bz2
import gzip
import lzma
import os
import pathlib
import re
import zlib
from collections.abc import Iterator, Sequence

import zstandard
from absl import logging

_OPENERS = {
    ".txt": open,
    ".txt.gz": gzip.open,
    ".txt.bz2": bz2.open,
    ".txt.xz": lzma.open,
    ".txt.zst": open,  # read_blocks takes it apart
}
_DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error, zstandard.ZstdError)
_BLOCK = 256 * 1024
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
        ValueError: It holds no text, two inputs of one language (`en.txt` and `en.txt.gz`, `zh-tw` and `zh_TW`), or
            lacks a language that was asked for.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`input_dir` must be an existing folder. Received: input_dir={str(folder)!r}"
        )
    found: dict[str, tuple[pathlib.Path, ...]] = {}
    seen: dict[str, pathlib.Path] = {}
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
        same = language.lower().replace("_", "-")
        if same in seen:
            raise ValueError(
                f"{entry}: a second input for language {language!r}, after {seen[same]}."
            )
        seen[same] = entry
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
    """Reads the lines of a file without their surrounding white space; memory is that of the longest line.

    Args:
        path: A file with one of the known endings.

    Yields:
        Each line, empty where it is blank.

    Raises:
        ValueError: The file is not UTF-8, or its compressed data is damaged or cut short.
    """
    number, parts = 0, []  # parts of a line that has not ended
    for block in read_blocks(path):
        if b"\n" not in block:
            parts.append(block)
            continue
        *lines, rest = b"".join([*parts, block]).split(b"\n")
        parts = [rest]
        for raw in lines:
            number += 1
            yield decode(raw, path, number).strip()
    if rest := b"".join(parts):
        yield decode(rest, path, number + 1).strip()


def read_blocks(path: str | os.PathLike) -> Iterator[bytes]:
    """Reads a file, plain or compressed, in blocks of some hundred thousand bytes.

    Raises:
        ValueError: Its compressed data is damaged or cut short.
    """
    path = pathlib.Path(path)
    ending = _ending(path)
    lines = 0
    with _OPENERS[ending](path, "rb") as file:
        blocks = iter(lambda: file.read(_BLOCK), b"")
        if ending == ".txt.zst":
            blocks = _decompress_zst(blocks)
        while True:
            try:
                block = next(blocks, None)
            except _DAMAGE as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # the disk, not the content
                raise ValueError(
                    f"{path}: damaged compressed file after line {lines}: {error}"
                ) from error
            if block is None:
                return
            lines += block.count(b"\n")
            yield block


def decode(raw: bytes, path: str | os.PathLike, first_line: int) -> str:
    """Decodes whole lines of a file, without the byte order mark with which it may begin.

    Args:
        raw: UTF-8.
        path: The file, for the error.
        first_line: Number of the first line in it.

    Raises:
        ValueError: The text is not UTF-8; half of a surrogate pair is not either.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        place = error.start - raw.rfind(b"\n", 0, error.start)
        raise ValueError(
            f"{path}:{line}: not UTF-8: byte {place} of the line is 0x{raw[error.start]:02x}."
        ) from error
    return text.removeprefix("\ufeff") if first_line == 1 else text


def _decompress_zst(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Decompresses frame after frame; `zstandard.open` would take a file that is cut short for a whole one."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    started = False
    for block in blocks:
        while block:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(block)
            started, block = True, frame.unused_data
    if started and not frame.eof:
        raise EOFError("Compressed file ended before the end of its last frame")


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
