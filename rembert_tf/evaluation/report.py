"""Scores for people: tables, `report.md` with plots, and XTREME's own JSON of official scores."""

import json
import os
from collections.abc import Sequence
from typing import Any

from rembert_tf.evaluation import files
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import METRICS, TASKS


def write_report(scores: Scores, output_dir: str) -> list[str]:
    """Writes `scores.json`, `report.md` and a plot for each task; returns their paths."""
    from rembert_tf.evaluation import plots  # matplotlib takes a second to import

    paths = [os.path.join(output_dir, name) for name in ("scores.json", "report.md")]
    scores.save(paths[0])
    for task in scores.tasks:
        paths.append(os.path.join(output_dir, plot_name(task)))
        plots.plot_task(scores, task, paths[-1])
    files.write_atomically(paths[1], markdown(scores))
    return paths


def plot_name(task: str) -> str:
    """Returns the file name of a task's plot, in the folder of the report."""
    return f"scores_{task}.png"


def tables(scores: Scores) -> str:
    """Returns the summary and a table by language for each task: the report without its plots."""
    lines = [*_head(scores), *_body(scores, with_plots=False), *_notes(scores)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def markdown(scores: Scores) -> str:
    """Returns the whole report; its plots are those that `write_report` puts beside it."""
    parts = [*_head(scores), *_body(scores, with_plots=True), *_notes(scores), *_rules(scores)]
    return "\n".join(parts) + "\n"


def official_json(scores: Scores) -> str:
    """Returns XTREME's official scores under XTREME's names: averages, then task → metric."""
    official: dict[str, Any] = dict(scores.averages)
    for name, result in scores.tasks.items():
        metrics = TASKS[name].official
        official[name] = {
            theirs: {language: values[ours] for language, values in result["languages"].items()}
            for theirs, ours in metrics.items()
        }
        official[name] |= {f"avg_{theirs}": result["mean"][m] for theirs, m in metrics.items()}
        official[name]["avg_metric"] = result["mean"][result["official_metric"]]
    return json.dumps(official, indent=2) + "\n"


def languages_in_order(result: dict[str, Any]) -> list[str]:
    """Returns the languages of a task's result, English first, then by code."""
    return sorted(result["languages"], key=lambda language: (language != "en", language))


def _head(scores: Scores) -> list[str]:
    rows = [
        [
            "task",
            "metric",
            "mean",
            "English",
            "gap",
            "XTREME's score",
            "languages",
            *scores.baselines,
        ]
    ]
    for name, result in scores.tasks.items():
        main, xtreme_languages = result["main_metric"], TASKS[name].languages
        count = sum(language in xtreme_languages for language in result["languages"])
        others = len(result["other_languages"])
        rows.append(
            [
                name,
                main,
                _number(result["mean"][main]),
                _number(result["languages"].get("en", {}).get(main)),
                _number(result["gap_to_english"].get(main)),
                _number(result["mean"][result["official_metric"]]),
                f"{count} of {len(xtreme_languages)}" + (f" + {others}" if others else ""),
                *(_number(b["tasks"][name]["mean"].get(main)) for b in scores.baselines.values()),
            ]
        )
    lines = [
        f"# Scores on the {scores.split} split",
        "",
        f"Predictions: `{scores.prediction_folder}`  ",
        f"Labels: `{scores.label_folder}`  ",
        *(f"{name}: `{b['prediction_folder']}`  " for name, b in scores.baselines.items()),
        "",
        *_table(rows, text_columns=2),
        "",
        "Means are unweighted, over languages, English included. The gap is English minus the mean "
        "of the others.",
    ]
    if scores.averages:
        averages = ", ".join(f"{name} {score:.1f}" for name, score in scores.averages.items())
        lines.append(f"XTREME's averages of its scores: {averages}{_comparability(scores)}.")
    return lines


def _comparability(scores: Scores) -> str:
    results = scores.tasks.values()
    if any(result["missing_languages"] or result["other_languages"] for result in results):
        return " (not XTREME's languages: not to be compared with published ones)"
    return ""


def _body(scores: Scores, *, with_plots: bool) -> list[str]:
    lines = []
    for name, result in scores.tasks.items():
        lines += ["", f"## {name}", ""]
        if with_plots:
            lines += [f"![{name}: {result['main_metric']} by language]({plot_name(name)})", ""]
        lines += _table(_language_rows(scores, name))
        for key, text in (
            ("missing_languages", "Missing of XTREME's languages"),
            ("other_languages", "In the mean but not XTREME's"),
        ):
            if result[key]:
                lines += ["", f"{text}: {', '.join(result[key])}."]
    return lines


def _language_rows(scores: Scores, name: str) -> list[list[str]]:
    result = scores.tasks[name]
    main, *other_metrics = TASKS[name].metrics
    baselines = {name_: b["tasks"][name] for name_, b in scores.baselines.items()}
    header = ["language", main, "gap", *other_metrics]
    header += [column for baseline in baselines for column in (baseline, f"vs {baseline}")]
    rows = [header]
    english = result["languages"].get("en", {}).get(main)
    for language in languages_in_order(result):
        score = result["languages"][language]
        gap = None if english is None or language == "en" else english - score[main]
        rows.append([language, _number(score[main]), _number(gap)])
        rows[-1] += [_number(score[metric]) for metric in other_metrics]
        for baseline in baselines.values():
            rows[-1] += _beside(score[main], baseline["languages"].get(language, {}).get(main))
    mean, gap = result["mean"], result["gap_to_english"].get(main)
    rows.append(["mean", _number(mean[main]), _number(gap)])
    rows[-1] += [_number(mean[metric]) for metric in other_metrics]
    for baseline in baselines.values():
        rows[-1] += _beside(mean[main], baseline["mean"].get(main))
    return rows


def _notes(scores: Scores) -> list[str]:
    return ["", "## Notes", "", *(f"* {note}" for note in scores.notes)] if scores.notes else []


def _rules(scores: Scores) -> list[str]:
    names = dict.fromkeys(metric for task in scores.tasks for metric in TASKS[task].metrics)
    lines = ["", "## What the numbers are", "", *(f"* `{n}`: {METRICS[n]}" for n in names)]
    return [*lines, "", f"All in percent. seqeval {scores.seqeval_version}."]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _beside(score: float, baseline: float | None) -> tuple[str, str]:
    return ("", "") if baseline is None else (f"{baseline:.1f}", f"{score - baseline:+.1f}")


def _table(rows: Sequence[Sequence[str]], text_columns: int = 1) -> list[str]:
    """Returns the lines of a Markdown table whose columns are also aligned as plain text."""
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
