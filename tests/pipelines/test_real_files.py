"""Every real file is read whole: examples in are examples expected, counted without the readers."""

import collections
import csv
import pathlib
import re

import numpy as np
import pytest

from rembert_tf.pipelines import classification, finetuning, readers, tagging, task_files, xtreme

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
DOWNLOAD = DATA / "xtreme" / "download"

pytestmark = pytest.mark.skipif(not DOWNLOAD.is_dir(), reason="needs the real files")


def non_empty_lines(path):
    return sum(bool(line.strip(b" \r")) for line in path.read_bytes().split(b"\n"))


def blocks(path):
    """Sentences as `awk` in paragraph mode counts them."""
    text = path.read_bytes().replace(b"\r", b"").strip(b"\n")
    return len(re.split(rb"\n\n+", text))


@pytest.mark.parametrize("name", ["xnli", "pawsx"])
def test_files_of_pairs(name):
    task = xtreme.get_task(name)
    paths = sorted((DOWNLOAD / name).glob("*.tsv"))
    assert len(paths) == {"xnli": 11, "pawsx": 8}[name]
    for path in paths:
        pairs = classification.read_pairs(path, task.labels)
        expected = {"xnli": {"dev": 2490, "test": 5010}, "pawsx": {"dev": 2000, "test": 2000}}
        assert len(pairs) == expected[name][path.stem[:-3]] == non_empty_lines(path)
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t"))
        assert [[p.first, p.second] for p in pairs] == [row[:2] for row in rows]
        labels = [p.label for p in pairs]
        assert labels == [row[2] if path.stem[:3] == "dev" else None for row in rows]


@pytest.mark.parametrize("name", ["udpos", "panx"])
def test_files_of_words(name, tmp_path):
    task = xtreme.get_task(name)
    paths = sorted((DOWNLOAD / name).glob("*.tsv"))
    assert len(paths) == {"udpos": 46, "panx": 84}[name]
    for path in paths:
        sentences = tagging.read_sentences(path, task.labels)
        assert len(sentences) == blocks(path)
        assert sum(len(s.words) for s in sentences) == non_empty_lines(path)
        assert all((s.tags is None) == path.name.startswith("test") for s in sentences)


def test_languages_of_the_layout():
    found = {
        (name, split): len(task_files.find_languages(xtreme.get_task(name), DOWNLOAD, split))
        for name, split in (("udpos", "train"), ("udpos", "dev"), ("panx", "test"), ("xnli", "dev"))
    }
    assert found == {
        ("udpos", "train"): 5, ("udpos", "dev"): 16, ("panx", "test"): 28, ("xnli", "dev"): 9
    }  # fmt: skip


def test_masakhaner():
    expected = {"swa/test": (1883, 51179), "swa/train": (6593, 175160), "zul/dev": (836, 13245)}
    for name, (sentences, words) in expected.items():
        path = DATA / "masakhaner2" / f"{name}.txt"
        read = tagging.read_sentences(path)
        assert (len(read), sum(len(s.words) for s in read)) == (sentences, words)
        assert (sentences, words) == (blocks(path), non_empty_lines(path))
        assert tagging.labels_of(read) == {
            "O", *(f"{place}-{kind}" for place in "BI" for kind in ("DATE", "LOC", "ORG", "PER"))
        }  # fmt: skip


@pytest.mark.parametrize("language", ["de", "en", "hi", "ja"])
def test_treebanks(language):
    (path,) = task_files.find_files(xtreme.get_task("udpos"), DATA / "ud_conllu", "test", language)
    text = path.read_text(encoding="utf-8")
    spans = re.findall(r"^(\d+)-(\d+)\t([^\t]+)", text, re.M)
    words = len(re.findall(r"^\d+\t", text, re.M)) - sum(int(b) - int(a) for a, b, _ in spans)
    sentences = tagging.read_sentences(path, xtreme.UPOS_TAGS, language=language)
    assert len(sentences) == text.count("# sent_id = ") == 1000
    assert sum(len(s.words) for s in sentences) == words
    # The words are those of the text that stands in the comments.
    texts = re.findall(r"^# text = (.*)", text, re.M)
    for sentence, line in zip(sentences, texts, strict=True):
        assert "".join(sentence.words).replace(" ", "") == re.sub(r"\s", "", line)

    processed = DOWNLOAD / "udpos" / f"test-{language}.tsv"
    if processed.is_file():  # XTREME's test files hold these sentences, from an older release
        there = {s.words for s in tagging.read_sentences(processed)}
        found = sum(tuple(w.replace(" ", "") for w in s.words) in there for s in sentences)
        assert found == {"en": 875}.get(language, 1000), "English words were cut otherwise then"


@pytest.mark.parametrize(
    ("name", "language"), [("udpos", "af"), ("udpos", "zh"), ("panx", "zh"), ("panx", "fa"),
                           ("xnli", "sw"), ("pawsx", "es")]
)  # fmt: skip
def test_perfect_outputs_come_back_as_the_file(name, language, tokenizer, tmp_path):
    """From a file to features, batches, predictions and a file: XTREME's counting rules hold."""
    task = xtreme.get_task(name)
    reader = readers.get_reader(task.kind)
    (path,) = task_files.find_files(task, DOWNLOAD, "dev", language)
    examples = reader.read_examples(path, task.labels)
    features = reader.make_features(examples, tokenizer, task.labels, 64)
    assert features.row_lengths.max() <= 64
    batches = finetuning.make_inference_dataset(features, 64)
    outputs = [labels for _, labels, _ in batches.dataset.as_numpy_iterator()]
    restored = batches.restore(outputs)
    np.testing.assert_array_equal(restored, features.labels)
    predictions = reader.predictions(features, restored)
    reader.write_predictions(tmp_path / "predictions.tsv", predictions)
    written = (tmp_path / "predictions.tsv").read_text(encoding="utf-8").split("\n")
    lines = [line.removesuffix("\r") for line in path.read_text(encoding="utf-8").split("\n")]
    while lines[-1] == "":
        lines.pop()
    while written[-1] == "":
        written.pop()
    assert written == [line.split("\t")[-1] for line in lines]
    counts = collections.Counter(written)
    assert len(counts) > 1
