import shutil
import subprocess
import sys

import pytest

from rembert_tf.evaluation.question_answering import corrected_words
from rembert_tf.pipelines import task_files, tsv, xtreme

UDPOS = xtreme.get_task("udpos")


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


XTREME_LANGUAGES = {
    "xnli": 15, "pawsx": 7, "udpos": 33, "panx": 40, "xquad": 11, "mlqa": 7, "tydiqa": 9,
    "bucc2018": 4, "tatoeba": 36,
}  # fmt: skip


def test_languages_and_labels_are_those_of_xtreme():
    assert {name: len(task.languages) for name, task in xtreme.TASKS.items()} == XTREME_LANGUAGES
    for task in xtreme.TASKS.values():
        assert task.languages == tuple(sorted(set(task.languages)))
    # The order of the labels is the order of their ids in every checkpoint: it must not change.
    assert xtreme.get_task("xnli").labels == ("contradiction", "entailment", "neutral")
    assert xtreme.get_task("pawsx").labels == ("0", "1")
    assert UDPOS.labels == tuple(sorted(UDPOS.labels)) and len(set(UDPOS.labels)) == 17
    panx = ("B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O")
    assert xtreme.get_task("panx").labels == panx
    assert set(xtreme.get_task("panx").languages) - set(xtreme.get_task("tatoeba").languages) == {
        "en", "ms", "my", "yo"
    }  # fmt: skip


def test_what_is_trained_has_a_score_and_test_files():
    assert xtreme.TRAINABLE == ("xnli", "pawsx", "udpos", "panx", "xquad", "mlqa", "tydiqa")
    for name, task in xtreme.TASKS.items():
        assert "test" in task.files
        assert bool(task.score) == (name in xtreme.TRAINABLE)


def test_languages_whose_answers_can_be_scored_are_those_of_the_evaluation():
    known = set(xtreme.ANSWER_LANGUAGES)
    for language in known:
        assert corrected_words("a b", language)[-1] == "b"
    for task in xtreme.TASKS.values():
        for language in set(task.languages) - known:
            with pytest.raises(ValueError, match=f"split into words: .*language='{language}'"):
                corrected_words("a b", language)
        assert task.kind != "question_answering" or known.issuperset(task.languages)


def test_unknown_task_lists_the_tasks():
    with pytest.raises(ValueError, match=r"`task` must be one of xnli, .*tatoeba.*task='pos'"):
        xtreme.get_task("pos")


def test_where_predictions_lie(tmp_path):
    path = task_files.prediction_path(UDPOS, tmp_path, "dev", "en")
    assert path == tmp_path / "udpos" / "dev-en.tsv"
    path = task_files.prediction_path(xtreme.get_task("mlqa"), tmp_path, "test", "zh")
    assert path == tmp_path / "mlqa" / "test-zh.json"
    with pytest.raises(ValueError, match="one of train, dev, test, translate_train. Received"):
        task_files.prediction_path(UDPOS, tmp_path, "valid", "en")


def test_languages_are_found_sorted_and_beyond_xtremes_own(tmp_path):
    for name in ("test-zh.tsv", "test-en.tsv", "dev-en.tsv", "test-cy.tsv", "test-en.tsv.bak"):
        write(tmp_path / "udpos" / name, b"a\n")
    assert task_files.find_languages(UDPOS, tmp_path, "test") == ("cy", "en", "zh")
    assert task_files.find_languages(UDPOS, tmp_path, "dev") == ("en",)


# Split and language -> the files that must be found, among all of these.
LAYOUTS = {
    ("xnli", "train", "en"): ["XNLI-MT-1.0/multinli/multinli.train.en.tsv"],
    ("xnli", "dev", "sw"): ["XNLI-1.0/xnli.dev.tsv"],
    ("xnli", "translate_train", "de"): ["XNLI/translate-train/en-de-translated.tsv"],
    ("pawsx", "train", "en"): ["x-final/en/train.tsv"],
    ("pawsx", "dev", "ja"): ["x-final/ja/dev_2k.tsv"],
    ("pawsx", "translate_train", "ja"): ["x-final/ja/translated_train.tsv"],
    ("udpos", "test", "en"): [
        "UD_English-EWT/en_ewt-ud-test.conllu", "UD_English-PUD/en_pud-ud-test.conllu"
    ],
    ("panx", "train", "en"): ["panx_dataset/en-train"],
    ("panx", "test", "zh"): ["panx_dataset/zh/test"],
    ("xquad", "train", "en"): ["squad/train-v1.1.json"],
    ("xquad", "test", "th"): ["xquad/xquad.th.json"],
    ("mlqa", "test", "hi"): ["mlqa/MLQA_V1/test/test-context-hi-question-hi.json"],
    ("mlqa", "dev", "en"): ["mlqa/MLQA_V1/dev/dev-context-en-question-en.json"],
    ("tydiqa", "train", "ko"): ["tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.ko.train.json"],
    ("tydiqa", "test", "ko"): ["tydiqa/tydiqa-goldp-v1.1-dev/tydiqa.goldp.ko.dev.json"],
    ("tatoeba", "test", "de"): ["tatoeba/de-en.de"],
    ("bucc2018", "dev", "zh"): ["bucc2018/zh-en.dev.zh"],
}  # fmt: skip


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    """Raw downloads of all tasks as empty files, with others beside them."""
    folder = tmp_path_factory.mktemp("downloads")
    others = [
        "tatoeba/de-en.en", "bucc2018/zh-en.dev.en", "bucc2018/zh-en.dev.gold",
        "UD_Enga-X/enq_x-ud-test.conllu", "UD_English-EWT/en_ewt-ud-dev.conllu",
        "mlqa/MLQA_V1/test/test-context-hi-question-en.json", "x-final/en/test_2k.tsv",
    ]  # fmt: skip
    for name in (*(name for names in LAYOUTS.values() for name in names), *others):
        write(folder / name, b"")
    return folder


@pytest.mark.parametrize("key", LAYOUTS, ids="-".join)
def test_files_are_found_where_their_authors_publish_them(downloads, key):
    name, split, language = key
    task = xtreme.get_task(name)
    found = task_files.find_files(task, downloads, split, language)
    assert [path.relative_to(downloads).as_posix() for path in found] == LAYOUTS[key]
    assert language in task_files.find_languages(task, downloads, split)


def test_languages_of_raw_downloads(downloads):
    def found(name, split):
        return task_files.find_languages(xtreme.get_task(name), downloads, split)

    assert found("xnli", "dev") == xtreme.get_task("xnli").languages  # one file holds them all
    assert found("mlqa", "test") == ("hi",), "question and text in the same language"
    assert found("udpos", "test") == ("en", "enq")
    assert found("xquad", "train") == ("en",)
    assert found("tatoeba", "test") == ("de",) and found("bucc2018", "dev") == ("zh",)
    for split, flag in (("train", "train_files"), ("dev", "dev_file")):
        message = (
            rf"squad/{split}-v1\.1\.json is in en only; give `{flag}`. Received: language='de'"
        )
        with pytest.raises(FileNotFoundError, match=message):
            task_files.find_files(xtreme.get_task("xquad"), downloads, split, "de")
    with pytest.raises(FileNotFoundError, match=r"No file .*dev-context-de-question-de\.json"):
        task_files.find_files(xtreme.get_task("mlqa"), downloads, "dev", "de")


def test_processed_files_come_before_raw_ones(downloads, tmp_path):
    shutil.copytree(downloads, tmp_path / "both")
    path = write(tmp_path / "both/pawsx/train-en.tsv", b"")
    assert task_files.find_files(xtreme.get_task("pawsx"), tmp_path / "both", "train", "en") == (
        path,
    )


def test_two_releases_of_the_treebanks_are_refused(tmp_path):
    for release in ("v2.5", "v2.7"):
        for split in ("train", "test"):
            name = f"ud-treebanks-{release}/UD_Tamil-TTB/ta_ttb-ud-{split}.conllu"
            write(tmp_path / name, b"")
    for split in ("train", "test"):
        message = rf"udpos: the {split} files of ta must lie in one place.*v2\.5.*v2\.7"
        with pytest.raises(ValueError, match=message):
            task_files.find_files(UDPOS, tmp_path, split, "ta")


def test_missing_files_are_named_with_what_is_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*udpos; `data_dir` is"):
        task_files.find_languages(UDPOS, tmp_path, "train")
    write(tmp_path / "udpos" / "dev-en.tsv", b"a\tX\n")
    with pytest.raises(FileNotFoundError, match=r"No file train-<language>\.tsv.*dev-en\.tsv"):
        task_files.find_languages(UDPOS, tmp_path, "train")
    with pytest.raises(FileNotFoundError, match=r"No file .*udpos.train-fa\.tsv.*dev-en\.tsv"):
        task_files.find_files(UDPOS, tmp_path, "train", "fa")
    assert task_files.find_files(UDPOS, tmp_path, "dev", "en") == (tmp_path / "udpos/dev-en.tsv",)
    with pytest.raises(ValueError, match="tydiqa has no dev files, only train, test, translate"):
        task_files.find_files(xtreme.get_task("tydiqa"), tmp_path, "dev", "en")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ((), "must be different names"),
        (("O", "O"), "must be different names. Received: labels=O,O"),
        (("O", ""), "must be different names"),
        (("B", "I", "O"), "must be O, B-<type> and I-<type>. Received: 'B'"),
        (("B-", "O"), "Received: 'B-'"),
        (("b-per", "O"), "Received: 'b-per'"),
        (("o", "B-PER"), "Received: 'o'"),
        (("B-PER", "I-PER"), "must include O"),
    ],
)
def test_label_sets_of_spans(labels, message):
    with pytest.raises(ValueError, match=message):
        xtreme.check_labels(xtreme.get_task("panx"), labels)
    xtreme.check_labels(xtreme.get_task("panx"), ("O", "B-DATE", "I-DATE"))
    xtreme.check_labels(UDPOS, ("noun", "verb"))


def test_lines_end_at_line_feeds_alone(tmp_path):
    text = "\ufeffa\u2028b\r\n\u0085\nc\x0bd\r\n\nlast"
    lines = tsv.read_lines(write(tmp_path / "file", text.encode()))
    assert lines == ["a\u2028b", "\u0085", "c\x0bd", "", "last"]
    assert tsv.read_lines(write(tmp_path / "file", b"")) == []


def test_a_file_that_is_no_utf8_is_named_with_its_line(tmp_path):
    path = write(tmp_path / "file.tsv", b"one\ntwo\nna\xefve\n")
    with pytest.raises(ValueError, match=r"file\.tsv:3: the file must be UTF-8.*0xef"):
        tsv.read_lines(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "new" / "file.tsv"
    tsv.write_lines(path, ["old"])

    def lines():
        yield "new"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tsv.write_lines(path, lines())
    assert path.read_bytes() == b"old\n"
    assert list(path.parent.iterdir()) == [path]


def test_task_descriptions_and_configuration_do_not_import_tensorflow(tmp_path):
    program = (
        "import sys; from rembert_tf.pipelines import finetuning_config; "
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
