"""Scores for people: tables, and `report.md` with plots."""

import os
from typing import Any

from rembert_tf.evaluation import files
from rembert_tf.evaluation.languages import with_name
from rembert_tf.evaluation.markdown_tables import beside, difference, number, table
from rembert_tf.evaluation.run_tables import run_tables
from rembert_tf.evaluation.runs import differences_by_language
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import GROUPS, METRICS, TASKS

OVERVIEW, COMPARISON = "scores_overview.png", "scores_compared.png"
_AVERAGES = {"all_task": "all nine tasks"} | {group: group for group in GROUPS}


def write_report(scores: Scores, output_dir: str) -> list[str]:
    """Writes `scores.json`, `report.md` and its plots; returns their paths."""
    from rembert_tf.evaluation import plots  # matplotlib takes a second to import

    paths = [os.path.join(output_dir, name) for name in ("scores.json", "report.md")]
    scores.save(paths[0])
    pictures = {plot_name(task): (plots.plot_task, task) for task in scores.tasks}
    if len(scores.tasks) > 1:
        pictures[OVERVIEW] = (plots.plot_overview,)
    if scores.compared_with:
        pictures[COMPARISON] = (plots.plot_comparison,)
    for name, (plot, *task) in pictures.items():
        paths.append(os.path.join(output_dir, name))
        plot(scores, *task, paths[-1])
    files.write_atomically(paths[1], markdown(scores))
    return paths


def plot_name(task: str) -> str:
    """Returns the file name of a task's plot, in the folder of the report."""
    return f"scores_{task}.png"


def tables(scores: Scores) -> str:
    """Returns the report without its plots and explanations, for a terminal."""
    return _text(_parts(scores, False), scores)


def markdown(scores: Scores) -> str:
    """Returns the whole report; its plots are those that `write_report` puts beside it."""
    return _text(_parts(scores, True), scores) + "\n".join(_rules(scores)) + "\n"


def languages_in_order(result: dict[str, Any]) -> list[str]:
    """Returns the languages of a task's result, English first, then by code."""
    return sorted(result["languages"], key=lambda language: (language != "en", language))


def _parts(scores: Scores, with_plots: bool) -> list[str]:
    return [
        *_head(scores, with_plots),
        *run_tables(scores),
        *_side_by_side(scores, with_plots),
        *_body(scores, with_plots),
    ]


def _text(lines: list[str], scores: Scores) -> str:
    notes = ["", "## Notes", "", *(f"* {note}" for note in scores.notes)] if scores.notes else []
    return "\n".join(line.rstrip() for line in (*lines, *notes)) + "\n"


def _head(scores: Scores, with_plots: bool) -> list[str]:
    lines = [f"# Scores on the {scores.split} split", ""]
    if scores.averages:
        lines += [f"XTREME's averages: {_averages(scores, scores.averages)}.", ""]
    if scores.partial_averages:
        lines += [
            "Averages of tasks that lack some of XTREME's languages, not to be compared with published "
            f"ones: {_averages(scores, scores.partial_averages)}.",
            "",
        ]
    if with_plots and len(scores.tasks) > 1:
        lines += [f"![Every language of every task]({OVERVIEW})", ""]
    header = ["task", "metric", "mean", "English", "gap", "XTREME's score", "languages"]
    rows = [[*header, *scores.baselines]]
    for name, result in scores.tasks.items():
        main, xtreme_languages = result["main_metric"], TASKS[name].languages
        count = sum(language in xtreme_languages for language in result["languages"])
        others = len(result["other_languages"]) if result["missing_languages"] else 0
        official = result["official_metric"]
        rows.append(
            [
                name,
                main,
                number(result["mean"][main], _deviation(result, "mean", main)),
                number(
                    result["languages"].get("en", {}).get(main),
                    _deviation(result, "languages", "en", main),
                ),
                number(
                    result["gap_to_english"].get(main), _deviation(result, "gap_to_english", main)
                ),
                number(result["mean"][official], _deviation(result, "mean", official)),
                f"{count} of {len(xtreme_languages)}" + (f" + {others}" if others else ""),
                *(number(b["tasks"][name]["mean"].get(main)) for b in scores.baselines.values()),
            ]
        )
    runs = len(scores.prediction_folders)
    lines += [
        *table(rows, text_columns=2),
        "",
        "All in percent. Means are unweighted, over languages, English included; over XTREME's alone "
        "where all of them are there. The gap (the "
        "cross-lingual transfer gap) is English minus the mean of the others."
        + (
            f" Means over {runs} runs ± their sample standard deviation (n - 1)."
            if runs > 1
            else ""
        ),
        "",
        *(f"Predictions: `{folder}`  " for folder in scores.prediction_folders),
        f"Labels: `{scores.label_folder}`  ",
        *(f"{name}: `{b['prediction_folder']}`  " for name, b in scores.baselines.items()),
    ]
    return lines


def _averages(scores: Scores, averages: dict[str, float]) -> str:
    return ", ".join(
        f"{_AVERAGES[n]} **{number(averages[n], scores.average_deviations.get(n))}**"
        for n in _AVERAGES
        if n in averages
    )


def _deviation(result: dict[str, Any], *keys: str) -> float | None:
    """Returns a number of a result's `deviation`; `None` for one run, and where there is none."""
    found: Any = result.get("deviation", {})
    for key in keys:
        found = found.get(key, {})
    return found if isinstance(found, float) else None


def _side_by_side(scores: Scores, with_plots: bool) -> list[str]:
    other = scores.compared_with
    if not other:
        return []
    name = other["name"]
    rows = [["task", "metric", "this", name, "difference", "better", "worse", "most", "least"]]
    for task, theirs in other["tasks"].items():
        result = scores.tasks[task]
        metric = result["main_metric"]
        mean, differences = result["mean"][metric], differences_by_language(scores, task)
        deviation = _deviation(result, "mean", metric)
        ordered = sorted(differences, key=differences.get, reverse=True)
        rows.append([task, metric, number(mean, deviation)])
        rows[-1] += [
            *beside(mean, theirs["mean"].get(metric), _deviation(theirs, "mean", metric)),
            str(sum(round(d, 1) > 0 for d in differences.values())),
            str(sum(round(d, 1) < 0 for d in differences.values())),
            *(f"{x} {difference(differences[x], 0)}" for x in (*ordered[:1], *ordered[-1:])),
        ]
    lines = ["", f"## Side by side with {name}", ""]
    if with_plots:
        lines += [f"![Differences by language]({COMPARISON})", ""]
    lines += [*table(rows, text_columns=2), ""]
    lines.append(
        "A difference is this run minus the other. better and worse count languages, most and least "
        f"are those with the highest and the lowest difference. The other run: `{other['path']}`."
    )
    averages = [
        f"{_AVERAGES[n]} {number(mine)} and {number(theirs)} ({difference(mine, theirs)})"
        for n, mine, theirs in (
            (n, scores.averages.get(n), other["averages"].get(n)) for n in _AVERAGES
        )
        if mine is not None and theirs is not None
    ]
    return lines + (["", f"XTREME's averages: {', '.join(averages)}."] if averages else [])


def _body(scores: Scores, with_plots: bool) -> list[str]:
    lines = []
    for name, result in scores.tasks.items():
        lines += ["", f"## {name}", ""]
        if with_plots:
            lines += [f"![{name}: {result['main_metric']} by language]({plot_name(name)})", ""]
        lines += table(_language_rows(scores, name))
        averaged = (
            "In the mean but not XTREME's" if result["missing_languages"] else "Not in the mean"
        )
        for key, text in (
            ("missing_languages", "Missing of XTREME's languages"),
            ("other_languages", averaged),
        ):
            if result[key]:
                lines += ["", f"{text}: {', '.join(result[key])}."]
    return lines


def _language_rows(scores: Scores, name: str) -> list[list[str]]:
    result = scores.tasks[name]
    main, *other_metrics = TASKS[name].metrics
    others = {b: entry["tasks"][name] for b, entry in scores.baselines.items()}
    if name in scores.compared_with.get("tasks", {}):
        others[scores.compared_with["name"]] = scores.compared_with["tasks"][name]
    header = ["language", main, "gap", *other_metrics, "examples"]
    header += [column for other in others for column in (other, f"vs {other}")]
    rows = [header]
    english = result["languages"].get("en", {}).get(main)
    for language in languages_in_order(result):
        score, place = result["languages"][language], ("languages", language)
        gap = None if english is None or language == "en" else english - score[main]
        rows.append(
            [
                with_name(language),
                number(score[main], _deviation(result, *place, main)),
                number(gap),
            ]
        )
        rows[-1] += [number(score[m], _deviation(result, *place, m)) for m in other_metrics]
        rows[-1].append(f"{result['examples'][language]:,}")
        for other in others.values():
            rows[-1] += beside(
                score[main],
                other["languages"].get(language, {}).get(main),
                _deviation(other, *place, main),
            )
    mean, gap = result["mean"], result["gap_to_english"].get(main)
    rows.append(
        [
            "mean",
            number(mean[main], _deviation(result, "mean", main)),
            number(gap, _deviation(result, "gap_to_english", main)),
        ]
    )
    rows[-1] += [number(mean[m], _deviation(result, "mean", m)) for m in other_metrics]
    rows[-1].append(f"{sum(result['examples'].values()):,}")
    for other in others.values():
        rows[-1] += beside(mean[main], other["mean"].get(main), _deviation(other, "mean", main))
    return rows


def _rules(scores: Scores) -> list[str]:
    lines = ["", "## What the numbers are", ""]
    shown: dict[str, list[str]] = {}
    for name in scores.tasks:
        shown.setdefault(TASKS[name].kind, []).append(name)
    for kind, names in shown.items():
        metrics = dict.fromkeys(
            metric
            for name in names
            for metric in (*TASKS[name].metrics, TASKS[name].official_metric)
        )
        lines += [
            f"{', '.join(names)}:",
            "",
            *(f"* `{m}`: {METRICS[kind][m]}" for m in metrics),
            "",
        ]
    return [*lines, f"seqeval {scores.seqeval_version}."]
