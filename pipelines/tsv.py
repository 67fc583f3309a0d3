r"""Lines of the small text files that XTREME is made of: read with line numbers, written whole.

Lines end at `\n` alone. Python's own `splitlines` would also break at U+2028, U+0085 and other
characters that real tokens hold, and every line after them would get another line's label.
"""

import os
import pathlib
from collections.abc import Iterable

from rembert_tf import atomic_files

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: str | os.PathLike) -> list[str]:
    r"""Reads a UTF-8 file as lines, so that line `n` of the file is element `n - 1`.

    `\r\n` line ends, a byte order mark and a last line without an end are accepted.

    Args:
        path: the file.

    Returns:
        The lines without their ends.

    Raises:
        ValueError: the file is not UTF-8; the message names the line.
    """
    data = pathlib.Path(path).read_bytes().removeprefix(_BYTE_ORDER_MARK)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}:{line}: the file must be UTF-8. Received: byte 0x{data[error.start]:02x}"
        ) from None
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def write_lines(path: str | os.PathLike, lines: Iterable[str]) -> None:
    r"""Writes lines, each ended by `\n`, under a temporary name and renames the whole file.

    A killed run or a full disk leaves the old file, or none: never half of the new one. Missing
    folders are made.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_files.replacing(path) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
