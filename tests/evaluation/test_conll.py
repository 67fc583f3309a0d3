import pathlib

import pytest

from rembert_tf.evaluation.conll import score_conll

MASAKHANER = pathlib.Path(__file__).parents[3] / "shared" / "data" / "masakhaner2"


def write(path, text):
    path.write_bytes(text.encode())
    return str(path)


@pytest.fixture
def gold(tmp_path):
    return write(tmp_path / "gold.txt", "Ada B-PER\nLovelace I-PER\nwrote O\n\nKyiv B-LOC\n")


def test_spans_and_tokens_by_hand(tmp_path, gold):
    text = "-DOCSTART- -X- O\n\nAda\tX\tB-PER\r\nLovelace\tX\tI-PER\r\nwrote\tX\tI-LOC\r\n\r\n\r\nKiev\tX\tO"
    result = score_conll(gold, write(tmp_path / "predicted.txt", text))
    # Predicted: PER right, LOC wrong; LOC missed. Strict: the lone I-LOC is no span.
    assert result.scores == pytest.approx(
        {"accuracy": 50, "precision": 50, "recall": 50, "f1": 50, "f1_strict": 200 / 3}
    )
    assert (result.sentences, result.tokens, result.misfits) == (2, 4, [])
    assert (result.other_tokens, result.invalid_tags) == (1, 1)


def test_tags_that_are_no_spans_have_an_accuracy_only(tmp_path):
    gold = write(tmp_path / "gold.txt", "horses NOUN\nrun VERB\n")
    result = score_conll(gold, write(tmp_path / "predicted.txt", "horses NOUN\nrun NOUN\n"))
    assert result.scores == {"accuracy": 50}


def test_sentences_that_do_not_fit(tmp_path, gold):
    predicted = write(tmp_path / "predicted.txt", "Ada B-PER\nLovelace I-PER\n\nKyiv B-LOC\n")
    with pytest.raises(ValueError, match=r"predicted\.txt:1: .*gold\.txt:1.*2 here, 3 there"):
        score_conll(gold, predicted)
    result = score_conll(gold, predicted, skip_misfits=True)
    assert result.scores["f1"] == 100
    assert result.sentences == 1
    assert result.misfits == [f"{gold}:1"]
    assert "1 sentences left out" in result.table()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada B-PER\nLovelace\n", r"predicted\.txt:2: a line must be a token and a tag"),
        ("Ada B-PER\n", r"predicted\.txt: .*same number of sentences. Received: 1 here, 2 in"),
        ("\n", r"predicted\.txt: the file holds no sentence"),
    ],
)
def test_wrong_files_are_named(tmp_path, gold, text, words):
    with pytest.raises(ValueError, match=words):
        score_conll(gold, write(tmp_path / "predicted.txt", text))


@pytest.mark.skipif(not MASAKHANER.is_dir(), reason="needs ../shared/data/masakhaner2")
def test_the_published_predictions_of_rembert_in_swahili():
    """Published: F1 0.9208 on 1,883 sentences, of which 1,876 fit the gold file."""
    predicted = MASAKHANER / "published_rembert" / "swa_rembert" / "test_predictions1.txt"
    gold = MASAKHANER / "swa" / "test.txt"
    result = score_conll(str(gold), str(predicted), skip_misfits=True)
    assert (result.sentences, len(result.misfits)) == (1876, 7)
    assert result.scores["f1"] == pytest.approx(92.1212, abs=1e-4)
    assert result.scores["f1"] == pytest.approx(92.0765, abs=0.1)  # as published
