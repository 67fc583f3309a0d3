import dataclasses
import functools

import numpy as np
import pytest

from rembert_tf.pipelines import text_files, vocabulary_sample
from rembert_tf.pipelines.vocabulary_sample import (
    LanguageSample,
    characters_of,
    read_sentences,
    sample_sizes,
    spelling_of,
    trainable,
)

sentences_of = functools.partial(read_sentences, clean_up=True)


@pytest.fixture
def sample(tmp_path):
    """Makes the sample of a language with numbered sentences."""

    def make(language, sentences, wanted):
        file = tmp_path / f"{language}.txt"
        file.write_text("".join(f"{language} {i}\n" for i in range(sentences)))
        return LanguageSample(
            language=language, files=(file,), sentences=sentences, wanted=wanted, seed=0,
            clean_up=True,
        )  # fmt: skip

    return make


def test_sample_sizes_by_hand():
    # Shares at alpha 0.5 are as 3 to 1; at 1 they follow the text.
    assert sample_sizes({"en": 900, "sw": 100}, 0.5, 10_000) == {"en": 750, "sw": 250}
    assert sample_sizes({"en": 900, "sw": 100}, 1.0, 10_000) == {"en": 900, "sw": 100}
    assert sample_sizes({"en": 900, "sw": 100}, 0.5, 40) == {"en": 30, "sw": 10}
    assert sample_sizes({"en": 10**6, "sw": 1}, 1.0, 100) == {"en": 100, "sw": 1}


def test_the_sample_has_the_planned_size_and_repeats_small_languages(sample, monkeypatch):
    en, sw = sample("en", 3000, 1500), sample("sw", 100, 250)
    large, small = list(en.taken()), list(sw.taken())
    assert abs(len(large) - 1500) < 150 and len(set(large)) == len(large)
    assert abs(len(small) - 250) < 30
    assert {small.count(line) for line in set(small)} == {2, 3}
    assert large == list(en.taken())
    assert large != list(dataclasses.replace(en, seed=1).taken())
    monkeypatch.setattr(vocabulary_sample, "_CHUNK", 7)
    assert large == list(en.taken()) and small == list(sw.taken())


def test_what_was_left_out_is_measured_where_it_is_enough(sample):
    en = sample("en", 3000, 1500)
    texts, unseen = en.to_measure(200)
    assert unseen and len(texts) == 200 and not set(texts) & set(en.taken())
    texts, unseen = sample("de", 3000, 2950).to_measure(200)
    assert not unseen and len(texts) == 200
    texts, unseen = sample("sw", 30, 60).to_measure(200)
    assert not unseen and len(texts) == 30


@pytest.mark.parametrize("sentences, wanted, count", [(3998, 2000, 1000), (3000, 3000, 1600)])
def test_sentences_are_measured_from_all_over_the_text(sample, sentences, wanted, count):
    texts, _ = sample("en", sentences, wanted).to_measure(count)
    numbers = [int(text.split()[1]) for text in texts]
    assert len(numbers) == count and numbers == sorted(set(numbers))
    by_quarter = np.histogram(numbers, bins=4, range=(0, sentences))[0]
    assert by_quarter.min() > 0.9 * count / 4


def test_long_lines_are_cut_at_spaces(tmp_path):
    file = tmp_path / "en.txt"
    words, solid = "ab cde " * 3000, "\u66f8" * 10_000
    file.write_text(f"short\n{words}\n\n{solid}\n" + " " * 9000 + "end\n", encoding="utf-8")
    first, *parts = sentences_of((file,))
    assert first == "short" and parts[-1] == "end"
    assert max(map(len, parts)) <= vocabulary_sample.LONGEST_SENTENCE
    of_words = [part for part in parts[:-1] if "a" in part]
    assert " ".join(of_words) == words.strip() and len(of_words) == 6
    of_solid = [part for part in parts[:-1] if "\u66f8" in part]
    assert [len(part) for part in of_solid] == [4096, 4096, 1808]


def test_the_clean_up_of_records_is_switchable(tmp_path):
    file = tmp_path / "en.txt"
    file.write_text("a\u200fb\n\u200f\n", encoding="utf-8")
    assert list(sentences_of((file,))) == ["ab"]
    assert list(read_sentences((file,), clean_up=False)) == ["a\u200fb", "\u200f"]


def test_spellings_of_special_pieces_get_a_space():
    pattern = spelling_of(("[CLS]", "[MASK]", "<0x41>"))
    assert trainable("a[CLS] [MASK][MASK] <0x41>", pattern) == "a[ CLS] [ MASK][ MASK] < 0x41>"
    assert trainable("[cls] MASK [SEP]", pattern) == "[cls] MASK [SEP]"
    assert trainable("a\0b\u2585", pattern) == "a b "


def test_characters_are_counted_after_normalisation(tmp_path):
    (tmp_path / "en.txt").write_text("ﬁ e\u0301 ½\u00ad", encoding="utf-8")
    files = text_files.find_inputs(tmp_path)["en"]
    assert characters_of(files, clean_up=True) == set("fi é1\u20442")
    assert characters_of(files, clean_up=False) == set("fi é1\u20442\u00ad")
