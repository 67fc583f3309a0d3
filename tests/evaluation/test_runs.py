"""Several seeds averaged, and two runs side by side."""

import dataclasses
import json
import math
import statistics

import pytest

from rembert_tf.evaluation import official_scores, report, runs
from rembert_tf.evaluation.xtreme import evaluate_folders


def fill(folder, tree):
    for name, labels in tree.items():
        path = folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{label}\n" for label in labels.split()))
    return str(folder)


GOLD = {"xnli/test-en": "neutral entailment", "xnli/test-de": "neutral entailment"}
SEEDS = (
    GOLD,
    GOLD | {"xnli/test-de": "neutral neutral"},
    GOLD | {"xnli/test-de": "entailment neutral", "xnli/test-en": "neutral neutral"},
)


@pytest.fixture
def labels(tmp_path):
    return fill(tmp_path / "labels", GOLD | {"pawsx/test-en": "0"})


@pytest.fixture
def seeds(tmp_path):
    return [fill(tmp_path / f"seed{i}", tree) for i, tree in enumerate(SEEDS)]


def test_the_mean_over_seeds_and_its_deviation(labels, seeds):
    scores = evaluate_folders(seeds, labels)
    xnli = scores.tasks["xnli"]
    assert {x: s["accuracy"] for x, s in xnli["languages"].items()} == {
        "de": pytest.approx(50),
        "en": pytest.approx(250 / 3),
    }
    assert xnli["mean"]["accuracy"] == pytest.approx((100 + 75 + 25) / 3)
    assert xnli["gap_to_english"]["accuracy"] == pytest.approx((0 + 50 + 50) / 3)
    assert xnli["deviation"]["languages"]["de"]["accuracy"] == pytest.approx(50)
    assert xnli["deviation"]["mean"]["accuracy"] == pytest.approx(statistics.stdev([100, 75, 25]))
    assert scores.prediction_folders == seeds
    text = report.tables(scores)
    assert "66.7 ± 38.2" in text
    assert "Means over 3 runs" in text


def test_a_folder_of_seeds_stands_for_them_in_the_order_of_their_numbers(labels, seeds, tmp_path):
    numbers = range(1, 11)  # in the order of the names, seed_10 comes before seed_2
    for number in numbers:
        fill(tmp_path / f"series/seed_{number}", SEEDS[number % 3])
    (tmp_path / "series/seed_11").write_text("a file is no seed")
    (tmp_path / "series/seed_x/xnli").mkdir(parents=True)
    series = str(tmp_path / "series")
    scores = evaluate_folders(series, labels)
    assert scores.prediction_folders == [f"{series}/seed_{number}" for number in numbers]
    assert scores.tasks == evaluate_folders([seeds[n % 3] for n in numbers], labels).tasks
    both = evaluate_folders([series, seeds[0]], labels)
    assert both.prediction_folders == [*scores.prediction_folders, seeds[0]]
    fill(tmp_path / "series", {"xnli/test-en": "neutral neutral"})
    with pytest.raises(ValueError, match=r"seeds or tasks, not both: move xnli to .*=.*series$"):
        evaluate_folders(series, labels)


@pytest.mark.parametrize("numbers", [(1, 2, 4), (2, 3), (0, 1)])
def test_seeds_that_another_series_may_have_left_are_not_averaged(labels, tmp_path, numbers):
    for number in numbers:
        fill(tmp_path / f"series/seed_{number}", SEEDS[0])
    names = ", ".join(f"seed_{number}" for number in numbers)
    with pytest.raises(ValueError, match=f"without a gap.*=.*series, which holds {names}$"):
        evaluate_folders(str(tmp_path / "series"), labels)


# Two tasks of one group, so that there is an average of both; three seeds, by hand. udpos: chunk F1 and accuracy.
TAGS = {"udpos/test-en": "DET NOUN VERB NOUN", "panx/test-en": "B-PER I-PER O I-LOC"}
TAGGERS = (
    TAGS,
    {"udpos/test-en": "DET NOUN VERB VERB", "panx/test-en": "B-PER I-PER O O"},
    {"udpos/test-en": "DET DET DET NOUN", "panx/test-en": "O O O O"},
)


def test_official_and_corrected_metrics_have_means_and_deviations_with_n_minus_1(tmp_path):
    labels = fill(tmp_path / "labels", TAGS)
    folders = [fill(tmp_path / f"tagged/seed_{n}", tree) for n, tree in enumerate(TAGGERS, 1)]
    scores = evaluate_folders(str(tmp_path / "tagged"), labels)
    udpos, panx = scores.tasks["udpos"], scores.tasks["panx"]
    accuracy, chunks = [100, 75, 50], [100, 400 / 7, 200 / 6]  # chunks: 2 of 3 + 4; 1 of 2 + 4
    names, strict = [100, 200 / 3, 0], [100, 100, 0]  # strict: the lone I-LOC is none
    for result, metric, values in (
        (udpos, "accuracy", accuracy),
        (udpos, "udpos_f1_xtreme", chunks),
        (panx, "f1", names),
        (panx, "f1_strict", strict),
    ):
        mean = sum(values) / 3
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
        for score, spread in (
            (result["mean"], result["deviation"]["mean"]),
            (result["languages"]["en"], result["deviation"]["languages"]["en"]),
        ):
            assert score[metric] == pytest.approx(mean)
            assert spread[metric] == pytest.approx(deviation)
        assert [run["mean"][metric] for run in result["runs"]] == pytest.approx(values)
        assert [run["languages"]["en"][metric] for run in result["runs"]] == pytest.approx(values)
    averages = [(one + two) / 2 for one, two in zip(chunks, names, strict=True)]
    assert scores.partial_averages == {"tagging": pytest.approx(statistics.mean(averages))}
    assert scores.average_deviations == {"tagging": pytest.approx(statistics.stdev(averages))}

    text = report.markdown(scores)
    assert "Means over 3 runs ± their sample standard deviation (n - 1)." in text
    assert f"tagging **{statistics.mean(averages):.1f} ± {statistics.stdev(averages):.1f}**" in text
    rows = [[c.strip() for c in x.strip("|").split("|")] for x in text.splitlines() if "|" in x]
    assert ["task", "metric", "seed_1", "seed_2", "seed_3", "mean", "deviation"] in rows
    assert ["udpos", "accuracy", "100.0", "75.0", "50.0", "75.0", "25.0"] in rows
    assert ["udpos", "udpos_f1_xtreme", "100.0", "57.1", "33.3", "63.5", "33.8"] in rows
    assert ["panx", "f1", "100.0", "66.7", "0.0", "55.6", "50.9"] in rows
    (english,) = [row for row in rows if row[0] == "en English" and row[1] == "75.0 ± 25.0"]
    assert english[3] == "63.5 ± 33.8", "the official figure beside it"
    assert scores.prediction_folders == folders
    path = tmp_path / "report/scores.json"
    scores.save(str(path))
    assert json.loads(path.read_text())["tasks"]["udpos"]["deviation"]["mean"]["accuracy"] == 25


def test_xtremes_own_json_has_the_deviations_beside_the_means(labels, seeds, tmp_path):
    scores = evaluate_folders(seeds, labels)
    scores = dataclasses.replace(
        scores, averages={"classification": 7.5}, average_deviations={"classification": 0.5}
    )
    official = json.loads(official_scores.official_json(scores))
    assert official["classification"] == 7.5
    assert official["standard_deviation"] == {"classification": 0.5}
    xnli = official["xnli"]
    deviation = statistics.stdev([100, 75, 25])
    assert xnli["avg_accuracy"] == xnli["avg_metric"] == pytest.approx(200 / 3)
    assert xnli["standard_deviation"] == {
        "accuracy": {
            "de": pytest.approx(50),
            "en": pytest.approx(statistics.stdev([1, 1, 0.5]) * 100),
        },
        "avg_accuracy": pytest.approx(deviation),
        "avg_metric": pytest.approx(deviation),
    }
    alone = json.loads(official_scores.official_json(evaluate_folders(seeds[0], labels)))
    assert "standard_deviation" not in alone and "standard_deviation" not in alone["xnli"]


def test_two_series_side_by_side_both_show_their_spread(labels, seeds, tmp_path):
    other = evaluate_folders(seeds[:2], labels)
    path = str(tmp_path / "earlier/scores.json")
    other.save(path)
    text = report.tables(runs.side_by_side(evaluate_folders(seeds, labels), path))
    rows = [[c.strip() for c in x.strip("|").split("|")] for x in text.splitlines() if "|" in x]
    (row,) = [row for row in rows if row[0] == "xnli" and len(row) == 9]
    assert row[2:5] == ["66.7 ± 38.2", "87.5 ± 17.7", "-20.8"]
    (german,) = [row for row in rows if row[0] == "de German"]
    assert german[1] == "50.0 ± 50.0" and german[-2] == "75.0 ± 35.4"


def test_scores_of_an_earlier_version_are_read(labels, seeds, tmp_path):
    path = tmp_path / "scores.json"
    scores = evaluate_folders(seeds[0], labels)
    scores.save(str(path))
    values = json.loads(path.read_text())
    del values["average_deviations"]
    path.write_text(json.dumps(values))
    assert type(scores).load(str(path)) == scores
    for broken in ({key: values[key] for key in values if key != "tasks"}, values | {"more": 1}):
        path.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match="scores.json: Scores are a JSON object"):
            type(scores).load(str(path))


def test_one_run_has_no_deviation(labels, seeds):
    scores = evaluate_folders(seeds[:1], labels)
    assert scores.tasks["xnli"]["deviation"] == {} and scores.average_deviations == {}
    assert "±" not in report.tables(scores) and "Run by run" not in report.tables(scores)


def test_each_seeds_own_notes_name_it(labels, seeds, tmp_path):
    fill(tmp_path / "seed1", {"xnli/test-fr": "neutral"})
    notes = evaluate_folders(seeds, labels).notes
    assert notes == [f"{seeds[1]}: xnli: not scored, predictions but no labels: fr."]
    fill(tmp_path / "seed0", {"xnli/test-es": "neutral"})
    fill(tmp_path / "labels", {"pawsx/test-de": "0"})
    for seed in seeds:
        fill(tmp_path / seed, {"pawsx/test-en": "0", "mlqa/test-x": ""})
    base = fill(tmp_path / "base", {"xnli/test-en": "neutral neutral"})
    scores = evaluate_folders(seeds, labels, baselines={"base": base})
    assert scores.notes[:3] == [
        "pawsx: not scored, label files but no predictions: de.",
        f"{seeds[0]}: xnli: not scored, predictions but no labels: es.",
        f"{seeds[1]}: xnli: not scored, predictions but no labels: fr.",
    ]
    assert all(note.startswith("Baseline base has no") for note in scores.notes[3:])
    assert len(scores.notes) == 5, "of xnli and of pawsx"


def test_runs_of_other_tasks_or_languages_are_not_averaged(labels, seeds, tmp_path):
    other = fill(tmp_path / "other", {"xnli/test-en": "neutral neutral"})
    with pytest.raises(ValueError, match=r"same languages of xnli: .*other and .*seed0.* in de\."):
        evaluate_folders([*seeds, other], labels)
    fill(tmp_path / "seed2", {"pawsx/test-en": "1"})
    with pytest.raises(ValueError, match=r"same tasks: .*pawsx"):
        evaluate_folders(seeds, labels)


@pytest.fixture
def pair(labels, seeds, tmp_path):
    """A run, and the path of another one's scores, which is better in German only."""
    other = evaluate_folders(seeds[0], labels)
    path = tmp_path / "earlier" / "scores.json"
    other.save(str(path))
    return evaluate_folders(seeds[1], labels), other, str(path)


def test_two_runs_side_by_side(pair):
    scores, _, path = pair
    both = runs.side_by_side(scores, path)
    assert runs.differences_by_language(both, "xnli") == {"de": -50, "en": 0}
    text = report.tables(both)
    assert "## Side by side with earlier" in text
    rows = [[c.strip() for c in x.strip("|").split("|")] for x in text.splitlines() if "|" in x]
    assert ["xnli", "accuracy", "75.0", "100.0", "-25.0", "0", "1", "en 0.0", "de -50.0"] in rows
    assert ["de German", "50.0", "50.0", "2", "100.0", "-50.0"] in rows
    assert ["mean", "75.0", "50.0", "4", "100.0", "-25.0"] in rows
    assert both.notes == scores.notes


def test_a_name_for_the_other_run(pair):
    assert runs.side_by_side(pair[0], pair[2], "mBERT").compared_with["name"] == "mBERT"


def test_unlike_runs_are_told(pair, tmp_path):
    scores, other, path = pair
    other.tasks["xnli"]["examples"]["de"] = 5
    other.tasks["xnli"]["languages"]["fr"] = {"accuracy": 1.0}
    other.save(path)
    both = runs.side_by_side(scores, path)
    assert any("other languages, so the two means are not compared" in n for n in both.notes)
    assert any("other numbers of examples: de." in note for note in both.notes)
    assert both.compared_with["tasks"]["xnli"]["mean"] == {}
    dataclasses.replace(other, split="dev").save(path)
    with pytest.raises(ValueError, match="same split. Received: dev there, test here"):
        runs.side_by_side(scores, path)
    dataclasses.replace(other, tasks={"pawsx": other.tasks["xnli"]}).save(path)
    with pytest.raises(ValueError, match="a task of this one, xnli. Received: pawsx"):
        runs.side_by_side(scores, path)
    with pytest.raises(FileNotFoundError):
        runs.side_by_side(scores, str(tmp_path / "nowhere.json"))
