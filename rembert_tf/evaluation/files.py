"""Reading and writing the small text files of an evaluation."""

import os

from rembert_tf import atomic_files


def read_lines(path: str) -> list[str]:
    r"""Returns the lines of a UTF-8 file without their line ends (`\n` or `\r\n`).

    Only `\n` ends a line: characters such as U+0085 or U+2028 occur inside tokens. A byte order
    mark at the start is dropped.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not UTF-8; the message names file and line.
    """
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}:{number}: the line is not UTF-8 ({error.reason}).") from None
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


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
