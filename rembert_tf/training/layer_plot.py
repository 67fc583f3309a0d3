"""Picture of a sweep over layers."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rembert_tf import atomic_files

_INK, _PALE, _GRID = "#222222", "#b9c7d6", "#e6e6e6"
_COLORS = ("#2f6db3", "#d9822b", "#4a9c6d", "#8d5fa8", "#b8860b", "#8a8a8a")
_TITLES = {
    "figure2": "Nearest translation by Euclidean distance, English moved by the mean difference",
    "tatoeba": "Nearest translation by cosine",
}


def plot_layers(report: Mapping[str, Any], path: str | pathlib.Path) -> None:
    """Draws the accuracy of each layer: a line a model with its best layer marked, over the first model's languages.

    Args:
        report: what `layer_sweep.sweep_layers` returns.
        path: the PNG file to write.
    """
    # pyplot is left alone: it keeps every figure alive and may look for a display.
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    models, pairs = report["accuracy"], report["pairs"]
    if len(pairs) > 1:
        name, first = next(iter(models.items()))
        _draw_languages(axes, first["languages"], f"languages of {name}")
    for (name, result), color in zip(models.items(), _COLORS * len(models), strict=False):
        mean = result["mean"]
        best = max(range(len(mean)), key=mean.__getitem__)
        axes.plot(mean, color=color, marker="o", markersize=3.5, linewidth=1.8, zorder=3,
                  label=f"{name}: {mean[best]:.1f} in layer {best}")  # fmt: skip
        axes.plot(best, mean[best], color=color, marker="o", markersize=8, zorder=4)
    chance = 100 * sum(1 / count for count in pairs.values()) / len(pairs)
    axes.axhline(
        chance, color=_INK, linewidth=0.9, linestyle=(0, (4, 3)), label=f"chance {chance:.2f}"
    )
    axes.set_title(_TITLES[report["procedure"]], loc="left", fontsize=10.5, color=_INK, pad=16)
    what = ", ".join(pairs) if len(pairs) == 1 else f"{len(pairs)} languages"
    axes.set_xlabel(f"layer (0: projected input embedding); {report['pooling']} pooling; {what}")
    axes.set_ylabel("accuracy (%)" if len(pairs) == 1 else "accuracy (%), mean of the languages")
    axes.margins(x=0.07, y=0.12)
    axes.set_ylim(bottom=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    with atomic_files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")


def _draw_languages(axes: Axes, accuracies: Mapping[str, Sequence[float]], label: str) -> None:
    """Draws a pale line a language, and names the highest and the lowest one where they end."""
    ordered = sorted(accuracies, key=lambda language: accuracies[language][-1])
    for language in ordered:
        values = accuracies[language]
        axes.plot(values, color=_PALE, linewidth=0.9, zorder=2, label=label)
        label = None  # one entry in the legend is enough
        if language in (ordered[0], ordered[-1]):
            axes.annotate(language, (len(values) - 1, values[-1]), (5, 0), va="center",
                          textcoords="offset points", fontsize=8, color="#6f7f8f")  # fmt: skip
