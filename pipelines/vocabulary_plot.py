"""The picture of a vocabulary: pieces by script, and how finely each language is split."""

import os

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_BAR, _ACCENT, _TEXT, _GRID = "#8fb4d9", "#d1603d", "#333333", "#dddddd"
_SCRIPTS = 24  # bars, at most; the rest is one more
_ROW = 0.2  # inches


def plot_report(report: dict, path: str | os.PathLike):
    """Draws a bar for each script and three for each language, into a PNG file.

    Args:
        report: What `vocabulary_report.measure_samples` returns.
        path: The file to write.
    """
    languages = report["languages"]
    # The most finely split ones first; those without words at the end.
    order = sorted(languages, key=lambda key: (-(languages[key]["pieces_per_word"] or 0), key))
    rows = max(len(order), min(len(report["scripts"]), _SCRIPTS + 1), 8)
    # pyplot is left alone: it keeps every figure alive and may look for a display.
    figure = Figure(figsize=(13, _ROW * rows + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(1, 4, width_ratios=(1.25, 1, 1, 1))
    _bars(
        figure.add_subplot(grid[0]), _scripts(report["scripts"]), "pieces by script (log)", "{:,.0f}",
        logarithmic=True,
    )  # fmt: skip
    for column, (name, title, form, factor) in enumerate(
        (
            ("pieces_per_word", "pieces to a word", "{:.2f}", 1),
            ("pieces_per_character", "pieces to a character", "{:.2f}", 1),
            ("unknown_rate", "unknown pieces (%)", "{:.2f}", 100),
        ),
        1,
    ):
        values = {
            key: None if languages[key][name] is None else factor * languages[key][name]
            for key in order
        }
        _bars(figure.add_subplot(grid[column]), values, title, form)
    figure.savefig(path, dpi=110, format="png")


def _scripts(counts: dict[str, int]) -> dict[str, float]:
    shown = dict(list(counts.items())[:_SCRIPTS])
    rest = sum(counts.values()) - sum(shown.values())
    return {**shown, f"{len(counts) - len(shown)} others": rest} if rest else shown


def _bars(axes, values: dict[str, float | None], title: str, form: str, logarithmic: bool = False):
    """Draws horizontal bars from top to bottom, each with its number; None gets a word in place of a bar."""
    positions = range(len(values))
    lengths = [0 if value is None else value for value in values.values()]
    axes.barh(positions, lengths, height=0.72, color=_BAR, zorder=2)
    longest = max(lengths) or 1
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(0.8, longest * 4)
    else:
        axes.set_xlim(0, longest * 1.18)
    for position, value in zip(positions, values.values(), strict=True):
        axes.annotate(
            "no spaces between words" if value is None else form.format(value),
            (0 if value is None else value, position),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=_ACCENT if value is None else _TEXT,
        )
    axes.set_title(title, loc="left", fontsize=11, color=_TEXT)
    axes.set_yticks(positions, list(values), fontsize=8)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.tick_params(length=0, colors=_TEXT, labelsize=8)
    axes.grid(axis="x", color=_GRID, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
