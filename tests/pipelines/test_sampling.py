import json
import lzma
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import sampling

RAW_TEXT = pathlib.Path(__file__).parents[3] / "shared" / "data" / "rawtext"
SENTENCES = {"large": 1000, "middle": 50, "small": 5}
# The 99.9th percentile of chi-square with two degrees of freedom.
CHI_SQUARE_LIMIT = 13.8


def test_shares_by_hand():
    # 900 and 100 sentences: square roots of 0.9 and 0.1 are as 3 to 1.
    planned = sampling.shares({"en": 900, "sw": 100}, alpha=0.5)
    assert planned == pytest.approx({"en": 0.75, "sw": 0.25})
    assert sampling.shares({"en": 900, "sw": 100}, alpha=1) == pytest.approx({"en": 0.9, "sw": 0.1})
    assert sampling.shares({"en": 900, "sw": 100}, alpha=0) == pytest.approx({"en": 0.5, "sw": 0.5})


@pytest.mark.parametrize(
    "sentences, received",
    [({}, "sentences={}"), ({"en": 3, "sw": 0}, "sw=0"), ({"a": 0, "b": 0}, "a=0, b=0")],
)
def test_languages_without_sentences_are_refused(sentences, received):
    with pytest.raises(ValueError) as error:
        sampling.shares(sentences, alpha=0.5)
    assert str(error.value) == (
        f"`sentences` must be positive for every language, and there must be one. Received: {received}"
    )


@pytest.mark.parametrize("alpha", [0.3, 0.5, 0.7, 1.0])
def test_observed_shares_follow_the_planned_ones(alpha):
    planned = sampling.shares(SENTENCES, alpha)
    drawn = sampling.counts(seed=1, examples=10_000, planned=planned)
    expected = {language: 10_000 * share for language, share in planned.items()}
    chi_square = sum((drawn[name] - count) ** 2 / count for name, count in expected.items())
    assert sum(drawn.values()) == 10_000
    assert chi_square < CHI_SQUARE_LIMIT


@pytest.mark.skipif(not RAW_TEXT.is_dir(), reason="no ../shared/data/rawtext")
def test_observed_shares_of_all_languages_of_the_raw_text():
    sentences = {}
    for path in sorted(RAW_TEXT.glob("*.txt*")):
        content = path.read_bytes()
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        sentences[path.name.split(".")[0]] = sum(map(bool, content.split(b"\n")))
    assert len(sentences) > 40
    freedom = len(sentences) - 1
    # The 99.9th percentile of chi-square (Wilson and Hilferty 1931).
    limit = freedom * (1 - 2 / (9 * freedom) + 3.0902 * (2 / (9 * freedom)) ** 0.5) ** 3
    for alpha in (0.3, 0.5, 0.7, 1.0):
        planned = sampling.shares(sentences, alpha)
        drawn = sampling.counts(seed=1, examples=100_000, planned=planned)
        expected = {language: 100_000 * share for language, share in planned.items()}
        chi_square = sum((drawn[name] - count) ** 2 / count for name, count in expected.items())
        assert chi_square < limit


def test_tensorflow_and_numpy_draw_the_same_languages():
    planned = sampling.shares({f"language{i}": i * i for i in range(1, 111)}, alpha=0.5)
    numbers = np.arange(2**32 - 3000, 2**32 + 3000)
    expected = sampling.language_of_example_numpy(4, numbers, planned)
    drawn = sampling.language_of_example(4, tf.constant(numbers), planned)
    np.testing.assert_array_equal(drawn, expected)
    assert set(expected) <= set(range(110)) and len(set(expected)) > 100


def test_a_single_language_is_always_drawn():
    planned = sampling.shares({"en": 7}, alpha=0.5)
    assert sampling.counts(0, 100, planned) == {"en": 100}
    assert set(sampling.language_of_example(0, tf.range(100, dtype=tf.int64), planned).numpy()) == {
        0
    }


def test_counts_add_up_over_chunks(monkeypatch):
    planned = sampling.shares(SENTENCES, 0.3)
    whole = sampling.counts(2, 1000, planned)
    monkeypatch.setattr(sampling, "_CHUNK", 64)
    assert sampling.counts(2, 1000, planned) == whole
    assert sampling.counts(2, 0, planned) == dict.fromkeys(SENTENCES, 0)


def test_the_report_holds_planned_and_observed_shares(tmp_path):
    path = tmp_path / "shares.json"
    report = sampling.write_report(path, sentences=SENTENCES, alpha=0.5, seed=0, examples=1000)
    assert json.loads(path.read_text()) == report
    for language, share in sampling.shares(SENTENCES, 0.5).items():
        row = report["languages"][language]
        assert row["planned_share"] == share
        assert row["observed_share"] == row["observed_examples"] / 1000
        assert abs(row["observed_share"] - share) < 0.05
    empty = sampling.write_report(path, sentences=SENTENCES, alpha=0.5, seed=0, examples=0)
    assert empty["languages"]["small"]["observed_examples"] == 0
