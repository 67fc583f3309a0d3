import sys

import pytest
import tensorflow as tf

from rembert_tf.pipelines.word_splitting import split_words

AWKWARD = [
    "",
    "   ",
    "one",
    " leading and  trailing ",
    "tab\tnew\nline\r\nform\x0cfeed",
    "no\u00a0break ideographic\u3000space next\u0085line",
    "zero\u200bwidth joiner\u200dkept mark\ufeff",
    "emoji \U0001f469\u200d\U0001f52c \U0001f1ea\U0001f1fa end",
    "e\u0301 \u0301 alone  क्षि",
    "a\x00b \x00 c",
    "\u2028line\u2029paragraph\u205fmath\u1680ogham",
]
INVALID = [b"\xff", b"ab\xffcd \xfe\xfe x", b"cut \xe4\xb8", b"\xc0\x80 \xed\xa0\x80", b"\x80 \x80"]


def python_words(text):
    """Words with first code point and end, by Python's own split."""
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        yield word, start, end


def split(text):
    words = split_words(tf.constant(text, tf.string))
    for row in zip(*(part.to_list() for part in words), strict=True):
        yield [(word.decode(), start, end) for word, start, end in zip(*row, strict=True)]


def test_words_and_offsets_are_those_of_python():
    for text, words in zip(AWKWARD, split([text.encode() for text in AWKWARD]), strict=True):
        assert words == list(python_words(text)), repr(text)


def test_every_code_point_separates_exactly_where_python_does():
    code_points = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    texts = [
        "".join(f"x{chr(c)}" for c in code_points[start : start + 5000])
        for start in range(0, len(code_points), 5000)
    ]
    words = split_words(tf.constant([text.encode() for text in texts]))
    assert words.strings.to_list() == [[w.encode() for w in text.split()] for text in texts]


@pytest.mark.parametrize("text", INVALID)
def test_bytes_that_are_no_utf8_are_replaced(text):
    """How many U+FFFD a broken sequence becomes is the decoder's choice; the rest stays in place."""
    (words,) = split([text])
    assert "".join(word for word, _, _ in words).replace("\ufffd", "") == "".join(
        text.decode(errors="ignore").split()
    )
    assert any("\ufffd" in word for word, _, _ in words)
    assert all(end - start == len(word) for word, start, end in words)
    assert len(words) == len(text.decode(errors="replace").split())


def test_no_string_at_all():
    words = split_words(tf.zeros([0], tf.string))
    assert words.strings.to_list() == words.starts.to_list() == words.ends.to_list() == []
