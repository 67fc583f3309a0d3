"""One picture a task: a bar for each language, baselines as marks, the mean as a line."""

import os

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rembert_tf.evaluation.scores import Scores

_BAR, _ENGLISH, _LINE, _TEXT = "#8fb4d9", "#2f6ba8", "#1f3a56", "#333333"
_MARKS = (("D", "#d1603d"), ("o", "#4a9c6d"), ("^", "#8d5fa8"), ("s", "#b8860b"), ("v", "#555555"))


def plot_task(scores: Scores, task: str, path: str) -> None:
    """Draws the main metric of a task by language, best first after English, into a PNG file.

    Args:
        scores: the scores; its baselines become marks on the bars.
        task: which task.
        path: the file to write; its folder is made.
    """
    result = scores.tasks[task]
    metric = result["main_metric"]
    values = {language: score[metric] for language, score in result["languages"].items()}
    languages = sorted(values, key=lambda language: (language != "en", -values[language], language))
    positions = range(len(languages))

    # pyplot is left alone: it keeps every figure alive and may look for a display.
    figure = Figure(figsize=(max(6.4, 0.36 * len(languages) + 2.0), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.bar(
        positions,
        [values[language] for language in languages],
        width=0.72,
        color=[_ENGLISH if language == "en" else _BAR for language in languages],
        zorder=2,
    )
    mean = result["mean"][metric]
    axes.axhline(
        mean, color=_LINE, linewidth=1.2, linestyle=(0, (4, 3)), zorder=3, label=f"mean {mean:.1f}"
    )
    for index, (name, baseline) in enumerate(scores.baselines.items()):
        marker, color = _MARKS[index % len(_MARKS)]
        marked = baseline["tasks"][task]["languages"]
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
    axes.tick_params(length=0, colors=_TEXT)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8, zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.legend(loc="outside lower center", ncols=1 + len(scores.baselines), frameon=False)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    figure.savefig(path, dpi=150)
