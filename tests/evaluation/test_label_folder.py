import pytest

from rembert_tf.evaluation.files import NoLabelsError
from rembert_tf.evaluation.label_folder import LabelFolder
from rembert_tf.evaluation.tasks import TASKS


def found(folder, task, split):
    """Returns language → places of its files, below the folder."""
    return {
        language: [[path.removeprefix(f"{folder}/") for path in paths] for paths in places]
        for language, places in LabelFolder(str(folder), split).find(TASKS[task]).items()
    }


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.mark.parametrize(
    ("task", "split", "name", "language"),
    [
        ("xquad", "test", "xquad/xquad.zh.json", "zh"),
        ("mlqa", "dev", "mlqa/MLQA_V1/dev/dev-context-es-question-es.json", "es"),
        ("mlqa", "test", "mlqa/MLQA_V1/test/test-context-ar-question-ar.json", "ar"),
        ("mlqa", "test", "MLQA_V1/test/test-context-ar-question-ar.json", "ar"),
        ("tydiqa", "test", "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.sw.dev.json", "sw"),
        ("tydiqa", "test", "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-telugu.json", "te"),
        ("bucc2018", "dev", "bucc2018/zh-en.dev.gold", "zh"),
        ("bucc2018", "dev", "bucc2018/zh-en/zh-en.sample.gold", "zh"),
        ("pawsx", "dev", "x-final/ko/dev_2k.tsv", "ko"),
        ("panx", "test", "panx_dataset/my/test", "my"),
    ],
)
def test_labels_may_lie_as_published(tmp_path, task, split, name, language):
    folder = tmp_path / "odd name"
    touch(folder, name, "mlqa/MLQA_V1/dev/dev-context-en-question-de.json", f"{name}.bak")
    assert found(folder, task, split) == {language: [[name]]}


def test_xtremes_own_layout_comes_first(tmp_path):
    names = ("xquad/xquad.zh.json", "xquad/test-zh.json", "xquad/xquad.en.json")
    touch(tmp_path, *names)
    assert found(tmp_path, "xquad", "test") == {
        "zh": [["xquad/test-zh.json"], ["xquad/xquad.zh.json"]],
        "en": [["xquad/xquad.en.json"]],
    }


def test_treebanks_of_a_language_belong_together(tmp_path):
    names = ["UD_German-GSD/de_gsd-ud-test.conllu", "UD_German-PUD/de_pud-ud-test.conllu"]
    touch(tmp_path, *names, "UD_German-GSD/de_gsd-ud-dev.conllu", "udpos/test-fi.tsv")
    assert found(tmp_path, "udpos", "test") == {"de": [names], "fi": [["udpos/test-fi.tsv"]]}


def test_one_file_of_many_languages_is_read_when_labels_are_and_may_lack_some(tmp_path):
    touch(tmp_path, "XNLI-1.0/xnli.test.tsv")
    path = tmp_path / "XNLI-1.0/xnli.test.tsv"
    path.write_text("language\tgold_label\tsentence1\tsentence2\nsw\tneutral\ta\tb\n")
    xnli = TASKS["xnli"]
    places = found(tmp_path, "xnli", "test")
    assert places == dict.fromkeys(xnli.languages, [["XNLI-1.0/xnli.test.tsv"]])
    folder = LabelFolder(str(tmp_path), "test")
    assert folder.read(xnli, "sw").text == "neutral\n"
    with pytest.raises(
        NoLabelsError, match=r"no row of this file is in de\. Labels of xnli may lie"
    ):
        folder.read(xnli, "de")


def test_squad_holds_no_labels_of_the_tasks_that_are_selected_by_it(tmp_path):
    touch(tmp_path, "squad/dev-v1.1.json")
    assert found(tmp_path, "xquad", "dev") == found(tmp_path, "mlqa", "dev") == {}


def test_a_split_that_a_task_has_not_and_an_empty_folder_hold_nothing(tmp_path):
    touch(tmp_path, "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.sw.dev.json")
    assert found(tmp_path, "tydiqa", "dev") == {}, "TyDiQA's dev files are XTREME's test files"
    assert found(tmp_path, "xnli", "test") == {}
