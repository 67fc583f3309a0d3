import dataclasses
import json
import pathlib

import pytest

from rembert_tf.evaluation import answer_files, report
from rembert_tf.evaluation.config import EvaluationConfig
from rembert_tf.evaluation.scores import Scores
from rembert_tf.evaluation.tasks import GROUPS, METRICS, TASKS, averages
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
    assert scores.averages == {}  # XTREME gives none where languages are missing
    assert scores.partial_averages == {
        "classification": pytest.approx((50 + 62.5) / 2),
        "tagging": pytest.approx((udpos["udpos_f1_xtreme"] + panx["f1"]) / 2),
    }
    assert evaluate_folders(*folders, tasks=["udpos"]).partial_averages == {}


def test_all_task_needs_all_nine():
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == 9
    assert averages(dict.fromkeys(names, 50.0))["all_task"] == 50
    assert "all_task" not in averages(dict.fromkeys(names[:-1], 50.0))


def test_what_is_not_scored_is_told(folders):
    scores = evaluate_folders(*folders)
    notes = "\n".join(scores.notes)
    assert "predictions but no labels: ja" in notes
    assert "label files but no predictions: sw" in notes
    assert "panx: predicted I- tags that continue no span" in notes
    assert "no tag was repaired: yo 1." in notes
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
    assert any("would refuse these" in note and ": de 1." in note for note in after.notes)
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
    present = evaluate_folders(predictions, labels, baselines={"half": half_of(predictions)})
    pawsx = present.tasks["pawsx"]
    assert (pawsx["mean"], pawsx["gap_to_english"]) == (
        official["mean"],
        official["gap_to_english"],
    )
    assert pawsx["languages"]["lt"] == {"accuracy": 0} and pawsx["other_languages"] == ["lt"]
    assert present.baselines["half"]["tasks"]["pawsx"]["mean"]["accuracy"] == 50
    text = report.tables(present)
    assert "Not in the mean: lt." in text and "7 of 7 |" in text and "lt Lithuanian" in text
    pathlib.Path(predictions, "pawsx/test-zh.tsv").unlink()
    partial = evaluate_folders(predictions, labels)
    assert partial.tasks["pawsx"]["mean"]["accuracy"] == pytest.approx(100 * 6 / 7)
    text = report.tables(partial)
    assert "In the mean but not XTREME's: lt." in text and "6 of 7 + 1 |" in text


def half_of(predictions):
    """Writes predictions for XTREME's languages alone, of which the first in each file is right."""
    tree = {f"pawsx/test-{language}": "0 0" for language in TASKS["pawsx"].languages}
    return fill(pathlib.Path(predictions).parent / "half", tree)


def test_xtremes_averages_are_over_its_languages_however_many_more_there_are(tmp_path):
    names = GROUPS["classification"]
    values = {"pawsx": "0 1", "xnli": "neutral entailment"}
    tree = {f"{n}/test-{x}": values[n] for n in names for x in TASKS[n].languages}
    labels = fill(tmp_path / "labels", tree | {"xnli/test-lt": values["xnli"]})
    predictions = fill(
        tmp_path / "predictions", tree | {"pawsx/test-en": "0 0", "xnli/test-lt": "neutral neutral"}
    )
    scores = evaluate_folders(predictions, labels)
    assert scores.averages == {"classification": pytest.approx((100 * 13 / 14 + 100) / 2)}
    assert scores.partial_averages == {}
    assert evaluate_folders(predictions, labels, xtreme_languages="all").averages == scores.averages


def test_a_task_without_any_labels_is_told_with_the_places_where_they_may_lie(folders, tmp_path):
    predictions, labels = folders
    fill(pathlib.Path(predictions), {"tatoeba/test-de": "0 1", "bucc2018/dev-de": "a"})
    (note,) = (n for n in evaluate_folders(predictions, labels).notes if "tatoeba" in n)
    start = "tatoeba: not scored, predictions but no labels. Labels of tatoeba may lie in "
    assert note.startswith(start) and "tatoeba/test-<language>.tsv, " in note
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="No task folder .* Labels of tatoeba may lie in "):
        evaluate_folders(predictions, str(tmp_path / "empty"))


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
        evaluate_folders(fill(tmp_path / "x", {"xcopa/test-en": ""}), labels)
    message = r"no language.*0 files .*udpos/dev-\*\.tsv\. Labels of udpos may lie in .*\.conllu"
    with pytest.raises(FileNotFoundError, match=message):
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
    # Only predictions may hold O; if most lines did, this would be no file of labels.
    pathlib.Path(labels, "udpos", "test-en.tsv").write_text("DET\nNOUN\nO\n\nVERB\n")
    with pytest.raises(ValueError, match=r"labels/udpos/test-en\.tsv:3: unknown label"):
        evaluate_folders(predictions, labels, tasks=["udpos"])


@pytest.mark.parametrize(
    ("baselines", "good"),
    [(("a=x", "b=y=z"), True), (("a",), False), (("=x",), False), (("a=x", "a=y"), False)],
)
def test_baselines_of_the_config(baselines, good):
    values = {"prediction_folder": ("p",), "label_folder": "l", "baselines": baselines}
    if good:
        assert EvaluationConfig(**values).baseline_folders() == {"a": "x", "b": "y=z"}
    else:
        with pytest.raises(ValueError, match="name=folder"):
            EvaluationConfig(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"prediction_folder": ("p",)},
        {"label_folder": "l"},
        {"conll": ("gold",)},
        {"conll": ("gold", "predicted"), "label_folder": "l"},
    ],
)
def test_the_config_needs_two_folders_or_two_files(values):
    with pytest.raises(ValueError, match="Received: "):
        EvaluationConfig(**values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("scores.json", ("scores.json", "")), ("mBERT=a/scores.json", ("a/scores.json", "mBERT"))],
)
def test_the_run_to_compare_with(value, expected):
    config = EvaluationConfig(prediction_folder=("p",), label_folder="l", compare_with=value)
    assert config.comparison() == expected


def test_config_refuses_unknown_tasks_and_explains_every_field():
    with pytest.raises(ValueError, match="tasks=pos"):
        EvaluationConfig(prediction_folder=("p",), label_folder="l", tasks=("pos",))
    assert all(
        field.metadata["help"].endswith(".") for field in dataclasses.fields(EvaluationConfig)
    )


def test_language_lists_have_the_sizes_of_the_paper():
    sizes = {name: len(set(task.languages)) for name, task in TASKS.items()}
    assert sizes == {
        "pawsx": 7, "xnli": 15, "udpos": 33, "panx": 40, "xquad": 11, "mlqa": 7, "tydiqa": 9,
        "bucc2018": 4, "tatoeba": 36,
    }  # fmt: skip
    panx, tatoeba = set(TASKS["panx"].languages), set(TASKS["tatoeba"].languages)
    assert panx - tatoeba == {"en", "ms", "my", "yo"}
    assert tatoeba < panx


def test_every_metric_is_explained():
    for task in TASKS.values():
        assert {*task.metrics, task.official_metric} <= METRICS[task.kind].keys()


def answers(folder, task, language, predictions=None, **gold):
    """Writes a file of answers (`id="answer"`), or a question file with the same answers as gold."""
    value = predictions
    if value is None:
        value = [{"id": k, "answers": [{"text": t} for t in texts]} for k, texts in gold.items()]
        value = {"data": [{"paragraphs": [{"context": "", "qas": value}]}]}
    path = folder / task / f"test-{language}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def test_questions_by_hand_official_and_corrected(tmp_path):
    labels, predictions = tmp_path / "labels", tmp_path / "predictions"
    answers(labels, "xquad", "zh", a=["北京大学"], b=["长江", "长江水"])
    answers(predictions, "xquad", "zh", {"a": "北京", "b": "长江"})
    answers(labels, "xquad", "en", a=["The port"], b=["old"])
    answers(predictions, "xquad", "en", {"a": "port", "b": "old town"})
    result = evaluate_folders(str(predictions), str(labels)).tasks["xquad"]
    assert result["languages"]["zh"] == pytest.approx(
        {
            "exact_match": 50,
            "f1": 50,
            "em_f1_mean": 50,
            "exact_match_corrected": 50,
            "f1_corrected": 100 * (2 / 3 + 1) / 2,
        }
    )
    assert result["languages"]["en"]["f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert result["mean"]["em_f1_mean"] == pytest.approx((50 + (50 + 250 / 3) / 2) / 2)
    assert result["official_metric"] == "em_f1_mean"


def test_mlqa_is_scored_by_mlqas_rule(tmp_path):
    labels, predictions = tmp_path / "labels", tmp_path / "predictions"
    answers(labels, "mlqa", "de", a=["der Hafen"])
    answers(predictions, "mlqa", "de", {"a": "Hafen"})
    answers(labels, "tydiqa", "fi", a=["der Hafen"])
    answers(predictions, "tydiqa", "fi", {"a": "Hafen"})
    tasks = evaluate_folders(str(predictions), str(labels)).tasks
    assert tasks["mlqa"]["mean"]["exact_match"] == 100
    assert tasks["tydiqa"]["mean"]["exact_match"] == 0


def test_missing_extra_and_empty_answers_are_told(tmp_path):
    labels, predictions = tmp_path / "labels", tmp_path / "predictions"
    answers(labels, "tydiqa", "sw", a=["x"], b=["y"], c=["z"], d=["w"])
    answers(predictions, "tydiqa", "sw", {"a": "x", "b": "", "e": "v"})
    scores = evaluate_folders(str(predictions), str(labels))
    assert scores.tasks["tydiqa"]["mean"]["exact_match"] == 25
    notes = "\n".join(scores.notes)
    assert "tydiqa: questions without a prediction, which count as wrong" in notes
    assert "sw 2 (first: c)" in notes
    assert "no question of the labels, left out: sw 1 (first: e)" in notes
    assert "empty answers, each right only where the gold answer is empty: sw 1 (first: b)" in notes
    answers(predictions, "tydiqa", "sw", {"e": "v"})
    with pytest.raises(
        ValueError, match=r"test-sw\.json: none of the 1 ids is a question of .*'a'"
    ):
        evaluate_folders(str(predictions), str(labels))


def test_i7_a_file_of_a_language_without_rule_is_named(tmp_path):
    labels, predictions = tmp_path / "labels", tmp_path / "predictions"
    answers(labels, "xquad", "xx", a=["x"])
    answers(predictions, "xquad", "xx", {"a": "x"})
    with pytest.raises(ValueError, match=r"test-xx\.json: `language` must be.*'xx'"):
        evaluate_folders(str(predictions), str(labels))


def test_retrieval_by_hand(tmp_path):
    labels, predictions = tmp_path / "labels", tmp_path / "predictions"
    fill(labels, {"tatoeba/test-de": "2 0 1 3", "bucc2018/test-de": ""})
    fill(predictions, {"tatoeba/test-de": "2 0 0 0", "bucc2018/test-de": ""})
    pairs = {"labels": "de-1\ten-1\nde-2\ten-2\n", "predictions": "de-1\ten-1\n" * 2}
    for name, text in pairs.items():
        (tmp_path / name / "bucc2018" / "test-de.tsv").write_text(text)
    scores = evaluate_folders(str(predictions), str(labels))
    assert scores.tasks["tatoeba"]["mean"]["accuracy"] == 50
    assert scores.tasks["bucc2018"]["mean"] == pytest.approx(
        {"precision": 100, "recall": 50, "f1": 200 / 3}
    )
    (note,) = scores.notes
    assert note.startswith("bucc2018: pairs that come more than once") and "test-de.tsv:2" in note
    fill(predictions, {"tatoeba/test-de": "2 0 0"})
    with pytest.raises(ValueError, match=r"predictions/tatoeba/test-de\.tsv:4: .*3 predictions, 4"):
        evaluate_folders(str(predictions), str(labels))


def test_nothing_mined_scores_zero_and_is_told(tmp_path):
    labels = tmp_path / "labels"
    predictions = fill(tmp_path / "predictions", {"bucc2018/test-de": ""})
    fill(labels, {"bucc2018/test-de": ""})
    with pytest.raises(ValueError, match=r"labels/bucc2018/test-de\.tsv: the file holds no pair"):
        evaluate_folders(predictions, str(labels))
    (labels / "bucc2018" / "test-de.tsv").write_text("de-1\ten-1\n")
    scores = evaluate_folders(predictions, str(labels))
    assert scores.tasks["bucc2018"]["mean"] == {"precision": 0, "recall": 0, "f1": 0}
    assert "bucc2018: files without a single pair: de 1." in scores.notes


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
        ("xquad", "exact_match"): 77.27273,
        ("xquad", "f1"): 79.95868,
        ("mlqa", "exact_match"): 57.14286,
        ("mlqa", "f1"): 81.76871,
        ("tydiqa", "exact_match"): 88.88889,
        ("tydiqa", "f1"): 97.22222,
        ("bucc2018", "f1"): 55.0,
        ("tatoeba", "accuracy"): 53.61111,
    }.items():
        assert means[key] == pytest.approx(constant, abs=1e-5), key
    assert all(r["missing_languages"] == [] for r in scores.tasks.values())
    assert scores.averages["all_task"] == pytest.approx(62.17320, abs=1e-5)
    # Half of a Chinese answer is half right, and a Chinese answer is no longer one word.
    xquad = scores.tasks["xquad"]["languages"]["zh"]
    assert xquad["f1_corrected"] > xquad["f1"] + 20


GOLD = SHARED_DATA / "gold" / "labels"


@pytest.mark.skipif(not GOLD.is_dir(), reason="needs ../shared/data/gold")
def test_real_gold_files_are_perfect_against_themselves(tmp_path):
    for path in sorted((GOLD / "xquad").glob("*.json")):
        gold = answer_files.read_gold_answers(str(path))
        assert len(gold) == 1190
        value = {key: texts[0] for key, texts in gold.items()}
        answers(tmp_path, "xquad", path.stem.removeprefix("test-"), value)
    for task in ("panx", "tatoeba"):
        (tmp_path / task).symlink_to(GOLD / task)
    scores = evaluate_folders(str(tmp_path), str(GOLD))
    languages = {task: len(result["languages"]) for task, result in scores.tasks.items()}
    assert languages == {"panx": 28, "tatoeba": 21, "xquad": 2}
    for task, result in scores.tasks.items():
        assert result["mean"][result["main_metric"]] == 100, task
    assert scores.tasks["tatoeba"]["examples"]["de"] == 1000


@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs ../shared/data")
def test_k12_blanked_test_files_are_no_labels(tmp_path):
    answers(tmp_path, "xquad", "en", {"x": "y"})
    with pytest.raises(
        ValueError, match=r"xquad\.en\.json: none of the 1190 questions has an answer"
    ):
        evaluate_folders(str(tmp_path), str(SHARED_DATA / "xtreme" / "download"), tasks=["xquad"])
