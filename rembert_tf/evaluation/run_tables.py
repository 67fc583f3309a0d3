"""Tables of several runs, one beside the other: what each of them scores, and what they score together."""

import os

from rembert_tf.evaluation.markdown_tables import number, table
from rembert_tf.evaluation.scores import Scores


def run_tables(scores: Scores) -> list[str]:
    """Returns lines of Markdown: the mean of each run on each task, by XTREME's metric and the main one.

    The scores of each run by language are in `scores.json`, under `runs` of a task. Of one run,
    nothing: it has the tables of the report.
    """
    folders = scores.prediction_folders
    if len(folders) < 2:
        return []
    rows = [["task", "metric", *_names(folders), "mean", "deviation"]]
    for name, result in scores.tasks.items():
        for metric in dict.fromkeys((result["main_metric"], result["official_metric"])):
            rows.append([name, metric, *(number(run["mean"][metric]) for run in result["runs"])])
            rows[-1].append(number(result["mean"][metric]))
            rows[-1].append(number(result["deviation"]["mean"][metric]))
    return ["", "## Run by run", "", *table(rows, text_columns=2)]


def _names(folders: list[str]) -> list[str]:
    """Returns the last parts of the paths, or their numbers where these are not different."""
    names = [os.path.basename(os.path.abspath(folder)) for folder in folders]
    if len(set(names)) == len(names):
        return names
    return [f"run {number}" for number in range(1, len(folders) + 1)]
