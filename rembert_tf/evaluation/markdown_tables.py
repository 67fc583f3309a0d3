"""Markdown tables that also read well as plain text, and the numbers in them."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], text_columns: int = 1) -> list[str]:
    r"""Returns the lines of a table, its columns aligned.

    Args:
        rows: the cells; the first row is the header.
        text_columns: how many columns, from the left, hold text; the others are set to the right.

    Example:
        >>> print(*table([["task", "mean"], ["xnli", "9.5"]]), sep="\n")
        | task | mean |
        | ---- | ---: |
        | xnli |  9.5 |
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if index < text_columns else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        "-" * width if index < text_columns else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    )
    return [line(rows[0]), f"| {' | '.join(rule)} |", *map(line, rows[1:])]


def number(value: float | None, deviation: float | None = None) -> str:
    """Returns a score as a cell: one decimal, the deviation behind it, nothing for `None`.

    Example:
        >>> number(74.25), number(74.25, 0.31), number(None)
        ('74.2', '74.2 ± 0.3', '')
    """
    if value is None:
        return ""
    return f"{value:.1f}" if deviation is None else f"{value:.1f} ± {deviation:.1f}"


def beside(score: float, other: float | None, deviation: float | None = None) -> tuple[str, str]:
    """Returns another score, with its deviation, and the difference to it; two empty cells for `None`."""
    return ("", "") if other is None else (number(other, deviation), difference(score, other))


def difference(score: float, other: float) -> str:
    """Returns by how much a score is higher, with its sign.

    Example:
        >>> difference(50.04, 50.0), difference(49.0, 50.0)
        ('0.0', '-1.0')
    """
    rounded = round(score - other, 1)
    return f"{rounded:+.1f}" if rounded else "0.0"
