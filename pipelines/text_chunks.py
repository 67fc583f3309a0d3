"""Text in chunks of about a million bytes that are worked on independently, by as many processes as wanted.

Where chunks begin and end depends on the files alone, never on who reads them. A chunk ends with a document; only a
document of more than `LONGEST_DOCUMENT` bytes is cut, at the end of a line. Small files share chunks.
"""

import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rembert_tf.pipelines import text_files
from rembert_tf.pipelines.config import LineIs

CHUNK = 1 << 20
LONGEST_DOCUMENT = 1 << 22


class TextPart(NamedTuple):
    """Whole lines of a file.

    Attributes:
        path: The file.
        first_line: Number of the first line in it, from 1.
        content: The lines. Of a line that is too long, one byte more than allowed is there, and no more.
    """

    path: pathlib.Path
    first_line: int
    content: bytes


Chunk = list[TextPart]


def reading_units(files: Sequence[pathlib.Path]) -> list[tuple[pathlib.Path, ...]]:
    """Divides the files of a language into units that different machines may read.

    Args:
        files: Files in the order of their names.

    Returns:
        The same files: a large one by itself, small ones that follow each other together.
    """
    units: list[list[pathlib.Path]] = []
    room = 0
    for path in files:
        size = os.stat(path).st_size
        if not units or size > room:
            units.append([])
            room = CHUNK
        units[-1].append(path)
        room -= size
    return [tuple(unit) for unit in units]


def read_chunks(
    files: Iterable[pathlib.Path], line_is: LineIs, max_line_bytes: int
) -> Iterator[Chunk]:
    """Reads the files of a unit; memory is that of a chunk, however long a line is.

    Args:
        files: Text files.
        line_is: With "document", a chunk may end after any line.
        max_line_bytes: Longer lines are cut to one byte more than this, which tells them.

    Yields:
        Chunks, in order.

    Raises:
        ValueError: Compressed data is damaged or cut short.
    """
    chunk: Chunk = []
    size = 0
    for path in files:
        for part in _parts(path, line_is, max_line_bytes):
            chunk.append(part)
            size += len(part.content)
            if size >= CHUNK // 2:  # what was cut off at the end of a document may miss a little
                yield chunk
                chunk, size = [], 0
    if chunk:
        yield chunk


def _parts(path: pathlib.Path, line_is: LineIs, max_line_bytes: int) -> Iterator[TextPart]:
    first_line, content = 1, b""
    for block in _with_short_lines(text_files.read_blocks(path), max_line_bytes):
        content += block
        if len(content) < CHUNK:
            continue
        end = _last_document_end(content, line_is)
        if not end and len(content) >= LONGEST_DOCUMENT:
            end = content.rfind(b"\n") + 1
        if end:
            yield TextPart(path, first_line, content[:end])
            first_line += content.count(b"\n", 0, end)
            content = content[end:]
    if content:
        yield TextPart(path, first_line, content)


def _last_document_end(content: bytes, line_is: LineIs) -> int:
    """Returns how many bytes there are up to the last end of a document, 0 if there is none."""
    endings = (b"\n",) if line_is == "document" else (b"\n\n", b"\n\r\n")
    return max(content.rfind(end) + len(end) if end in content else 0 for end in endings)


def _with_short_lines(blocks: Iterable[bytes], max_line_bytes: int) -> Iterator[bytes]:
    """Leaves out what comes after `max_line_bytes + 1` bytes in a line that goes on from block to block."""
    length = 0  # of the unfinished line so far
    for block in blocks:
        end = block.find(b"\n")
        end = len(block) if end < 0 else end
        kept = min(end, max(0, max_line_bytes + 1 - length))
        yield block[:kept] + block[end:]
        last = block.rfind(b"\n")
        length = length + len(block) if last < 0 else len(block) - last - 1
