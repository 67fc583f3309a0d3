"""What a run reads: files by layout or by flag, translations, held-out data, labels; never a test file."""

import json
import random
import shutil

import pytest

from rembert_tf.pipelines import finetuning_data
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig

TAGS = {"dog": "NOUN", "runs": "VERB", ".": "PUNCT", "old": "ADJ", "sea": "NOUN", "sings": "VERB"}
ROWS = {"train": 60, "dev": 20, "test": 30}


def pairs(split, labelled=True, language="en"):
    """Three hypotheses a premise, as in XNLI."""
    for premise in range(ROWS[split] // 3):
        for label in ("neutral", "entailment", "contradiction"):
            text = f"{language} {split} premise {premise}\thypothesis {label}"
            yield f"{text}\t{label}" if labelled else text


def sentences(split, labelled=True):
    chooser = random.Random(split)
    for _ in range(ROWS[split]):
        words = chooser.choices(list(TAGS), k=chooser.randint(4, 9))
        yield "".join(f"{word}\t{TAGS[word]}\n" if labelled else f"{word}\n" for word in words)


@pytest.fixture
def folder(tmp_path):
    for split in ROWS:
        for name, lines in (
            ("xnli", pairs(split, split != "test")), ("udpos", sentences(split, split != "test")),
        ):  # fmt: skip
            path = tmp_path / name / f"{split}-en.tsv"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def load(folder, task="xnli", **changes):
    return finetuning_data.load(FinetuningDataConfig(task=task, data_dir=str(folder), **changes))


def test_train_and_dev_files_of_the_layout(folder):
    read = load(folder)
    assert (len(read.train), len(read.dev)) == (60, 18)
    assert read.labels == ("contradiction", "entailment", "neutral")
    assert [path.name for path in read.files] == ["train-en.tsv", "dev-en.tsv"]
    assert len(load(folder, "udpos").train) == 60


def test_files_by_flag_in_other_formats(folder, tmp_path):
    (tmp_path / "x.txt").write_text("Ali B-PER\nreads O\n\n3 B-DATE\nMay I-DATE\n")
    (tmp_path / "y.txt").write_text("Eva B-PER\nsings O\n")
    read = finetuning_data.load(
        FinetuningDataConfig(
            task="panx", labels=("data",), train_files=(str(tmp_path / "x.txt"),) * 2,
            dev_file=str(tmp_path / "y.txt"),
        )
    )  # fmt: skip
    assert len(read.train) == 4 and len(read.dev) == 1
    assert read.labels == ("B-DATE", "B-PER", "I-DATE", "O")
    with pytest.raises(ValueError, match=r"x\.txt:4: .*'B-DATE'"):
        finetuning_data.load(
            FinetuningDataConfig(
                task="panx", train_files=(str(tmp_path / "x.txt"),),
                dev_file=str(tmp_path / "y.txt"),
            )
        )  # fmt: skip


def test_labels_of_the_data_are_checked(folder, tmp_path):
    (tmp_path / "lower.txt").write_text("Ali per\nreads o\n")
    config = FinetuningDataConfig(
        task="panx", labels=("data",), train_files=(str(tmp_path / "lower.txt"),),
        dev_file=str(tmp_path / "lower.txt"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="must be O, B-<type> and I-<type>. Received: 'o'"):
        finetuning_data.load(config)


def test_given_labels_decide_ids_and_what_is_allowed(folder):
    order = ("neutral", "entailment", "contradiction")
    assert load(folder, labels=order).labels == order
    with pytest.raises(ValueError, match=r"train-en\.tsv:3: .*'contradiction'"):
        load(folder, labels=("neutral", "entailment"))


def test_translated_training_files_are_added(folder):
    translations = folder / "xnli/translate-train"
    translations.mkdir()
    for language in ("de", "sw"):
        lines = [
            f"en\ten\t{line}" for line in pairs("train", language=language)
        ]  # English pair, translated pair, label
        path = translations / f"en-{language}-translated.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = load(folder, translate_train=("de", "sw"))
    assert len(read.train) == 180 and len(read.dev) == 18
    starts = [example.first.split()[0] for example in read.train]
    assert starts == ["en"] * 60 + ["de"] * 60 + ["sw"] * 60
    with pytest.raises(FileNotFoundError, match=r"en-th-translated\.tsv"):
        load(folder, translate_train=("th",))
    # Translations are never selected by, and stay, also those of what is held out.
    held_out = load(folder, translate_train=("de", "sw"), dev_fraction=0.3)
    assert [e.first for e in held_out.dev] == [e.first for e in load(folder, dev_fraction=0.3).dev]
    starts = [example.first.split()[0] for example in held_out.train]
    assert starts == ["en"] * (60 - len(held_out.dev)) + ["de"] * 60 + ["sw"] * 60


def test_held_out_data_keep_premises_together_and_do_not_depend_on_the_order(folder):
    read = load(folder, dev_fraction=0.3)
    assert len(read.train) + len(read.dev) == 60 and 3 <= len(read.dev) <= 36
    premises = [{example.first for example in part} for part in (read.train, read.dev)]
    assert not premises[0] & premises[1] and len(premises[0] | premises[1]) == 20
    path = folder / "xnli/train-en.tsv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[::-1]) + "\n")
    assert {example.first for example in load(folder, dev_fraction=0.3).dev} == premises[1]
    with pytest.raises(ValueError, match="of 20 premises, .* leaves 60 .* and 0 to select by"):
        load(folder, dev_fraction=1e-6)


def test_a_task_without_dev_files_says_what_to_do(folder):
    train = folder / "tydiqa/tydiqa-goldp-v1.1-train"
    train.mkdir(parents=True)
    (train / "tydiqa.goldp.en.train.json").write_text("{}")
    with pytest.raises(ValueError, match="tydiqa has no dev files: hold out .*`dev_fraction`"):
        load(folder, "tydiqa")


def test_a_limited_number_of_examples_is_drawn_by_the_seed(folder):
    def draw(**changes):
        return [example.line for example in load(folder, **changes).train]

    assert draw() == draw(max_train_examples=70) == list(range(1, 61))
    some = draw(max_train_examples=10, seed=1)
    assert some == draw(max_train_examples=10, seed=1) != draw(max_train_examples=10, seed=2)
    assert some == sorted(set(some)) and len(some) == 10 and some != list(range(1, 11))


# Test files


@pytest.mark.parametrize("name", ["test-en.tsv", "test_2k.tsv", "xnli.test.tsv", "my-TEST.tsv"])
@pytest.mark.parametrize("flag", ["dev_file", "train_files"])
def test_a_test_file_is_refused_by_its_name(folder, name, flag):
    path = folder / "xnli" / name
    if name != "test-en.tsv":
        shutil.copy(folder / "xnli/dev-en.tsv", path)
    value = str(path) if flag == "dev_file" else (str(path),)
    with pytest.raises(ValueError, match=f"{name}: a test file by its name; training and"):
        load(folder, **{flag: value})


def test_a_link_to_a_test_file_is_refused_by_its_name(folder):
    (folder / "chosen.tsv").symlink_to(folder / "xnli/test-en.tsv")
    with pytest.raises(ValueError, match=r"chosen\.tsv: a test file by its name"):
        load(folder, dev_file=str(folder / "chosen.tsv"))


def test_words_that_only_contain_test_are_no_test_files(folder):
    for name in ("latest.tsv", "contest-en.tsv"):
        shutil.copy(folder / "xnli/dev-en.tsv", folder / name)
        assert len(load(folder, dev_file=str(folder / name)).dev) == 18


@pytest.mark.parametrize("task", ["xnli", "udpos"])
@pytest.mark.parametrize("change", ["copy", "labelled", "shuffled", "half", "more"])
def test_a_test_file_is_refused_by_its_content(folder, task, change):
    """In another folder, under another name, with labels, in another order, in part, in company."""
    labelled, made = change != "copy", {"xnli": pairs, "udpos": sentences}[task]
    lines = list(made("test", labelled))
    if change == "shuffled":
        random.Random(0).shuffle(lines)
    if change == "half":
        lines = lines[: 2 + len(lines) // 2]
    if change == "more":
        lines += made("dev")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "chosen.tsv").write_text("\n".join(lines) + "\n")
    for changes in (
        {"dev_file": str(elsewhere / "chosen.tsv")},
        {"train_files": (str(elsewhere / "chosen.tsv"),)},
    ):
        with pytest.raises(
            ValueError, match=r"chosen\.tsv: \d+ of \d+ different examples stand in"
        ):
            load(folder, task, **changes)


def test_a_test_file_of_another_language_is_refused(folder):
    """Under another name, in a folder of its own: the layout's files of all languages are compared."""
    german = list(pairs("test", language="de"))
    (folder / "xnli/test-de.tsv").write_text("\n".join(german) + "\n")
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere/chosen.tsv").write_text("\n".join(german) + "\n")
    name = str(folder / "elsewhere/chosen.tsv")
    for changes in ({"dev_file": name}, {"train_files": (name,)}):
        with pytest.raises(ValueError, match=r"30 of 30 .* stand in the test file .*test-de\.tsv"):
            load(folder, **changes)
    (folder / "xnli/test-de.tsv").unlink()
    assert len(load(folder, dev_file=name).dev) == 30


# Dev files that hold a test file


def questions(*texts):
    """One paragraph a text, with two questions each."""
    paragraphs = [
        {
            "context": f"Text {text}.",
            "qas": [
                {"id": f"{text}-{n}", "question": f"{n}?", "answers": [{"text": "Text", "answer_start": 0}]}
                for n in range(2)
            ],
        }
        for text in texts
    ]  # fmt: skip
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


@pytest.fixture
def squad(tmp_path):
    """SQuAD's dev file holds all of XQuAD's English questions."""
    for name, texts in (
        ("squad/train-v1.1.json", range(100, 110)),
        ("squad/dev-v1.1.json", range(10)),
        ("xquad/xquad.en.json", range(2, 6)),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(questions(*texts))
    return tmp_path


def test_a_published_dev_file_is_read_without_the_test_questions_in_it(squad, caplog):
    caplog.set_level("INFO", logger="absl")
    dev = load(squad, "xquad").dev
    assert [question.id for question in dev] == [
        f"{t}-{n}" for t in (0, 1, 6, 7, 8, 9) for n in (0, 1)
    ]
    assert (
        "8 dev examples left out: they stand in" in caplog.text and "xquad.en.json" in caplog.text
    )
    with pytest.raises(ValueError, match=r"dev-v1\.1\.json: 8 of 20 different examples stand in"):
        load(squad, "xquad", dev_file=str(squad / "squad/dev-v1.1.json"))
    with pytest.raises(ValueError, match=r"dev-v1\.1\.json: 8 of 20 different examples stand in"):
        load(squad, "xquad", train_files=(str(squad / "squad/dev-v1.1.json"),))
    (squad / "xquad/xquad.en.json").write_text(questions(*range(10)))
    with pytest.raises(ValueError, match=r"dev-v1\.1\.json: all 20 examples stand in .*xquad\.en"):
        load(squad, "xquad")
    (squad / "xquad/xquad.en.json").write_text(questions(0, *range(200, 209)))
    assert len(load(squad, "xquad").dev) == 20, "a few that are the same are chance"


def test_answers_that_cannot_be_scored_are_refused_before_training(squad):
    name = str(squad / "squad/train-v1.1.json")
    with pytest.raises(ValueError, match="answers can be scored: ar, .*train_language='fr'"):
        load(squad, "xquad", train_files=(name,), dev_file=name, train_language="fr")


def test_a_test_file_beside_the_chosen_file_is_compared(folder):
    beside = folder / "beside"
    beside.mkdir()
    (beside / "dev.tsv").write_text("\n".join(pairs("test")) + "\n")
    (beside / "gold-test.tsv").write_text("\n".join(pairs("test", False)) + "\n")
    (beside / "test-of-something-else.tsv").write_bytes(b"\xff\tno text\n")
    (folder / "alone").mkdir()
    train = shutil.copy(folder / "xnli/train-en.tsv", folder / "alone/train.tsv")
    config = FinetuningDataConfig(
        task="xnli", train_files=(str(train),), dev_file=str(beside / "dev.tsv")
    )
    with pytest.raises(ValueError, match=r"stand in the test file .*gold-test\.tsv"):
        finetuning_data.load(config)
    (beside / "gold-test.tsv").unlink()
    assert len(finetuning_data.load(config).dev) == 30
