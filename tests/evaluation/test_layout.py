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
