"""Tatoeba's and BUCC's files: orders, ids, gold, and what is refused."""

import pathlib

import numpy as np
import pytest

from rembert_tf.pipelines import retrieval_files, sentence_features, task_files, xtreme
from rembert_tf.pipelines.retrieval_files import read_parallel, read_sentences

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
DOWNLOAD = DATA / "xtreme" / "download"
needs_real_files = pytest.mark.skipif(not DOWNLOAD.is_dir(), reason="needs the real files")


def write(folder, files):
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_lasers_english_is_sorted_and_the_gold_lines_are_kept(tmp_path):
    english = ["we read ", "A house", "the sea", "A house"]
    write(tmp_path, {"tatoeba.deu-eng.eng": english, "tatoeba.deu-eng.deu": "wxyz"})
    (sentences,) = read_sentences(tmp_path / "tatoeba.deu-eng.deu", language="de")
    assert sentences.english == ("A house", "A house", "the sea", "we read")
    assert sentences.gold == (1, 3, 2, 0)
    assert sentences.other == tuple("wxyz") and sentences.language == "de"


def test_xtremes_files_do_not_tell_the_gold_lines(tmp_path):
    write(tmp_path, {"de-en.en": ["A\u2028B", "C", "c"], "de-en.de": "xyz"})
    (sentences,) = read_sentences(tmp_path / "de-en.de")
    assert sentences == retrieval_files.TatoebaSentences(
        language="de", english=("A\u2028B", "C", "c"), other=("x", "y", "z")
    )


def test_l2_an_english_file_in_another_order_is_refused(tmp_path):
    """XTREME's labels are in the order of the sorted file; with LASER's own order they are noise."""
    write(tmp_path, {"de-en.en": ["A", "C", "B"], "de-en.de": "xyz"})
    with pytest.raises(ValueError, match=r"de-en\.en:3: the English lines must be sorted.*'B'"):
        read_sentences(tmp_path / "de-en.de")


def test_parallel_files_must_be_parallel(tmp_path):
    write(tmp_path, {"a": "123", "b": "12", "none": ""})
    with pytest.raises(ValueError, match="b: there must be one line .*Received: 2 lines for 3"):
        read_parallel(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ValueError, match="Received: 0 lines for 0"):
        read_parallel(tmp_path / "none", tmp_path / "none")


BUCC = {"en": ["en-1\tA", "en-2\tB c\td"], "zh": ["zh-7\tX", "zh-8\tY"]}


def write_bucc(folder, split, gold):
    files = {f"zh-en.{split}.{side}": lines for side, lines in BUCC.items()}
    write(folder, files | {f"zh-en.{split}.gold": gold})
    return folder / f"zh-en.{split}.zh"


@pytest.mark.parametrize("split", ["dev", "sample"])
def test_dev_pairs_of_bucc_have_gold(tmp_path, split):
    (sentences,) = read_sentences(write_bucc(tmp_path, split, ["zh-7\ten-2"]))
    assert sentences == retrieval_files.BuccSentences(
        language="zh",
        english={"en-1": "A", "en-2": "B c\td"},
        other={"zh-7": "X", "zh-8": "Y"},
        gold=frozenset({("zh-7", "en-2")}),
    )


@pytest.mark.parametrize("split", ["test", "training"])
def test_l5_gold_of_test_pairs_is_never_read(tmp_path, split):
    (sentences,) = read_sentences(write_bucc(tmp_path, split, ["not even a pair"]))
    assert sentences.gold is None and len(sentences.other) == 2


@pytest.mark.parametrize(
    "name, lines, message",
    [
        ("zh-en.dev.zh", ["zh-7\tX", "zh-8"], r"dev\.zh:2: a line must be an id, a tab, and"),
        ("zh-en.dev.en", ["en-1\t ", "en-2\tB"], r"dev\.en:1: a line must be an id, a tab"),
        ("zh-en.dev.en", ["en-1\tA", "en-1\tB"], r"dev\.en:1: an id must occur once.*'en-1'"),
        ("zh-en.dev.zh", [], r"dev\.zh: the file holds no sentence"),
        ("zh-en.dev.gold", ["en-2\tzh-7"], r"dev\.gold:1: both ids must be in the files"),
    ],
)
def test_bad_lines_are_named(tmp_path, name, lines, message):
    path = write_bucc(tmp_path, "dev", ["zh-7\ten-2"])
    write(tmp_path, {name: lines})
    with pytest.raises(ValueError, match=message):
        read_sentences(path)


def test_other_names_and_missing_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="`path` must be a file of Tatoeba"):
        read_sentences(tmp_path / "test-de.tsv")
    write(tmp_path, {"de-en.de": "x"})
    with pytest.raises(FileNotFoundError, match=r"de-en\.en"):
        read_sentences(tmp_path / "de-en.de")


@pytest.mark.parametrize("folder", ["tatoeba-tmp", "LASER-master/data/tatoeba/v1"])
def test_lasers_files_are_found_by_the_code_of_two_letters(tmp_path, folder):
    codes = ("cmn", "swh", "epo")
    write(tmp_path, {f"{folder}/tatoeba.{c}-eng.{side}": "a" for c in codes for side in (c, "eng")})
    task = xtreme.get_task("tatoeba")
    assert task_files.find_languages(task, tmp_path, "test") == ("epo", "sw", "zh")
    for language, code in (("zh", "cmn"), ("epo", "epo")):
        (path,) = task_files.find_files(task, tmp_path, "test", language)
        assert path.name == f"tatoeba.{code}-eng.{code}"


def test_buccs_own_names_are_found(tmp_path):
    names = [f"bucc2018/de-en/de-en.{split}.de" for split in ("sample", "training")]
    write(tmp_path, dict.fromkeys(names, "a"))
    task = xtreme.get_task("bucc2018")
    for split, name in zip(("dev", "test"), names, strict=True):
        assert task_files.find_languages(task, tmp_path, split) == ("de",)
        assert task_files.find_files(task, tmp_path, split, "de") == (tmp_path / name,)


def test_every_language_of_tatoeba_has_a_code_of_three_letters():
    assert set(xtreme.get_task("tatoeba").languages) <= set(xtreme.THREE_LETTERS)
    assert len(set(xtreme.THREE_LETTERS.values())) == len(xtreme.THREE_LETTERS)


def test_rows_of_sentences(tokenizer):
    texts = ["The old man reads a book.", "", "We eat bread and drink tea in the morning."]
    features = sentence_features.make_features(texts, tokenizer, 8)
    rows = np.split(features.input_ids, features.row_splits[1:-1])
    for row, pieces in zip(rows, tokenizer.encode(texts), strict=True):
        assert row.tolist() == [tokenizer.cls_id, *pieces[:6].tolist(), tokenizer.sep_id]
    assert features.row_lengths.tolist() == [8, 2, 8] and not features.token_type_ids.any()
    with pytest.raises(ValueError, match="`max_seq_length` must be at least 3"):
        sentence_features.make_features(texts, tokenizer, 2)


@needs_real_files
def test_real_tatoeba_in_both_layouts():
    """Lines are counted as bytes; LASER's order, sorted here, is XTREME's, and gives its labels."""
    task = xtreme.get_task("tatoeba")
    languages = task_files.find_languages(task, DOWNLOAD, "test")
    assert len(languages) == 21
    assert set(languages) == set(task_files.find_languages(task, DATA, "test"))
    for language in languages:
        (path,) = task_files.find_files(task, DOWNLOAD, "test", language)
        (sentences,) = read_sentences(path, language=language)
        count = path.read_bytes().count(b"\n")
        assert count == (390 if language == "sw" else 1000)
        assert len(sentences.other) == len(sentences.english) == count
        (laser_path,) = task_files.find_files(task, DATA, "test", language)
        (from_laser,) = read_sentences(laser_path, language=language)
        labels = (DATA / "gold/labels/tatoeba" / f"test-{language}.tsv").read_text().split()
        assert from_laser.english == sentences.english
        assert from_laser.other == sentences.other
        assert list(from_laser.gold) == [int(label) for label in labels]


@needs_real_files
def test_real_bucc():
    (sentences,) = read_sentences(DOWNLOAD / "bucc2018" / "zh-en.dev.zh")
    counts = {
        side: (DOWNLOAD / "bucc2018" / f"zh-en.dev.{side}").read_bytes().count(b"\n")
        for side in ("zh", "en", "gold")
    }
    assert counts == {"zh": 8624, "en": 13589, "gold": 257}
    assert len(sentences.other) == counts["zh"] and len(sentences.english) == counts["en"]
    assert len(sentences.gold) == counts["gold"]
