import dataclasses
import pathlib

import pytest

from rembert_tf.evaluation.config import EvaluationConfig
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import GROUPS, TASKS, averages
from rembert_tf.evaluation.xtreme import evaluate_folders

SHARED_DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
MOCK = SHARED_DATA / "xtreme_mock" / "mock_test_data"


def fill(folder, tree):
    """Writes {"udpos/test-en": "DET NOUN | VERB"}: tokens of a line each, `|` ends a sentence."""
    for name, tags in tree.items():
        path = folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\n" if t == "|" else f"{t}\n" for t in tags.split()))
    return str(folder)


@pytest.fixture
def folders(tmp_path):
    """A mock of XTREME's two trees that is small enough to score by hand."""
    labels = fill(
        tmp_path / "labels",
        {
            "udpos/test-en": "DET NOUN NOUN | VERB",
            "udpos/test-de": "DET NOUN NOUN | VERB",
            "udpos/test-lt": "NOUN | VERB",
            "udpos/test-sw": "NOUN",
            "panx/test-en": "B-PER I-PER O | B-LOC",
            "panx/test-yo": "B-PER I-PER O | B-LOC",
            "xnli/test-en": "neutral entailment neutral contradiction",
            "xnli/test-de": "neutral entailment neutral contradiction",
            "pawsx/test-de": "0 1",
            "xquad/test-en": "",
        },
    )
    predictions = fill(
        tmp_path / "predictions",
        {
            "udpos/test-en": "DET NOUN NOUN | VERB",
            "udpos/test-de": "DET NOUN VERB | VERB",
            "udpos/test-lt": "VERB | VERB",
            "udpos/test-ja": "NOUN",
            "panx/test-en": "B-PER I-PER O | B-LOC",
            "panx/test-yo": "I-PER I-PER O | B-ORG",
            "xnli/test-en": "neutral entailment neutral neutral",
            "xnli/test-de": "neutral neutral neutral neutral",
            "pawsx/test-de": "0 0",
            "xquad/test-en": "",
        },
    )
    return predictions, labels


def test_scores_of_a_small_tree_by_hand(folders):
    scores = evaluate_folders(*folders)
    udpos = scores.tasks["udpos"]
    assert {x: s["accuracy"] for x, s in udpos["languages"].items()} == {
        "de": 75,
        "en": 100,
        "lt": 50,
    }
    # de: gold DET, NOUN NOUN | VERB; predicted DET, NOUN, VERB | VERB: right are DET and the last.
    assert udpos["languages"]["de"]["udpos_f1_xtreme"] == pytest.approx(100 * 4 / 7)
    assert udpos["mean"]["accuracy"] == 75  # English is in the mean
    assert udpos["gap_to_english"]["accuracy"] == 37.5  # and not among the others
    assert udpos["examples"] == {"de": 2, "en": 2, "lt": 2}
    assert udpos["main_metric"] == "accuracy"
    assert udpos["official_metric"] == "udpos_f1_xtreme"
    panx = scores.tasks["panx"]
    assert panx["languages"]["yo"]["f1"] == 50
    assert panx["languages"]["yo"]["f1_strict"] == 0
    assert scores.tasks["xnli"]["mean"]["accuracy"] == 62.5
    assert scores.tasks["pawsx"]["gap_to_english"] == {}  # no English


def test_group_averages_take_official_scores_of_whole_groups(folders):
    scores = evaluate_folders(*folders)
    udpos, panx = (scores.tasks[name]["mean"] for name in ("udpos", "panx"))
    assert scores.averages == {
        "classification": pytest.approx((50 + 62.5) / 2),
        "tagging": pytest.approx((udpos["udpos_f1_xtreme"] + panx["f1"]) / 2),
    }
    assert "tagging" not in evaluate_folders(*folders, tasks=["udpos"]).averages


def test_all_task_needs_all_nine():
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == 9
    assert averages(dict.fromkeys(names, 50.0))["all_task"] == 50
    assert "all_task" not in averages(dict.fromkeys(names[:-1], 50.0))


def test_what_is_not_scored_is_told(folders):
    scores = evaluate_folders(*folders)
    notes = "\n".join(scores.notes)
    assert "predictions but no labels: ja" in notes
    assert "labels but no predictions: sw" in notes
    assert "xquad" in notes
    assert "panx: 1 predicted I- tags continue no span (yo)" in notes
    assert scores.tasks["udpos"]["other_languages"] == ["lt"]
    assert "lt" not in scores.tasks["udpos"]["missing_languages"]
    assert len(scores.tasks["udpos"]["missing_languages"]) == 31


def test_blank_lines_that_xtreme_would_refuse_change_no_score(folders):
    predictions, labels = folders
    before = evaluate_folders(predictions, labels, tasks=["udpos"])
    path = pathlib.Path(predictions, "udpos", "test-de.tsv")
    path.write_text("\n" + path.read_text().replace("\n\n", "\n\n\n"))
    after = evaluate_folders(predictions, labels, tasks=["udpos"])
    assert after.tasks == before.tasks
    assert any("would refuse de" in note for note in after.notes)
    assert not any("would refuse" in note for note in before.notes)


def test_data_files_serve_as_labels(tmp_path):
    labels = tmp_path / "data"
    (labels / "udpos").mkdir(parents=True)
    (labels / "udpos" / "dev-en.tsv").write_text("A\tDET\nhorse\tNOUN\n\nran\tVERB\n\n")
    (labels / "xnli").mkdir()
    (labels / "xnli" / "dev-en.tsv").write_bytes(b'a\tb\tneutral\r\n"c ""d"""\te\tentailment\r\n')
    predictions = fill(
        tmp_path / "predictions",
        {"udpos/dev-en": "DET NOUN | O", "xnli/dev-en": "neutral neutral"},
    )
    scores = evaluate_folders(predictions, str(labels), split="dev")
    assert scores.tasks["udpos"]["mean"]["accuracy"] == pytest.approx(100 * 2 / 3)
    assert scores.tasks["xnli"]["mean"]["accuracy"] == 50


def test_xtreme_languages_all_demands_every_file(folders):
    with pytest.raises(FileNotFoundError, match=r"xnli/test-ar\.tsv is missing.*15 languages"):
        evaluate_folders(*folders, tasks=["xnli"], xtreme_languages="all")


def test_xtreme_languages_all_leaves_other_languages_out(tmp_path):
    languages = [*TASKS["pawsx"].languages, "lt"]
    tree = {f"pawsx/test-{language}": "0 1" for language in languages}
    labels = fill(tmp_path / "labels", tree)
    predictions = fill(tmp_path / "predictions", {**tree, "pawsx/test-lt": "1 0"})
    official = evaluate_folders(predictions, labels, xtreme_languages="all").tasks["pawsx"]
    assert official["mean"]["accuracy"] == 100
    assert official["missing_languages"] == official["other_languages"] == []
    present = evaluate_folders(predictions, labels).tasks["pawsx"]
    assert present["mean"]["accuracy"] == pytest.approx(100 * 7 / 8)


def test_baselines_are_scored_on_the_same_languages(folders, tmp_path):
    tree = {"udpos/test-en": "X X X | VERB", "udpos/test-de": "X X X | X", "udpos/test-af": "X"}
    partial = fill(tmp_path / "partial", tree)
    full = fill(tmp_path / "full", {**tree, "udpos/test-lt": "NOUN | VERB"})
    scores = evaluate_folders(
        *folders, tasks=["udpos"], baselines={"partial": partial, "full": full}
    )
    assert scores.baselines["full"]["tasks"]["udpos"]["mean"]["accuracy"] == pytest.approx(125 / 3)
    baseline = scores.baselines["partial"]["tasks"]["udpos"]
    assert {x: s["accuracy"] for x, s in baseline["languages"].items()} == {"de": 0, "en": 25}
    assert baseline["mean"] == {}
    assert any("partial has no udpos predictions for lt" in note for note in scores.notes)


def test_json_there_and_back(folders, tmp_path):
    scores = evaluate_folders(*folders, baselines={"itself": folders[0]})
    path = str(tmp_path / "out" / "scores.json")
    scores.save(path)
    assert Scores.load(path) == scores


@pytest.mark.parametrize("text", ["{", "[]", '{"split": "test"}'])
def test_other_json_is_no_scores(tmp_path, text):
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"scores\.json: "):
        Scores.load(str(path))


def test_missing_folders_tasks_and_languages(folders, tmp_path):
    predictions, labels = folders
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere"):
        evaluate_folders(str(tmp_path / "nowhere"), labels)
    with pytest.raises(FileNotFoundError, match="No task folder"):
        evaluate_folders(fill(tmp_path / "x", {"xquad/test-en": ""}), labels)
    with pytest.raises(FileNotFoundError, match=r"no language.*0 files .*udpos/dev-\*\.tsv"):
        evaluate_folders(predictions, labels, tasks=["udpos"], split="dev")
    with pytest.raises(FileNotFoundError, match="Baseline none: no test predictions of udpos"):
        evaluate_folders(predictions, labels, tasks=["udpos"], baselines={"none": str(tmp_path)})
    with pytest.raises(ValueError, match="`tasks` must be of .*Received: tasks=pos"):
        evaluate_folders(predictions, labels, tasks=["pos"])


def test_wrong_files_are_named(folders):
    predictions, labels = folders
    pathlib.Path(predictions, "xnli", "test-de.tsv").write_text("neutral\n" * 3)
    with pytest.raises(ValueError, match=r"predictions/xnli/test-de\.tsv:4: .*labels/xnli/test-de"):
        evaluate_folders(predictions, labels, tasks=["xnli"])
    pathlib.Path(labels, "udpos", "test-en.tsv").write_text("O\n")  # only predictions may hold O
    with pytest.raises(ValueError, match=r"labels/udpos/test-en\.tsv:1: unknown label"):
        evaluate_folders(predictions, labels, tasks=["udpos"])


@pytest.mark.parametrize(
    ("baselines", "good"),
    [(("a=x", "b=y=z"), True), (("a",), False), (("=x",), False), (("a=x", "a=y"), False)],
)
def test_baselines_of_the_config(baselines, good):
    values = {"prediction_folder": "p", "label_folder": "l", "baselines": baselines}
    if good:
        assert EvaluationConfig(**values).baseline_folders() == {"a": "x", "b": "y=z"}
    else:
        with pytest.raises(ValueError, match="name=folder"):
            EvaluationConfig(**values)


def test_config_refuses_unknown_tasks_and_explains_every_field():
    with pytest.raises(ValueError, match="tasks=pos"):
        EvaluationConfig(prediction_folder="p", label_folder="l", tasks=("pos",))
    assert all(
        field.metadata["help"].endswith(".") for field in dataclasses.fields(EvaluationConfig)
    )


def test_language_lists_have_the_sizes_of_the_paper():
    sizes = {name: len(set(task.languages)) for name, task in TASKS.items()}
    assert sizes == {"pawsx": 7, "xnli": 15, "udpos": 33, "panx": 40}


@pytest.mark.skipif(not MOCK.is_dir(), reason="needs ../shared/data/xtreme_mock")
def test_xtremes_own_mock_data_gives_its_constants():
    scores = evaluate_folders(
        str(MOCK / "predictions"), str(MOCK / "labels"), xtreme_languages="all"
    )
    means = {(task, m): s for task, r in scores.tasks.items() for m, s in r["mean"].items()}
    for key, constant in {
        ("pawsx", "accuracy"): 51.42857142857143,
        ("xnli", "accuracy"): 30.666666666666668,
        ("panx", "f1"): 57.50793650793652,
        ("udpos", "udpos_f1_xtreme"): 70.21746048354693,  # seqeval 0.0.12
        ("udpos", "udpos_f1_seqeval"): 70.39805810699043,  # seqeval 1.2.2
    }.items():
        assert means[key] == pytest.approx(constant, abs=1e-5), key
    assert all(r["missing_languages"] == [] for r in scores.tasks.values())
