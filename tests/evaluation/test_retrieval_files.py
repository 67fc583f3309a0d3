import pytest

from rembert_tf.evaluation import retrieval_files


def write(path, text):
    path.write_bytes(text.encode())
    return str(path)


def test_line_numbers(tmp_path):
    path = write(tmp_path / "test-de.tsv", "3\r\n0\n 12 \n0")
    assert retrieval_files.read_line_numbers(path) == [3, 0, 12, 0]


@pytest.mark.parametrize(
    ("text", "line"),
    [("1\n-1\n", 2), ("1\n\n2\n", 2), ("1.0\n", 1), ("1\n2\t3\n", 2), ("x", 1), ("٣", 1)],
)
def test_a_line_that_is_no_number_is_named(tmp_path, text, line):
    path = write(tmp_path / "test-de.tsv", text)
    with pytest.raises(ValueError, match=rf"test-de\.tsv:{line}: a line must be the number"):
        retrieval_files.read_line_numbers(path)


def test_pairs(tmp_path):
    path = write(tmp_path / "test-de.tsv", "de-1\ten-2\r\nde-3\ten-1\nde-1\ten-2\n")
    assert retrieval_files.read_pairs(path) == [
        ("de-1", "en-2"),
        ("de-3", "en-1"),
        ("de-1", "en-2"),
    ]
    assert retrieval_files.read_pairs(write(tmp_path / "none.tsv", "")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("de-1\ten-2\nde-1 en-2\n", "2: a line must be two ids"),
        ("de-1\t\n", "1: a line must be two ids"),
        ("\nde-1\ten-2\n", "1: a line must be two ids"),
        ("1.1\tde-1\ten-2\n", "1: a line must be two ids"),
        ("en-2\tde-1\n", "1: the English id must come second"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, text, words):
    path = write(tmp_path / "test-de.tsv", text)
    with pytest.raises(ValueError, match=rf"test-de\.tsv:{words}"):
        retrieval_files.read_pairs(path)


def test_pair_scores_by_hand():
    gold = {("a", "1"), ("b", "2"), ("c", "3")}
    assert retrieval_files.score_pairs(gold, {("a", "1"), ("b", "9")}) == pytest.approx(
        (1 / 2, 1 / 3, 2 / 5)
    )
    assert retrieval_files.score_pairs(gold, set()) == (0, 0, 0)
    assert retrieval_files.score_pairs(gold, {("a", "2")}) == (0, 0, 0)
    with pytest.raises(ValueError, match="at least one pair"):
        retrieval_files.score_pairs(set(), gold)
