r"""Files of sentence pairs, one pair a line, in every form in which XTREME's tasks are published.

| first line | file | columns |
| --- | --- | --- |
| `{` | XNLI's `.jsonl` | by their keys |
| a header | raw XNLI, XNLI-MT, PAWS-X | by their names; further columns are left alone |
| 2 or 3 fields | XTREME's processed files | two sentences, and the label if there is one |
| 5 fields | XTREME's translate-train files | English pair, translated pair (which is taken), label |

Fields are taken in one of two dialects, for the whole of a file:

* the csv dialect of XTREME's processed files: Python's csv writer puts quotes around a field that
  holds a quote, and doubles the quotes inside;
* plain fields, in which a quote is a character as any other, as in the raw files.

A file is in the csv dialect exactly when the csv writer would have written each of its fields so.
One field such as `He said "no"` or `"No"` shows a plain file. Files without quotes read the same.
"""

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

_NAMES = {
    "first": ("sentence1", "premise"),
    "second": ("sentence2", "hypo", "hypothesis"),
    "label": ("label", "gold_label"),
    "language": ("language",),
}
_COLUMNS_OF_WIDTH = {
    2: {"first": 0, "second": 1},
    3: {"first": 0, "second": 1, "label": 2},
    5: {"first": 2, "second": 3, "label": 4},
}


class PairLine(NamedTuple):
    """One pair as the file gives it; `label` and `language` are `None` where it has none."""

    number: int
    first: str
    second: str
    label: str | None
    language: str | None


def parse(path: str | os.PathLike, lines: Sequence[str]) -> tuple[list[PairLine], str]:
    """Returns the pairs of a file, and how it was read, in words for the log.

    Args:
        path: the file's name, for messages.
        lines: its lines; empty ones at the end are left out.

    Raises:
        ValueError: a line that does not fit the others; the message begins with `path:line`.
    """
    lines = list(lines)
    while lines and not lines[-1]:
        lines.pop()
    if lines and lines[0].startswith("{"):
        return _parse_json(path, lines), "JSON lines"
    rows, dialect = _split_fields(lines)
    header = _header(rows[0]) if rows else None
    columns = header or (_COLUMNS_OF_WIDTH.get(len(rows[0])) if rows else {})
    pairs = []
    for number, row in enumerate(rows, start=1):
        if columns is None or len(row) != len(rows[0]):
            raise ValueError(
                f"{path}:{number}: a line must have 2 columns, 3 with the label, or 5 in a "
                "translated file, and as many as the first line. "
                f"Received: {len(row)} columns, {len(rows[0])} in the first line"
            )
        if number > 1 or not header:
            fields = {name: row[column] for name, column in columns.items()}
            pairs.append(_pair(number, fields))
    return pairs, f"{'with a header' if header else 'no header'}, {dialect}"


def _pair(number: int, fields: dict[str, str]) -> PairLine:
    return PairLine(
        number, fields["first"], fields["second"], fields.get("label"), fields.get("language")
    )


def _header(row: Sequence[str]) -> dict[str, int] | None:
    """Returns the column of each name, or `None` if this is no header."""
    names = [field.strip().lower() for field in row]
    columns = {
        key: names.index(name)
        for key, spellings in _NAMES.items()
        for name in spellings
        if name in names
    }
    return columns if {"first", "second"} <= columns.keys() else None


def _parse_json(path: str | os.PathLike, lines: Sequence[str]) -> list[PairLine]:
    pairs = []
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{number}: not valid JSON: {error.msg}") from None
        columns = _header(list(value)) if isinstance(value, dict) else None
        if columns is None:
            raise ValueError(
                f"{path}:{number}: an object must have `sentence1` and `sentence2`, or `premise` "
                f"and `hypothesis`. Received: {line[:60]}"
            )
        fields = list(value.values())
        pairs.append(_pair(number, {name: str(fields[at]) for name, at in columns.items()}))
    return pairs


def _split_fields(lines: Sequence[str]) -> tuple[list[list[str]], str]:
    """Splits lines into fields and says in which dialect they were, for the log."""
    rows = [line.split("\t") for line in lines]
    quoted = [field for row in rows for field in row if '"' in field]
    if not quoted:
        return rows, "no quotes"
    if any(field != _csv_quoted(_csv_unquoted(field)) for field in quoted):
        return rows, "plain fields with quotes"
    rows = [[_csv_unquoted(field) for field in row] for row in rows]
    return rows, f"csv quoting of {len(quoted)} fields undone"


def _csv_quoted(text: str) -> str:
    """Returns a field of one line, without tabs, as Python's csv writer writes it."""
    return '"' + text.replace('"', '""') + '"' if '"' in text or "\r" in text else text


def _csv_unquoted(field: str) -> str:
    """Returns the text of a field that `_csv_quoted` has written; others come out as they may."""
    return field[1:-1].replace('""', '"') if field.startswith('"') else field
