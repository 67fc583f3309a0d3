import json
import os
import pathlib
import re

import pytest

from rembert_tf.evaluation import answer_files, make_labels
from rembert_tf.evaluation.files import NoLabelsError
from rembert_tf.evaluation.make_labels import MakeLabelsConfig
from rembert_tf.evaluation.xtreme import evaluate_folders

SHARED_DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs ../shared/data")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def make(data_dir, output_dir, **values):
    config = MakeLabelsConfig(data_dir=str(data_dir), output_dir=str(output_dir), **values)
    return make_labels.make_labels(config)


def read_folder(folder):
    """Returns name → lines of a file, or question → answers."""
    found = {}
    for path in sorted(folder.rglob("*.*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".json":
            found[name] = answer_files.read_gold_answers(str(path))
        else:
            found[name] = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return found


def perfect_but_the_first(labels, folder):
    """Writes predictions that equal the labels, except that the first one of a file is wrong."""
    wrong = {
        "xnli": "neutral", "pawsx": "1", "udpos": "X", "panx": "O", "bucc2018": "fr-9\ten-9", "tatoeba": "0",
    }  # fmt: skip
    for name, value in labels.items():
        if name.endswith(".json"):
            answers = {key: texts[0] for key, texts in value.items()}
            write(folder / name, json.dumps(answers | {"q0": "wrong"}))
        else:
            first = wrong[name.split("/")[0]]
            first = "entailment" if first == value[0] else first
            write(folder / name, "\n".join([first, *value[1:], ""]))


def test_every_published_data_set_becomes_labels_as_xtreme_has_them(tmp_path, published):
    made = make(tmp_path / "raw", tmp_path / "labels")
    assert read_folder(tmp_path / "labels") == published
    assert {f"{w.task}/{w.language}": (w.examples, w.labels) for w in made.written} == {
        "xnli/de": (3, 3), "xnli/sw": (1, 1), "pawsx/ja": (2, 2), "udpos/de": (2, 6), "panx/sw": (2, 3),
        "xquad/hi": (2, 2), "mlqa/es": (3, 3), "tydiqa/sw": (4, 4), "tatoeba/de": (3, 3),
        "bucc2018/fr": (2, 2),
    }  # fmt: skip
    table = make_labels.table(made)
    assert re.search(r"\| udpos .* de .*gsd-ud-test\.conllu and 2 more .*\| +2 \| +6 \|", table)
    assert "pawsx: XTREME's evaluate.py needs also de, en, es, fr, ko, zh." in table
    assert (
        "xnli: no labels in ar, bg, el, en, es, fr, hi, ru, th, tr, ur, vi, zh; --tasks=xnli"
        in table
    )


def test_scores_from_published_data_equal_those_from_the_labels_folder(tmp_path, published):
    perfect_but_the_first(published, tmp_path / "predictions")
    make(tmp_path / "raw", tmp_path / "labels")
    from_raw = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "raw"))
    from_labels = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "labels"))
    assert from_raw.tasks == from_labels.tasks
    assert len(from_raw.tasks) == 9
    means = {name: result["mean"][result["main_metric"]] for name, result in from_raw.tasks.items()}
    assert means["xnli"] == pytest.approx((100 * 2 / 3 + 0) / 2)
    assert means["udpos"] == pytest.approx(100 * 5 / 6)
    assert means["tatoeba"] == pytest.approx(100 * 2 / 3)
    assert means["tydiqa"] == 75
    made = [note for note in from_raw.notes if "labels made from data as published" in note]
    assert [note.split(":")[0] for note in made] == ["pawsx", "xnli", "udpos", "panx", "tatoeba"]
    assert not any("as published" in note for note in from_labels.notes)


def test_xnlis_other_form_and_a_panx_folder_for_each_language(tmp_path):
    rows = [
        {"language": language, "gold_label": label, "sentence1": "a", "sentence2": "b"}
        for language, label in (("en", "neutral"), ("th", "entailment"), ("en", "contradiction"))
    ]
    write(tmp_path / "raw/XNLI-1.0/xnli.dev.jsonl", "\n".join(map(json.dumps, rows)))
    write(tmp_path / "raw/panx_dataset/yo/dev", "yo:Oyo\tB-LOC")
    make(tmp_path / "raw", tmp_path / "labels", split="dev")
    assert read_folder(tmp_path / "labels") == {
        "xnli/dev-en.tsv": ["neutral", "contradiction"],
        "xnli/dev-th.tsv": ["entailment"],
        "panx/dev-yo.tsv": ["B-LOC"],
    }


def test_xtremes_own_files_with_labels_become_bare_labels(tmp_path):
    write(tmp_path / "raw/udpos/dev-en.tsv", "A\tDET\nhorse\tNOUN\n\n\nran\tVERB\n\n")
    write(tmp_path / "raw/xnli/dev-en.tsv", 'a\tb\tneutral\r\n"c ""d"""\te\tentailment\r\n')
    make(tmp_path / "raw", tmp_path / "labels", split="dev")
    assert read_folder(tmp_path / "labels") == {
        "udpos/dev-en.tsv": ["DET", "NOUN", "", "VERB"],
        "xnli/dev-en.tsv": ["neutral", "entailment"],
    }


# XTREME's test file without labels, and its message.
UNLABELLED = {
    "xnli/test-de.tsv": ("Es regnet.\tEs ist nass.\r\n" * 2, r"test-de\.tsv:1: unknown label"),
    "pawsx/test-ja.tsv": ("a b\tb a\r\nc\tc .\r\n", r"test-ja\.tsv:1: unknown label.*'b a'"),
    "udpos/test-de.tsv": ("Los\n!\n\nX\nist\n", r"test-de\.tsv:1: unknown label.*'Los'"),
    "panx/test-sw.tsv": ("Ada\nO\nimba\n", r"test-sw\.tsv:1: unknown label.*'Ada'"),
    "xquad/xquad.hi.json": (
        json.dumps({"data": [{"paragraphs": [{"context": "c", "qas": [
            {"id": "q0", "question": "?", "answers": [{"answer_start": 0, "text": ""}]}
        ]}]}]}),
        r"xquad\.hi\.json: none of the 1 questions has an answer",
    ),
    "tatoeba/de-en.de": ("Zebra\nApfel\nMond\n", r"de-en\.de:1: XTREME's copy .* is sorted"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLABELLED)
def test_a_file_without_labels_is_refused_with_the_places_where_they_may_be(tmp_path, name):
    text, message = UNLABELLED[name]
    write(tmp_path / "raw" / name, text)
    if name.startswith("tatoeba"):
        write(tmp_path / "raw/tatoeba/de-en.en", "apple\nmoon\nzebra\n")
    task = name.split("/")[0]
    with pytest.raises(
        ValueError, match=rf"{message}.* Labels of {task} may lie in .*/raw as {task}/"
    ):
        make(tmp_path / "raw", tmp_path / "labels")
    assert os.listdir(tmp_path) == ["raw"]


def test_labels_are_taken_of_the_download_beside_xtremes_files_without_labels(tmp_path, published):
    for name, (text, _) in UNLABELLED.items():
        if not name.startswith("xquad"):
            write(tmp_path / "raw" / name, text)
    write(tmp_path / "raw/tatoeba/de-en.en", "apple\nmoon\nzebra\n")
    hidden = tmp_path / "raw/xquad/xquad.hi.json"
    (tmp_path / "raw/xquad-master").mkdir()
    hidden.rename(tmp_path / "raw/xquad-master/xquad.hi.json")
    write(hidden, UNLABELLED["xquad/xquad.hi.json"][0])
    make(tmp_path / "raw", tmp_path / "labels")
    assert read_folder(tmp_path / "labels") == published
    perfect_but_the_first(published, tmp_path / "predictions")
    scores = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "raw"))
    assert scores.tasks["xquad"]["mean"]["exact_match"] == 50


def test_what_has_no_labels_is_left_out_and_listed_unless_it_was_asked_for(tmp_path, published):
    write(tmp_path / "raw/udpos/test-fi.tsv", "Talo\npalaa\n")
    # A language of which every treebank is withheld, forms and tags.
    withheld = "".join(f"{n}\t_\t_\t_\t_\t_\t{n - 1}\t_\t_\t_\n" for n in (1, 2))
    write(tmp_path / "raw/ud-treebanks-v2.7/UD_Arabic-X/ar_x-ud-test.conllu", withheld)
    made = make(tmp_path / "raw", tmp_path / "labels")
    assert read_folder(tmp_path / "labels") == published
    assert made.without_labels["udpos"] == ["ar", "fi"]
    table = make_labels.table(made)
    assert "udpos: no labels in ar, fi; --tasks=udpos --languages=ar says where" in table
    make(tmp_path / "raw", tmp_path / "some", tasks=("udpos",))
    assert sorted(read_folder(tmp_path / "some")) == ["udpos/test-de.tsv"]
    for language, all_tasks, message in (
        (
            "fi",
            ((), ("udpos",)),
            r"test-fi\.tsv:1: unknown label.*Received: label='Talo'\. Labels of udpos may lie",
        ),
        (
            "ar",
            (("udpos",),),
            r"ar_x-ud-test\.conllu: the words of all sentences are withheld\. Labels of udpos may",
        ),
    ):
        for tasks in all_tasks:
            with pytest.raises(NoLabelsError, match=message):
                make(tmp_path / "raw", tmp_path / "x", tasks=tasks, languages=("de", language))
    assert not (tmp_path / "x").exists()

    write(tmp_path / "predictions/udpos/test-ar.tsv", "")
    write(tmp_path / "predictions/udpos/test-fi.tsv", "NOUN\nVERB\n")
    with pytest.raises(NoLabelsError, match=r"ar_x-ud-test\.conllu: the words"):
        evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "raw"))
    write(
        tmp_path / "predictions/udpos/test-de.tsv",
        "\n".join(published["udpos/test-de.tsv"]) + "\n",
    )
    scores = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "raw"))
    assert list(scores.tasks["udpos"]["languages"]) == ["de"]
    assert scores.tasks["udpos"]["mean"]["accuracy"] == 100
    assert "udpos: not scored, predictions but no labels: ar, fi." in scores.notes


def test_a_broken_download_that_is_not_needed_stops_nothing(tmp_path, published):
    make(tmp_path / "raw", tmp_path / "labels")
    write(tmp_path / "labels/XNLI-1.0/xnli.test.tsv", "one\ntwo\tcolumns\n")
    perfect_but_the_first(published, tmp_path / "predictions")
    scores = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "labels"))
    assert sorted(scores.tasks["xnli"]["languages"]) == ["de", "sw"]
    with pytest.raises(ValueError, match=r"xnli\.test\.tsv:1: a line must have 2 columns"):
        make(tmp_path / "labels", tmp_path / "again", tasks=("xnli",))


def test_nothing_is_left_of_a_folder_that_was_not_made_and_nothing_else_is_deleted(
    tmp_path, published
):
    write(tmp_path / ".labels.incomplete/mine.txt", "mine")
    write(tmp_path / "raw/panx_dataset/sw-test", "sw:Ada\tPER\n")
    for output_dir in ("labels", "new/parents/labels"):
        with pytest.raises(ValueError, match="unknown label.*'PER'"):
            make(tmp_path / "raw", tmp_path / output_dir)
    assert sorted(os.listdir(tmp_path)) == [".labels.incomplete", "raw"]
    make(tmp_path / "raw", tmp_path / "new/parents/labels", tasks=("xnli",))
    assert sorted(read_folder(tmp_path / "new/parents/labels")) == [
        "xnli/test-de.tsv",
        "xnli/test-sw.tsv",
    ]
    assert os.listdir(tmp_path / "new/parents") == ["labels"]
    assert (tmp_path / ".labels.incomplete/mine.txt").read_text() == "mine"
    (tmp_path / "usual").mkdir()
    modes = {(tmp_path / name).stat().st_mode for name in ("usual", "new/parents/labels")}
    assert len(modes) == 1, "readable by whoever may read any new folder"


def test_one_wrong_label_in_a_label_file_is_no_reason_to_look_elsewhere(tmp_path, published):
    write(tmp_path / "raw/xnli/test-de.tsv", "neutral\ncontradiction\nentailed\n")
    with pytest.raises(ValueError, match=r"raw/xnli/test-de\.tsv:3: unknown label.*'entailed'"):
        make(tmp_path / "raw", tmp_path / "labels", tasks=("xnli",))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("XNLI-1.0/xnli.test.tsv", "neutral", "-", r"xnli\.test\.tsv:2: unknown label.*'-'"),
        ("x-final/ja/test_2k.tsv", "\t1\n", "\n", r"test_2k\.tsv:3: a line must have 2 columns"),
        ("panx_dataset/sw-test", "anaimba\tO", "anaimba", r"sw-test:2: no label in this line"),
        ("panx_dataset/sw-test", "B-LOC", "LOC", r"sw-test:5: unknown label.*'LOC'"),
        ("ud-treebanks-v2.7/UD_German-GSD/de_gsd-ud-test.conllu", "\tINTJ", "\tINT",
         r"de_gsd-ud-test\.conllu:2: unknown label.*'INT'"),
        ("xquad/xquad.hi.json", "}]", "}", r"xquad\.hi\.json:1: this is not JSON"),
        ("bucc2018/fr-en/fr-en.training.gold", "\ten-3", "", r"training\.gold:2: a line must be two ids"),
        ("LASER-main/data/tatoeba/v1/tatoeba.deu-eng.deu", "Mond\n", "",
         r"deu-eng\.deu: there must be one line for each"),
    ],
)  # fmt: skip
def test_bad_data_is_named_by_file_and_line_and_nothing_is_written(
    tmp_path, published, name, old, new, message
):
    path = tmp_path / "raw" / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    write(path, text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        make(tmp_path / "raw", tmp_path / "labels")
    assert os.listdir(tmp_path) == ["raw"]


def test_predictions_that_do_not_fit_published_data_name_it(tmp_path, published):
    write(tmp_path / "predictions/udpos/test-de.tsv", "INTJ\nPUNCT\n\nPRON\nVERB\nADP\nDET\nNOUN\n")
    with pytest.raises(
        ValueError,
        match=r"predictions/udpos/test-de\.tsv:4: sentence 2 must have as many tags as its labels, .*"
        r"de_gsd-ud-test\.conllu and 2 more \(line 4 of the labels made of it\)",
    ):
        evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "raw"))


def test_a_second_release_of_the_treebanks_is_refused(tmp_path, published):
    again = (tmp_path / "raw/ud-treebanks-v2.7/UD_German-GSD/de_gsd-ud-test.conllu").read_text()
    write(tmp_path / "raw/ud-treebanks-v2.15/UD_German-GSD/de_gsd-ud-test.conllu", again)
    with pytest.raises(
        ValueError, match=r"udpos: the test files of de must lie in one place.*v2\.15.*v2\.7"
    ):
        make(tmp_path / "raw", tmp_path / "labels")


def test_treebanks_come_in_xtremes_order_of_their_file_names(tmp_path):
    for treebank, tag in (("ISDT", "ADJ"), ("PUD", "NOUN"), ("ParTUT", "VERB"), ("TWITTIRO", "X")):
        path = f"raw/UD_Italian-{treebank}/it_{treebank.lower()}-ud-test.conllu"
        write(tmp_path / path, f"1\t{treebank}\t_\t{tag}" + 2 * "\t_" + "\t0" + 3 * "\t_" + "\n")
    make(tmp_path / "raw", tmp_path / "labels")
    tags = ["ADJ", "", "VERB", "", "NOUN", "", "X"]
    assert read_folder(tmp_path / "labels") == {"udpos/test-it.tsv": tags}


def test_tasks_and_languages_that_are_asked_for(tmp_path, published):
    make(tmp_path / "raw", tmp_path / "labels", tasks=("xnli", "tatoeba"), languages=("de",))
    assert sorted(read_folder(tmp_path / "labels")) == ["tatoeba/test-de.tsv", "xnli/test-de.tsv"]
    for values, message in (
        ({"tasks": ("pawsx",), "languages": ("de",)}, "No test file of pawsx in de, only in ja."),
        ({"tasks": ("pawsx",), "split": "dev"}, "No dev file of pawsx. Labels of pawsx may lie in"),
        ({"languages": ("de", "xx")}, "No test file of .* in xx is in .*raw"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            make(tmp_path / "raw", tmp_path / "other", **values)
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere"):
        make(tmp_path / "nowhere", tmp_path / "other")
    with pytest.raises(ValueError, match="`tasks` must be of .*Received: tasks=pos"):
        make(tmp_path / "raw", tmp_path / "other", tasks=("pos",))
    assert not (tmp_path / "other").exists()


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path, published):
    write(tmp_path / "labels/mine.txt", "mine")
    with pytest.raises(ValueError, match="`output_dir` must be a new or an empty folder"):
        make(tmp_path / "raw", tmp_path / "labels")
    assert os.listdir(tmp_path / "labels") == ["mine.txt"]
    (tmp_path / "labels/mine.txt").unlink()
    make(tmp_path / "raw", tmp_path / "labels")
    assert len(read_folder(tmp_path / "labels")) == 10


def test_questions_stay_byte_for_byte_but_for_line_ends(tmp_path):
    question = {"id": "q", "question": "?", "answers": [{"text": "京都", "answer_start": 0}]}
    document = {"paragraphs": [{"context": "京都です", "qas": [question]}]}
    text = json.dumps({"data": [document]}, ensure_ascii=False, indent=1)
    write(tmp_path / "raw/xquad/xquad.zh.json", "\ufeff" + text.replace("\n", "\r\n"))
    make(tmp_path / "raw", tmp_path / "labels")
    assert (tmp_path / "labels/xquad/test-zh.json").read_bytes() == f"{text}\n".encode()


@needs_data
def test_real_files_give_xtremes_own_labels(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/xquad").symlink_to(SHARED_DATA / "xquad_original")
    (tmp_path / "raw/tatoeba_laser_v1").symlink_to(SHARED_DATA / "tatoeba_laser_v1")
    (tmp_path / "raw/panx").symlink_to(SHARED_DATA / "gold/labelled/panx")
    for folder in (SHARED_DATA / "ud_conllu").iterdir():
        (tmp_path / "raw" / folder.name).symlink_to(folder)
    made = make(tmp_path / "raw", tmp_path / "labels")
    counts = {(w.task, w.language): w.examples for w in made.written}
    assert {counts["udpos", language] for language in ("de", "en", "hi", "ja")} == {1000}
    assert {counts["xquad", language] for language in ("de", "en", "es", "hi", "zh")} == {1190}
    compared = 0
    for gold in sorted((SHARED_DATA / "gold/labels").glob("*/*.*")):
        ours = tmp_path / "labels" / gold.parent.name / gold.name
        if ours.suffix == ".json":
            assert json.loads(ours.read_text("utf-8")) == json.loads(gold.read_text("utf-8"))
        else:
            assert ours.read_text("utf-8").strip() == gold.read_text("utf-8").strip(), gold
        compared += 1
    assert compared == 2 + 28 + 21
    for path in (SHARED_DATA / "ud_conllu").glob("*/*.conllu"):
        text = path.read_text("utf-8")
        inside = sum(int(b) - int(a) for a, b in re.findall(r"^(\d+)-(\d+)\t", text, re.M))
        words = len(re.findall(r"^\d+\t", text, re.M)) - inside
        tags = (tmp_path / f"labels/udpos/test-{path.name[:2]}.tsv").read_text("utf-8").split()
        assert len(tags) == words, path


@needs_data
def test_real_treebanks_and_the_labels_made_of_them_give_the_same_scores(tmp_path):
    raw = SHARED_DATA / "ud_conllu"
    make(raw, tmp_path / "labels")
    for path in (tmp_path / "labels/udpos").iterdir():
        text = path.read_text("utf-8")
        write(tmp_path / "predictions/udpos" / path.name, text.replace("PROPN", "NOUN"))
    from_raw = evaluate_folders(str(tmp_path / "predictions"), str(raw))
    from_labels = evaluate_folders(str(tmp_path / "predictions"), str(tmp_path / "labels"))
    assert from_raw.tasks == from_labels.tasks
    assert 80 < from_raw.tasks["udpos"]["mean"]["accuracy"] < 100
