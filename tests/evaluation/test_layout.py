import pytest

from rembert_tf.evaluation import layout
from rembert_tf.evaluation.tasks import TASKS


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def names(folder, found):
    return {language: path.removeprefix(f"{folder}/") for language, path in found.items()}


def test_predictions_lie_where_xtreme_wants_them(tmp_path):
    touch(
        tmp_path, "xnli/test-de.tsv", "xnli/test-zh-tw.tsv", "xnli/dev-de.tsv", "xnli/test-x.json"
    )
    touch(tmp_path, "xquad/test-de.json", "xquad/xquad.en.json", "xnli/test-de.old.tsv")
    assert names(tmp_path, layout.find_predictions(str(tmp_path), TASKS["xnli"], "test")) == {
        "de": "xnli/test-de.tsv",
        "zh-tw": "xnli/test-zh-tw.tsv",
    }
    found = layout.find_predictions(str(tmp_path), TASKS["xquad"], "test")
    assert names(tmp_path, found) == {"de": "xquad/test-de.json"}
    assert layout.find_predictions(str(tmp_path), TASKS["mlqa"], "test") == {}


@pytest.mark.parametrize(
    ("task", "split", "name", "language"),
    [
        ("xquad", "test", "xquad.zh.json", "zh"),
        ("mlqa", "dev", "MLQA_V1/dev/dev-context-es-question-es.json", "es"),
        ("mlqa", "test", "MLQA_V1/test/test-context-ar-question-ar.json", "ar"),
        ("tydiqa", "test", "tydiqa-goldp-v1.1-dev/tydiqa.goldp.sw.dev.json", "sw"),
        ("bucc2018", "dev", "zh-en.dev.gold", "zh"),
    ],
)
def test_labels_may_lie_as_published(tmp_path, task, split, name, language):
    folder = tmp_path / "odd [name]"
    touch(folder, f"{task}/{name}", "mlqa/MLQA_V1/dev/dev-context-en-question-de.json")
    found = layout.find_labels(str(folder), TASKS[task], split)
    assert names(folder, found) == {language: f"{task}/{name}"}


def test_xtremes_own_label_file_comes_first(tmp_path):
    touch(tmp_path, "xquad/xquad.zh.json", "xquad/test-zh.json", "xquad/xquad.en.json")
    assert names(tmp_path, layout.find_labels(str(tmp_path), TASKS["xquad"], "test")) == {
        "zh": "xquad/test-zh.json",
        "en": "xquad/xquad.en.json",
    }
