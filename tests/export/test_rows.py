"""No answer depends on the other strings of a request, whatever there is among them."""

import json

import numpy as np
import pytest

QUESTIONS = {
    "tagger": [("serve_text", ("text",)), ("serve_pieces", ("text",))],
    "classifier": [("serve_text", ("text",)), ("serve_pairs", ("text", "text_pair"))],
    "questions": [("serve_text", ("question", "context"))],
    "masked_lm": [("fill_mask", ("text",))],
    "encoder": [("embed", ("text",))],
}
CASES = [(name, *case) for name, cases in QUESTIONS.items() for case in cases]


def ask(served, name, signature, names, texts):
    columns = (texts, texts[1:] + texts[:1])
    return served[name](signature, **dict(zip(names, columns[: len(names)], strict=True)))


def same(one, other):
    """One row's answers, less what fills it up, are the same."""
    for key in one:
        a, b = (np.atleast_1d(answer[key]) for answer in (one, other))
        a, b = (x[: max(len(a), len(b))] for x in (a, b))
        width = min(len(a), len(b))
        if a.dtype.kind == "f":
            np.testing.assert_allclose(a[:width], b[:width], atol=1e-5, rtol=1e-5)
        else:
            assert np.array_equal(a[:width], b[:width]), key
        rest = np.concatenate([a[width:].ravel(), b[width:].ravel()]).tolist()
        assert set(rest) <= {"", 0, -1}, key


@pytest.mark.parametrize("name, signature, names", CASES)
def test_neighbours_and_order_do_not_matter(served, all_text, name, signature, names):
    texts = all_text[::3] + ["The old [MASK] reads [MASK].", "word " * 100, "", "[MASK]"]
    seconds = texts[1:] + texts[:1]
    order = np.random.default_rng(0).permutation(len(texts))
    together = ask(served, name, signature, names, texts)
    shuffled = served[name](
        signature,
        **dict(zip(names, ([texts[i] for i in order], [seconds[i] for i in order]), strict=False)),
    )
    for place, number in enumerate(order):
        row = {key: value[number] for key, value in together.items()}
        same(row, {key: value[place] for key, value in shuffled.items()})
        if place < 4:
            alone = served[name](
                signature, **dict(zip(names, ([texts[number]], [seconds[number]]), strict=False))
            )
            same(row, {key: value[0] for key, value in alone.items()})


@pytest.mark.parametrize("name, signature, names", CASES)
def test_no_string_at_all_is_answered_with_nothing(served, name, signature, names):
    answer = ask(served, name, signature, names, [])
    for_one = ask(served, name, signature, names, ["The old man [MASK]."])
    assert set(answer) == set(for_one)
    for key, value in answer.items():
        assert value.shape[0] == 0 and value.ndim == for_one[key].ndim
        assert value.dtype == for_one[key].dtype


def test_no_words_at_all(served):
    for words in (np.zeros((0, 0), object), np.zeros((0, 3), object), np.zeros((2, 0), object)):
        answer = served["tagger"]("serve_words", words=words)
        assert answer["tags"].shape == words.shape


HOSTILE = {
    "empty": b"",
    "spaces": b" \t \n  ",
    "no-break spaces": "\u00a0\u3000".encode(),
    "NUL bytes": b"\x00\x00",
    "NUL bytes in text": b"a\x00b \x00 c",
    "invalid UTF-8": b"\xff\xfe bad \xe4\xb8",
    "overlong and surrogate bytes": b"\xc0\x80 \xed\xa0\x80 ok",
    "emoji": "\U0001f469\u200d\U0001f52c\U0001f1ea\U0001f1fa\U0001f600".encode(),
    "control characters": bytes(range(1, 32)),
    "one long word": b"x" * 5000,
}


@pytest.mark.parametrize("name, signature, names", CASES)
def test_hostile_strings_are_answered(served, name, signature, names):
    texts = list(HOSTILE.values())
    answer = ask(served, name, signature, names, texts)
    for key, value in answer.items():
        assert len(value) == len(texts)
        assert value.dtype.kind != "f" or np.isfinite(value).all(), key
        json.dumps(value.tolist(), allow_nan=False)


def test_what_hostile_strings_are_answered(served):
    texts = list(HOSTILE.values())
    counts = [np.sum(row != "") for row in served["tagger"](text=texts)["words"]]
    # Bytes that are no UTF-8 become U+FFFD; NUL is a character; one long word is cut, not left out.
    assert counts == [0, 0, 0, 1, 3, 3, 3, 1, 2, 1]
    answer = served["questions"](question=["who?"] * len(texts), context=texts)
    has_text = [text for text, answered in zip(HOSTILE, answer["answer"], strict=True) if answered]
    assert {"empty", "spaces", "no-break spaces", "control characters"}.isdisjoint(has_text)
    assert {"emoji", "invalid UTF-8", "one long word"} <= set(has_text)
    assert not answer["truncated"].any()
    long = served["questions"](question=["word " * 100, "who?"], context=["The old man."] * 2)
    assert long["truncated"].tolist() == [True, False] and all(long["answer"])
    # A literal [CLS] is text.
    cls, brackets = served["encoder"](text=["[CLS]", "x"])["embedding"]
    assert np.abs(cls - brackets).max() > 1e-3


def test_a_string_of_a_million_bytes(served):
    text = "The old man reads a book. " * 40_000
    assert len(text) > 1_000_000
    beginning = text[:600]
    for name, signature, names in CASES:
        if name == "questions":
            continue
        whole = ask(served, name, signature, names, [text])
        start = ask(served, name, signature, names, [beginning])
        assert whole["truncated"].all() and start["truncated"].all()
        for key in whole:
            assert whole[key].shape == start[key].shape  # what is cut off takes no memory
            if whole[key].dtype.kind == "f":
                np.testing.assert_allclose(whole[key], start[key], atol=1e-5)
            else:
                assert np.array_equal(whole[key], start[key])


def test_a_context_of_fifty_thousand_bytes_is_read_to_its_end(served):
    context = "The old man reads a book. " * 2_000
    answer = served["questions"](question=["who?"], context=[context + "\U0001f600 snow \u96ea"])
    start, end = answer["start"][0], answer["end"][0]
    assert 0 <= start < end <= len(context) + 8 and answer["answer"][0]


def test_ten_thousand_strings(served, all_text):
    texts = (all_text * 200)[:10_000]
    for name, signature in (("tagger", "serve_text"), ("encoder", "embed")):
        answer = served[name](signature, text=texts)
        few = served[name](signature, text=all_text)
        for key, value in answer.items():
            assert len(value) == 10_000
            rows = value[: len(all_text)]
            if value.dtype.kind == "f":
                np.testing.assert_allclose(rows, few[key], atol=1e-5)
            else:
                assert np.array_equal(rows, few[key])
