import csv
import json
import pathlib

import numpy as np
import pytest
from absl import logging

from rembert_tf.pipelines import classification, xtreme

LABELS = xtreme.get_task("xnli").labels
DOWNLOAD = pathlib.Path(__file__).parents[3] / "shared" / "data" / "xtreme" / "download"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "file.tsv"
        path.write_bytes(text.encode())
        return path

    return write


@pytest.fixture
def write_as_xtreme(tmp_path):
    def write(rows):
        path = tmp_path / "file.tsv"
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t").writerows(rows)
        return path

    return write


def pair(first, second, label=None):
    return classification.SentencePair(first, second, label, 1)


def texts(pairs):
    return [(p.first, p.second, p.label) for p in pairs]


# Sentences in which quotes stand at the start, at the end, inside, doubled, alone.
QUOTES = [
    '"No', 'No"', '"No"', 'He said "no" to it.', '"" twice', '"', '""', '"""', '"a" and "b"',
    "none", 'one " more', '"a ""b"" c"',
]  # fmt: skip


# Reading


def test_xtremes_quoting_is_undone(write_as_xtreme):
    rows = [(text, other, "neutral") for text in QUOTES for other in QUOTES]
    path = write_as_xtreme(rows)
    assert b'"""No"' in path.read_bytes(), "the csv writer should have quoted"
    assert texts(classification.read_pairs(path, LABELS)) == rows
    assert len(path.read_bytes().split(b"\r\n")) == len(rows) + 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_in_plain_files_are_characters_as_any_other(write, end):
    rows = [(text, other, "neutral") for text in QUOTES for other in QUOTES]
    path = write(end.join(map("\t".join, rows)))
    assert texts(classification.read_pairs(path, LABELS)) == rows


@pytest.mark.parametrize("text", ['He said "no".', '"No"', '"', '""', 'No"', '"No'])
def test_one_field_that_no_csv_writer_writes_shows_a_plain_file(write, text):
    pairs = classification.read_pairs(write(f'"a ""b"" c"\td\n{text}\te\n'))
    assert texts(pairs) == [('"a ""b"" c"', "d", None), (text, "e", None)]


def test_the_dialect_and_the_count_are_logged(write_as_xtreme, write, caplog):
    logging.set_verbosity(logging.INFO)
    with caplog.at_level("INFO", logger="absl"):
        classification.read_pairs(write_as_xtreme([('a "b"', "c")] * 3))
        classification.read_pairs(write('sentence1\tsentence2\na "b"\tc\n'))
    first, second = (record.getMessage() for record in caplog.records)
    assert "3 pairs in 3 lines, no header, csv quoting of 3 fields undone" in first
    assert "1 pairs in 2 lines, with a header, plain fields with quotes" in second


@pytest.mark.parametrize(
    "header",
    ["premise\thypo\tlabel", "sentence1\tsentence2\tlabel", "Premise\tHypothesis\tgold_label"],
)
def test_a_header_is_found_by_its_content(write, header):
    with_label = "A man sleeps.\tNobody sleeps.\tcontradiction\n"
    without_label = "A man sleeps.\tNobody sleeps.\n"
    header_without_label = header.rpartition("\t")[0]
    for text, header_text in ((with_label, header), (without_label, header_without_label)):
        plain = classification.read_pairs(write(text * 3), LABELS)
        below_header = classification.read_pairs(write(header_text + "\n" + text * 3), LABELS)
        assert texts(plain) == texts(below_header)
        assert [p.line for p in plain] == [1, 2, 3]
        assert [p.line for p in below_header] == [2, 3, 4]


def test_a_first_line_that_only_looks_like_a_header_is_kept(write):
    pairs = classification.read_pairs(write("premise\tlabel\nlabel\tpremise\n"))
    assert texts(pairs) == [("premise", "label", None), ("label", "premise", None)]


def test_both_spellings_of_contradiction(write):
    pairs = classification.read_pairs(write("a\tb\tcontradictory\nc\td\tcontradiction\n"), LABELS)
    assert [p.label for p in pairs] == ["contradiction", "contradiction"]


def test_an_unknown_label_is_named_with_its_line(write):
    text = "a\tb\tneutral\nc\td\tentailement\n"
    with pytest.raises(ValueError, match=r"file\.tsv:2: .*contradiction, entailment, neutral.*"
                       r"'entailement' \(did you mean 'entailment'"):  # fmt: skip
        classification.read_pairs(write(text), LABELS)
    with pytest.raises(ValueError, match=r"file\.tsv:1: .*Received: ''"):
        classification.read_pairs(write("a\tb\t\n"), LABELS)
    assert classification.read_pairs(write(text))[1].label == "entailement"


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\tb\tneutral\nc\td\n", 2), ("a\tb\n\nc\td\n", 2), ("a\n", 1), ("a\tb\tc\td\n", 1)],
)
def test_the_number_of_columns(write, text, line):
    with pytest.raises(ValueError, match=rf"file\.tsv:{line}: a line must have 2 columns, 3"):
        classification.read_pairs(write(text))


def test_blank_lines_at_the_end_and_files_without_a_pair(write):
    assert len(classification.read_pairs(write("a\tb\r\n\r\n\n"))) == 1
    for text in ("", "\n", "premise\thypothesis\tlabel\n"):
        with pytest.raises(ValueError, match=r"file\.tsv:1: the file holds no sentence pair"):
            classification.read_pairs(write(text))


# The raw files, in their published columns, with made-up sentences

XNLI_HEADER = (
    "language\tgold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
    "sentence2_parse\tsentence1\tsentence2\tpromptID\tpairID\tgenre\tlabel1\tlabel2\tlabel3\t"
    "label4\tlabel5\tsentence1_tokenized\tsentence2_tokenized\tmatch\n"
)


def raw_xnli(language, label, first, second):
    rest = "1\t2\tfacetoface\tneutral\t\t\t\t\tx\ty\tTrue\n"
    return f'{language}\t{label}\t\t\t("a\t)b"\t{first}\t{second}\t{rest}'


def test_raw_xnli_holds_all_languages_in_one_file(write):
    rows = [
        ("de", "neutral", "Er las.", 'Er las "Emma".'),
        ("en", "contradiction", "He read.", "Nobody read."),
        ("de", "entailment", '"Nein"', "Es regnet."),
    ]
    path = write(XNLI_HEADER + "".join(raw_xnli(*row) for row in rows))
    german = classification.read_pairs(path, LABELS, language="de")
    assert [p.line for p in german] == [2, 4]
    assert texts(german) == [(*row[2:], row[1]) for row in (rows[0], rows[2])]
    assert len(classification.read_pairs(path, LABELS)) == 3
    with pytest.raises(ValueError, match=r"no sentence pair in sw, only in de, en\."):
        classification.read_pairs(path, LABELS, language="sw")


def test_xnli_as_json_lines(write):
    values = [
        {"language": "en", "gold_label": "neutral", "genre": "x", "sentence2": "It is\tlate.",
         "sentence1": 'A "dog".'},
        {"language": "fr", "gold_label": "entailment", "sentence1": "Un.", "sentence2": "Deux."},
    ]  # fmt: skip
    path = write("".join(json.dumps(value) + "\n" for value in values))
    assert texts(classification.read_pairs(path, LABELS, language="en")) == [
        ('A "dog".', "It is\tlate.", "neutral")
    ]
    with pytest.raises(ValueError, match=r"file\.tsv:1: an object must have `sentence1`"):
        classification.read_pairs(write('{"premise": "a"}\n'))
    with pytest.raises(ValueError, match=r"file\.tsv:2: not valid JSON"):
        classification.read_pairs(write('{"premise": "a", "hypothesis": "b"}\n{"premise"\n'))


def test_raw_pawsx_keeps_rows_with_quotes(write):
    rows = [(text, other, label) for text in QUOTES for other in ("a", '"b') for label in "01"]
    lines = [f"{n}\t{a}\t{b}\t{label}\n" for n, (a, b, label) in enumerate(rows, start=1)]
    path = write("id\tsentence1\tsentence2\tlabel\n" + "".join(lines))
    assert texts(classification.read_pairs(path, ("0", "1"))) == rows


def test_translated_training_files(write):
    text = "He read.\tIt rains.\tEr las.\tEs regnet.\tcontradictory\n"
    assert (
        texts(classification.read_pairs(write(text * 2), LABELS))
        == [("Er las.", "Es regnet.", "contradiction")] * 2
    )
    text = "premise\thypo\tlabel\nEr las.\tEs regnet.\tneutral\n"  # XNLI-MT
    pairs = classification.read_pairs(write(text), LABELS, language="de")
    assert texts(pairs) == [("Er las.", "Es regnet.", "neutral")]


def test_plain_text_gives_one_pair_a_line_whatever_it_holds():
    lines = ["a\tb", "", "only one", "a\tb\tc", '"q', "\t"]
    assert texts(classification.read_text(lines)) == [
        ("a", "b", None), ("", "", None), ("only one", "", None), ("a", "b\tc", None),
        ('"q', "", None), ("", "", None),
    ]  # fmt: skip


# Features


def test_rows_are_cls_a_sep_b_sep(tokenizer):
    pairs = [
        pair("A cat sleeps.", "It is awake.", "contradiction"),
        pair("", "B", "neutral"),
        pair("A cat sleeps.", "", "entailment"),
    ]
    features = classification.make_features(pairs, tokenizer, LABELS, 128)
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    for row, example in enumerate(pairs):
        a, b = (ids.tolist() for ids in tokenizer.encode([example.first, example.second]))
        where = slice(*features.row_splits[row : row + 2])
        assert features.input_ids[where].tolist() == [cls, *a, sep, *b, sep]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        assert features.token_type_ids[where].tolist() == types
    assert [LABELS[i] for i in features.labels] == [p.label for p in pairs]
    assert features.sample_weights.tolist() == [1.0, 1.0, 1.0]
    assert features.labels.dtype == features.input_ids.dtype == np.int32


def test_truncation_takes_from_the_longer_one():
    first, second = (a.ravel() for a in np.meshgrid(np.arange(12), np.arange(12)))
    for limit in range(2, 14):
        kept_first, kept_second = classification._truncated_lengths(first, second, limit)
        for a, b, kept_a, kept_b in zip(first, second, kept_first, kept_second, strict=True):
            while a + b > limit:
                a, b = (a - 1, b) if a > b else (a, b - 1)
            assert (kept_a, kept_b) == (a, b)


def test_long_pairs_keep_the_start_of_both(tokenizer, caplog):
    logging.set_verbosity(logging.INFO)
    long, short = "many small words " * 50, "two words"
    pairs = [pair(long, short), pair(short, long), pair(long, long), pair(short, short)]
    with caplog.at_level("INFO", logger="absl"):
        features = classification.make_features(pairs, tokenizer, LABELS, 33)
    assert "3 pairs truncated to 33" in caplog.text
    assert features.row_lengths[:3].tolist() == [33, 33, 33]
    long_ids, short_ids = (ids.tolist() for ids in tokenizer.encode([long, short]))
    row = np.split(features.input_ids, features.row_splits[1:-1])[0].tolist()
    assert row[1 : 33 - len(short_ids) - 2] == long_ids[: 30 - len(short_ids)]
    assert row[33 - len(short_ids) - 1 : -1] == short_ids


def test_pairs_without_labels_weigh_nothing(tokenizer):
    features = classification.make_features([pair("a", "b")], tokenizer, LABELS, 16)
    assert features.sample_weights.tolist() == [0.0]
    with pytest.raises(ValueError, match="must all have a label, or none. Received: 1 of 2"):
        classification.make_features(
            [pair("a", "b"), pair("a", "b", "neutral")], tokenizer, LABELS, 16
        )
    with pytest.raises(ValueError, match="`max_seq_length` must be at least 5"):
        classification.make_features([pair("a", "b")], tokenizer, LABELS, 4)


# Predictions


def test_predictions(tokenizer, tmp_path):
    features = classification.make_features([pair("a", "b")] * 3, tokenizer, LABELS, 16)
    labels = classification.predicted_labels(features, np.array([2, 0, 1]))
    assert labels == ["neutral", "contradiction", "entailment"]
    assert classification.predicted_labels(features, np.eye(3)[[2, 0, 1]]) == labels
    with pytest.raises(ValueError, match=r"`predictions` must be ids \[3\] or logits \[3, C\]"):
        classification.predicted_labels(features, np.array([0, 1]))
    classification.write_predictions(tmp_path / "xnli" / "test-en.tsv", labels)
    written = (tmp_path / "xnli" / "test-en.tsv").read_bytes()
    assert written == b"neutral\ncontradiction\nentailment\n"


@pytest.mark.skipif(not (DOWNLOAD / "pawsx").is_dir(), reason="needs XTREME's files")
def test_the_quoted_fields_of_real_files():
    changed = {}
    for path in sorted((DOWNLOAD / "pawsx").iterdir()):
        pairs = classification.read_pairs(path, ("0", "1"))
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        assert len(pairs) == len(lines) == 2000
        changed[path.stem] = sum(
            (p.first, p.second) != tuple(line.split("\t")[:2])
            for p, line in zip(pairs, lines, strict=True)
        )
    assert changed == {
        "dev-de": 9, "dev-en": 0, "dev-es": 155, "dev-ja": 11,
        "test-de": 134, "test-en": 0, "test-es": 244, "test-ja": 0,
    }  # fmt: skip
