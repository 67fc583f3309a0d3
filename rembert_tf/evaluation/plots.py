"""Pictures of scores: all tasks at a glance, one task by language, two runs side by side."""

import os
import statistics
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rembert_tf import atomic_files
from rembert_tf.evaluation.runs import differences_by_language
from rembert_tf.evaluation.scores import Scores

_BAR, _ENGLISH, _LINE, _TEXT = "#8fb4d9", "#2f6ba8", "#1f3a56", "#333333"
_PALE_TEXT = "#666666"
_BETTER, _WORSE, _EQUAL, _GRID = "#3f9a6b", "#cf5c4a", "#9a9a9a", "#dddddd"
_MARKS = (("D", "#d1603d"), ("o", "#4a9c6d"), ("^", "#8d5fa8"), ("s", "#b8860b"), ("v", "#555555"))


def plot_overview(scores: Scores, path: str) -> None:
    """Draws each task as a row: a dot a language, English apart, the gap between as a line.

    Args:
        scores: the scores.
        path: the PNG file to write.
    """
    figure, axes = _rows(scores, list(scores.tasks))
    for row, result in enumerate(scores.tasks.values()):
        metric = result["main_metric"]
        values = {language: score[metric] for language, score in result["languages"].items()}
        others = {language: value for language, value in values.items() if language != "en"}
        if others:
            _dots(axes, row, others, [_BAR] * len(others))
            lowest = min(others, key=others.__getitem__)
            _name_dot(axes, row, lowest, others[lowest])
        if "en" in values:
            axes.scatter(values["en"], row, s=64, color=_ENGLISH, zorder=6, clip_on=False)
        gap = result["gap_to_english"].get(metric)
        if gap is not None:
            mean = statistics.fmean(others.values())
            axes.plot([mean, values["en"]], [row, row], color=_LINE, linewidth=1, zorder=4)
        text = f"{result['mean'][metric]:.1f}" + ("" if gap is None else f"   gap {gap:.1f}")
        _at_the_right(axes, row, text)
    axes.scatter([], [], s=64, color=_ENGLISH, label="English")
    axes.scatter([], [], s=46, color=_BAR, label="another language")
    axes.plot([], [], color=_LINE, linewidth=2, label="mean of the others")
    axes.set_title(
        f"Every language of every task ({scores.split})", loc="left", color=_TEXT, pad=22
    )
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent", color=_TEXT)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, frameon=False, fontsize=8,
        handletextpad=0.3, borderaxespad=0,
    )  # fmt: skip
    _save(figure, path)


def plot_task(scores: Scores, task: str, path: str) -> None:
    """Draws the main metric of a task by language, best first after English.

    Baselines and the run to compare with become marks on the bars; of several runs, whiskers show
    the standard deviation.

    Args:
        scores: the scores.
        task: which task.
        path: the PNG file to write.
    """
    result = scores.tasks[task]
    metric = result["main_metric"]
    values = {language: score[metric] for language, score in result["languages"].items()}
    languages = sorted(values, key=lambda language: (language != "en", -values[language], language))
    positions = range(len(languages))
    beside = {name: baseline["tasks"][task] for name, baseline in scores.baselines.items()}
    if task in scores.compared_with.get("tasks", {}):
        beside[scores.compared_with["name"]] = scores.compared_with["tasks"][task]

    figure, axes = _canvas(width=max(6.4, 0.36 * len(languages) + 2.0), height=4.2)
    deviations = result["deviation"].get("languages", {})
    axes.bar(
        positions,
        [values[language] for language in languages],
        width=0.72,
        color=[_ENGLISH if language == "en" else _BAR for language in languages],
        yerr=[deviations[x][metric] for x in languages] if deviations else None,
        error_kw={"ecolor": _LINE, "elinewidth": 1, "capsize": 2, "zorder": 4},
        zorder=2,
    )
    mean = result["mean"][metric]
    axes.axhline(
        mean, color=_LINE, linewidth=1.2, linestyle=(0, (4, 3)), zorder=3, label=f"mean {mean:.1f}"
    )
    for index, (name, other) in enumerate(beside.items()):
        marker, color = _MARKS[index % len(_MARKS)]
        marked = other["languages"]
        axes.scatter(
            [p for p, language in zip(positions, languages, strict=True) if language in marked],
            [marked[language][metric] for language in languages if language in marked],
            marker=marker,
            s=34,
            color=color,
            edgecolors="white",
            linewidths=0.8,
            zorder=5,
            clip_on=False,
            label=name,
        )
    title = f"{task} ({scores.split}): {metric} by language"
    axes.set_title(title, loc="left", color=_TEXT, pad=12)
    axes.set_ylabel("percent", color=_TEXT)
    axes.set_ylim(0, 100)
    axes.set_xlim(-0.7, len(languages) - 0.3)
    axes.set_xticks(positions, [f"{language}\n{values[language]:.0f}" for language in languages])
    _plain(axes, grid="y")
    figure.legend(loc="outside lower center", ncols=1 + len(beside), frameon=False)
    _save(figure, path)


def plot_comparison(scores: Scores, path: str) -> None:
    """Draws by how much each language of each task is better or worse than in the other run.

    Args:
        scores: the scores, with another run beside them.
        path: the PNG file to write.
    """
    tasks = list(scores.compared_with["tasks"])
    figure, axes = _rows(scores, tasks)
    for row, task in enumerate(tasks):
        values = differences_by_language(scores, task)
        if values:
            colors = [
                _EQUAL if abs(v) < 0.05 else _BETTER if v > 0 else _WORSE for v in values.values()
            ]
            _dots(axes, row, values, colors)
            ordered = sorted(values, key=values.__getitem__)
            for language in dict.fromkeys((ordered[0], ordered[-1])):
                _name_dot(axes, row, language, values[language])
            _at_the_right(axes, row, f"{statistics.fmean(values.values()):+.1f}")
    axes.axvline(0, color=_LINE, linewidth=1, zorder=2)
    axes.set_title(
        f"This run minus {scores.compared_with['name']}, a dot a language",
        loc="left", color=_TEXT, pad=12,
    )  # fmt: skip
    axes.margins(x=0.06)
    axes.set_xlabel("percentage points", color=_TEXT)
    _save(figure, path)


def _rows(scores: Scores, tasks: list[str]) -> tuple[Figure, Axes]:
    """Returns axes with a row a task and room for a number at the right of each."""
    figure, axes = _canvas(width=8.0, height=1.3 + 0.62 * len(tasks))
    labels = [f"{task}\n{scores.tasks[task]['main_metric']}" for task in tasks]
    axes.set_yticks(range(len(tasks)), labels)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.annotate("mean", (1.02, 1), (0, 8), xycoords="axes fraction", textcoords="offset points",
                  fontsize=9, color=_PALE_TEXT, annotation_clip=False)  # fmt: skip
    _plain(axes, grid="x")
    return figure, axes


def _dots(axes: Axes, row: int, values: Mapping[str, float], colors: list[str]) -> None:
    """Draws a dot a language and their mean as a stroke."""
    axes.scatter(values.values(), [row] * len(values), s=46, color=colors, alpha=0.75, zorder=3,
                 edgecolors="white", linewidths=0.7, clip_on=False)  # fmt: skip
    mean = statistics.fmean(values.values())
    axes.plot([mean, mean], [row - 0.2, row + 0.2], color=_LINE, linewidth=2, zorder=5)


def _name_dot(axes: Axes, row: int, language: str, value: float) -> None:
    axes.annotate(language, (value, row), (0, 9), textcoords="offset points", ha="center",
                  fontsize=8, color=_PALE_TEXT)  # fmt: skip


def _at_the_right(axes: Axes, row: int, text: str) -> None:
    axes.annotate(text, (1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=9,
                  color=_TEXT, annotation_clip=False)  # fmt: skip


def _canvas(*, width: float, height: float) -> tuple[Figure, Axes]:
    # pyplot is left alone: it keeps every figure alive and may look for a display.
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _plain(axes: Axes, *, grid: str) -> None:
    axes.tick_params(length=0, colors=_TEXT)
    axes.grid(axis=grid, color=_GRID, linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _save(figure: Figure, path: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with atomic_files.replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
