"""Several seeds averaged, and two runs side by side."""

import dataclasses
import statistics

import pytest

from rembert_tf.evaluation import report, runs
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


def test_one_run_has_no_deviation(labels, seeds):
    scores = evaluate_folders(seeds[:1], labels)
    assert scores.tasks["xnli"]["deviation"] == {}
    assert "±" not in report.tables(scores)


def test_each_seeds_own_notes_name_it(labels, seeds, tmp_path):
    fill(tmp_path / "seed1", {"xnli/test-fr": "neutral"})
    notes = evaluate_folders(seeds, labels).notes
    assert notes == [f"{seeds[1]}: xnli: not scored, predictions but no labels: fr."]


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
