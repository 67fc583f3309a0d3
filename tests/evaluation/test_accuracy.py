import pytest

from rembert_tf.evaluation import accuracy, files

XNLI = ("contradiction", "entailment", "neutral")


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def test_accuracy_counts_equal_labels():
    assert accuracy.accuracy(["0", "1", "1", "0"], ["0", "1", "0", "0"]) == 0.75


@pytest.mark.parametrize(("gold", "predicted"), [(["0"], ["0", "1"]), ([], [])])
def test_accuracy_refuses_other_lengths_and_nothing(gold, predicted):
    with pytest.raises(ValueError, match=r"Received: .*gold"):
        accuracy.accuracy(gold, predicted)


@pytest.mark.parametrize(
    "text",
    [
        "neutral\nentailment\n",
        "neutral\r\nentailment",
        "\ufeffneutral\nentailment\n",
        "A man.\tA woman.\tneutral\r\nYes.\tNo.\tentailment\r\n",
        '"He said ""no""."\t"A "" quote"\tneutral\r\n"x\ty"\tz\tentailment\r\n',  # csv writer's
        '"Yes\tHe said "no\tneutral\nx"\ty\tentailment\n',  # raw: a quote is only a quote
        "a\x85b\tc\u2028d\tneutral\ne\tf\tentailment\n",  # no line ends
    ],
)
def test_labels_are_the_last_column_in_every_dialect(tmp_path, text):
    path = write(tmp_path / "dev-en.tsv", text)
    assert accuracy.read_labels(path, XNLI) == ["neutral", "entailment"]


def test_other_spelling_of_a_label_is_the_same_label(tmp_path):
    path = write(tmp_path / "train-en.tsv", "a\tb\tcontradictory\n")
    aliases = {"contradictory": "contradiction"}
    assert accuracy.read_labels(path, XNLI, aliases) == ["contradiction"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("neutral\nNeutral\n", 2, "unknown label.*'Neutral'"),
        ("neutral\n\nneutral\n", 2, "no label"),
        ("neutral\na\tb\t\n", 2, "no label"),
        ("A premise.\tA hypothesis of a test file.\n", 1, "test files carry no labels"),
        ("sentence1\tsentence2\tgold_label\na\tb\tneutral\n", 1, "unknown label"),  # a header
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, line, words):
    path = write(tmp_path / "test-en.tsv", text)
    with pytest.raises(ValueError, match=rf"test-en\.tsv:{line}: .*{words}"):
        accuracy.read_labels(path, XNLI)


def test_empty_file_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="holds no label"):
        accuracy.read_labels(write(tmp_path / "test-en.tsv", ""), XNLI)


def test_bytes_that_are_no_utf8_are_named_by_line(tmp_path):
    path = write(tmp_path / "test-en.tsv", b"neutral\nneutral\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"test-en\.tsv:3: the line is not UTF-8"):
        accuracy.read_labels(path, XNLI)


def test_different_numbers_of_lines_name_both_files_and_the_first_line():
    with pytest.raises(ValueError, match=r"p\.tsv:3: .*2 predictions, 4 labels in g\.tsv"):
        accuracy.check_same_length("g.tsv", ["0"] * 4, "p.tsv", ["0"] * 2)


def test_write_atomically_replaces_the_file_or_leaves_it(tmp_path):
    path = tmp_path / "new" / "scores.json"
    files.write_atomically(str(path), "old é\n")
    with pytest.raises(UnicodeEncodeError):
        files.write_atomically(str(path), "half \ud800")
    assert path.read_text(encoding="utf-8") == "old é\n"
    assert [p.name for p in path.parent.iterdir()] == ["scores.json"]
