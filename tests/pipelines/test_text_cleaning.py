import unicodedata

import pytest

from rembert_tf.pipelines.text_cleaning import clean_up


@pytest.mark.parametrize(
    "text, clean",
    [
        ("cafe\u0301", "caf\u00e9"),  # NFC
        ("cafe\u00ad\u0301", "caf\u00e9"),  # of what stands together when the soft hyphen has gone
        ("a\x00b\x1bc\x7fd\x9fe", "abcde"),  # NUL and other control characters
        ("a\x0bb\x0cc\rd\x1ee\x85f", "a b c d e f"),  # those that are white space
        ("a\tb", "a\tb"),
        ("\u200f\u0623\u200e b\u061c\u202ac\u202c\u2067d\u2069", "\u0623 bcd"),  # direction marks
        ("Donau\u00addampf\u2060schiff\ufeff", "Donaudampfschiff"),
        ("line\none\u2028still one", "line\none\u2028still one"),
    ],
)
def test_what_shows_nothing_goes(text, clean):
    assert clean_up(text) == clean
    assert clean_up(clean) == clean and unicodedata.is_normalized("NFC", clean)


@pytest.mark.parametrize(
    "text",
    [
        "\u0645\u06cc\u200c\u0634\u0648\u062f",  # Persian: non-joiner inside a word
        "\u0915\u094d\u200d\u0937",  # Devanagari: joiner
        "\u0d28\u0d4d\u200d",  # Malayalam
        "\u1780\u17b6\u179a\u200b\u1784\u17b6\u179a",  # Khmer: zero-width space between words
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\ufe0f",  # emoji: joiner, variation selector
        "\u0e40\u0e01\u0e49\u0e32",
    ],
)
def test_what_writing_needs_stays(text):
    assert clean_up(text) == text


def test_line_numbers_stay():
    text = "\u200f\n\x00\n\na\u0301\r\n"
    assert clean_up(text).count("\n") == text.count("\n")
