import dataclasses
import json
import pathlib
import re

import pytest

from rembert_tf.evaluation import official_scores, report, runs
from rembert_tf.evaluation.scores import Scores


@pytest.fixture
def scores():
    languages = {
        "de": {"accuracy": 75.0, "udpos_f1_xtreme": 60.0, "udpos_f1_seqeval": 61.0},
        "en": {"accuracy": 90.0, "udpos_f1_xtreme": 80.0, "udpos_f1_seqeval": 81.0},
    }
    for values in languages.values():
        values |= {"udpos_precision_xtreme": 50.0, "udpos_recall_xtreme": 40.0}
    mean = {m: (languages["de"][m] + languages["en"][m]) / 2 for m in languages["en"]}
    udpos = {
        "group": "tagging",
        "main_metric": "accuracy",
        "official_metric": "udpos_f1_xtreme",
        "languages": languages,
        "mean": mean,
        "gap_to_english": {m: languages["en"][m] - languages["de"][m] for m in mean},
        "examples": {"de": 3, "en": 3},
        "missing_languages": ["af", "zh"],
        "other_languages": [],
        "deviation": {},
    }
    random = {"languages": {"de": {"accuracy": 80.5}}, "mean": {}}
    return Scores(
        split="test",
        prediction_folders=["predictions"],
        label_folder="labels",
        tasks={"udpos": udpos},
        partial_averages={"tagging": 70.0},
        baselines={"random": {"prediction_folder": "elsewhere", "tasks": {"udpos": random}}},
        notes=["Something to know."],
        seqeval_version="1.2.2",
    )


def cells(text, first):
    """Returns the cells of the last table row that starts with `first`."""
    row = [line for line in text.splitlines() if line.startswith(f"| {first} ")][-1]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_tables_show_language_mean_gap_and_baselines(scores):
    text = report.tables(scores)
    assert cells(text, "language") == (
        ["language", "accuracy", "gap", "udpos_f1_xtreme", "udpos_f1_seqeval", "examples"]
        + ["random", "vs random"]
    )
    assert cells(text, "en") == ["en English", "90.0", "", "80.0", "81.0", "3", "", ""]
    assert cells(text, "de") == ["de German", "75.0", "15.0", "60.0", "61.0", "3", "80.5", "-5.5"]
    assert cells(text, "mean") == ["mean", "82.5", "15.0", "70.0", "71.0", "6", "", ""]
    assert cells(text, "udpos")[:6] == ["udpos", "accuracy", "82.5", "90.0", "15.0", "70.0"]
    assert text.index("| en ") < text.index("| de ")
    assert "Missing of XTREME's languages: af, zh." in text
    assert "not to be compared with published ones: tagging **70.0**." in text
    assert "Something to know." in text
    rows = [line for line in text.split("## udpos")[1].splitlines() if line.startswith("|")]
    assert len({len(line) for line in rows}) == 1  # aligned as plain text too


def test_report_names_every_metric_it_shows(scores):
    text = report.markdown(scores)
    for metric in ("accuracy", "udpos_f1_xtreme", "udpos_f1_seqeval"):
        assert f"* `{metric}`: " in text
    assert "seqeval 1.2.2" in text
    assert "(scores_udpos.png)" in text


def test_official_json_has_xtremes_names(scores):
    assert json.loads(
        official_scores.official_json(scores)
    ) == {  # no average: languages are missing
        "udpos": {
            "f1": {"de": 60.0, "en": 80.0},
            "precision": {"de": 50.0, "en": 50.0},
            "recall": {"de": 40.0, "en": 40.0},
            "avg_f1": 70.0,
            "avg_precision": 50.0,
            "avg_recall": 40.0,
            "avg_metric": 70.0,
            "missing_languages": ["af", "zh"],
        },
    }


def test_write_report_writes_scores_report_and_pictures(scores, tmp_path):
    paths = report.write_report(scores, str(tmp_path / "report"))
    names = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert names == ["report.md", "scores.json", "scores_udpos.png"]
    assert sorted(paths) == [str(tmp_path / "report" / name) for name in names]
    assert Scores.load(paths[0]) == scores
    picture = (tmp_path / "report" / "scores_udpos.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (960, 630)


def test_averages_that_xtreme_gives_are_in_the_json_and_at_the_top(scores):
    complete = dataclasses.replace(scores, averages={"tagging": 70.0}, partial_averages={})
    assert json.loads(official_scores.official_json(complete))["tagging"] == 70.0
    assert "XTREME's averages: tagging **70.0**." in report.tables(complete)


def test_more_tasks_and_another_run_have_pictures_of_their_own(scores, tmp_path):
    scores.tasks["xnli"] = scores.tasks["udpos"] | {"official_metric": "accuracy"}
    scores.baselines.clear()
    path = str(tmp_path / "earlier" / "scores.json")
    scores.save(path)
    paths = report.write_report(runs.side_by_side(scores, path), str(tmp_path / "report"))
    assert {pathlib.Path(path).name for path in paths} >= {report.OVERVIEW, report.COMPARISON}
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert sorted(pictures) == sorted(
        ["scores_overview.png", "scores_compared.png", "scores_udpos.png", "scores_xnli.png"]
    )
    for name in pictures:
        assert (tmp_path / "report" / name).read_bytes().startswith(b"\x89PNG")
    assert not list((tmp_path / "report").glob(".*"))  # no temporary file is left
