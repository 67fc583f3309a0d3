"""Reading and writing the small text files of an evaluation."""

import dataclasses
import os

from rembert_tf import atomic_files


@dataclasses.dataclass(frozen=True)
class MadeFile:
    r"""The text that a label file would hold, made from a data set as it is published.

    Readers take it in place of a path; `str()` of it names the source in their messages.

    Attributes:
        source: path of what it was made from.
        text: lines that end with `\n`, in XTREME's layout of labels.
    """

    source: str
    text: str

    def __str__(self) -> str:
        return self.source


Source = str | MadeFile  # a file on the disk, or one that is only made


class NoLabelsError(ValueError):
    """A file that may be as it should, but tells no labels: test files are published so."""


def place(source: Source, number: int) -> str:
    """Returns `file:line` for a message; a line of a made file is no line of its source."""
    made = isinstance(source, MadeFile)
    return f"{source} (line {number} of the labels made of it)" if made else f"{source}:{number}"


def read_lines(path: Source) -> list[str]:
    r"""Returns the lines of a UTF-8 file without their line ends (`\n` or `\r\n`).

    Only `\n` ends a line: characters such as U+0085 or U+2028 occur inside tokens. A byte order
    mark at the start is dropped.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not UTF-8; the message names file and line.
    """
    text = path.text if isinstance(path, MadeFile) else _read_text(path)
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _read_text(path: str) -> str:
    with open(path, "rb") as file:
        raw = file.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{number}: the line is not UTF-8 ({error.reason}).") from None


def last_column(line: str) -> str:
    r"""Returns the label of a line such as `label` or `a\tb\tlabel`: what follows the last tab.

    A label holds no tab, quote or line break, so this reads csv-quoted and raw lines alike.
    """
    return line.rsplit("\t", 1)[-1].strip()


def write_atomically(path: str, text: str) -> None:
    """Writes `text` as UTF-8 to `path`, at once or not at all; its folder is made."""
    content = text.encode()
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    atomic_files.write_bytes(path, content)
