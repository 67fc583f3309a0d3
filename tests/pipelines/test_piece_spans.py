"""Offsets: which characters of the user's text each piece stands for (H1 to H4), beside SentencePiece's own."""

import io
import random

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from rembert_tf.pipelines import character_model
from rembert_tf.pipelines.flat_spans import encode_spans, pieces_of_characters
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.tokenization import RemBertTokenizer

AWKWARD = [
    *("", " ", "   ", "\x00", "\x07", "\u0301", "\u200d", "\u2581", "\ufeff", "\ufffd", "."),
    "a  ½", "ﬁne ﬃ", "ｶﾞｷﾞ ｱ", "\u1112\u1161\u11ab\u1100\u116e\u11a8", "Ｆｕｌｌ Ｗｉｄｅ", "a\u00a0b",
    "zero\u200bwidth", "\ufdfa \ufdfa", "a..b…c", "น้ำ ทำ", "e\u0301é x\u0308ẍ q\u0308", "a\u0323\u0302",
    "\U0001f469\u200d\U0001f52cx \U0001f1ea\U0001f1fa", "  lead  trail  ", "\r\n a\r\nb\r\n", "\x07a\x07 b\x7f",
    "क़लम क\u093c न\u093c", "می\u200cشود", "\U00020000\U00020001z\U00020000", "½½1½", "¨a¨ ´ ", "\u2581a\u2581",
    "x\u0085y\u2028z", "DŽ\u030c Ǆ ǆ", "㍿㈱ № ™ ㎏", "[CLS] [MASK]", "\x00a\x00b",
]  # fmt: skip
POOL = [*"ab .,0½ﬁ…①ำนéेक़한ｶﾞ中文日本語😀¨´Ｆµ™№㈱ǆŉж", *"\u0301\u0308\u1112\u1161\u11ab\u093c\ufdfa\u0e33",
        *" \u00a0\u200b\u200c\u3000\t\n\r\u200d\x07\x00\u2581\U00020000\U00020001"]  # fmt: skip


@pytest.fixture(scope="module", params=["unknown", "bytes", "identity", "suffix", "symbols", "bpe"])
def vocabulary(request, small_world):
    """A small vocabulary of each kind."""
    options = {
        "unknown": {},
        "bytes": {"byte_fallback": True, "vocab_size": 560},
        "identity": {"normalization_rule_name": "identity"},
        "suffix": {"treat_whitespace_as_suffix": True},
        "symbols": {"user_defined_symbols": ["½", "ﬁne", "a\u0301"]},
        "bpe": {"model_type": "bpe", "remove_extra_whitespaces": False},
    }[request.param]
    model = io.BytesIO()
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences, "1⁄2 ... ff", "ガ キ 中文", "صلى الله عليه وسلم"] * 3),
        model_writer=model,
        **{"vocab_size": 320, "character_coverage": 0.98, "minloglevel": 2} | options,
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="[PAD]", unk_piece="[UNK]",
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    )  # fmt: skip
    return RemBertTokenizer(model.getvalue())


def texts(count, seed=0):
    chooser = random.Random(seed)
    made = ["".join(chooser.choices(POOL, k=chooser.randrange(20))) for _ in range(count)]
    for _ in range(count // 4):
        codes = (chooser.randrange(0x30000) for _ in range(10))
        made.append("".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000))
    return made


def rows(spans):
    for start, end in zip(spans.splits[:-1], spans.splits[1:], strict=True):
        yield [part[start:end].tolist() for part in spans[:3]]


def test_spans_are_those_of_sentencepiece(vocabulary):
    """The pieces' places in the normalised text, taken back by SentencePiece's own alignment."""
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=vocabulary.shared_model.model_bytes
    )
    examples = AWKWARD + texts(400)
    compared = 0
    for text, (ids, starts, ends) in zip(
        examples, rows(encode_spans(vocabulary, examples)), strict=True
    ):
        if processor.encode(text) != ids:
            continue  # two versions of SentencePiece break ties in other ways; see the next test
        normalised, origins = processor.normalize(text, with_offsets=True)
        assert_spans(
            text, processor.encode(text, return_type="proto"), normalised, origins, starts, ends
        )
        compared += 1
    assert compared > 0.97 * len(examples)


def assert_spans(text, proto, normalised, origins, starts, ends):
    place, previous = 0, 0
    for piece, start, end in zip(proto.pieces, starts, ends, strict=True):
        spelled = piece.piece
        is_byte = len(spelled) == 6 and spelled.startswith("<0x")
        if is_byte and int(spelled[1:5], 16) & 0xC0 == 0x80:
            assert (start, end) == previous, repr(text)  # all bytes stand for the whole character
            continue
        length = 1 if is_byte else len(spelled)
        letters = [i for i in range(place, place + length) if normalised[i] not in "\u2581 "]
        place += length
        if letters:
            next_origin = (o for o in origins[letters[-1] :] if o > origins[letters[-1]])
            assert (start, end) == (origins[letters[0]], next(next_origin)), repr(text)
        else:
            assert start == end, repr(text)
        previous = (start, end)
    assert place == len(normalised)


def test_ids_are_those_of_the_tokenizer(vocabulary):
    examples = AWKWARD + texts(400, seed=1)
    for made, ids in zip(
        rows(encode_spans(vocabulary, examples)), vocabulary.encode(examples), strict=True
    ):
        assert made[0] == ids.tolist()


def test_counting_gives_what_looking_up_gives(vocabulary):
    assert_both_ways_agree(vocabulary, AWKWARD + texts(400, seed=3))


def test_what_is_a_simple_character(tokenizer):
    """Every character of the first plane, behind a letter and before one."""
    codes = (code for code in range(0x10000) if not 0xD800 <= code < 0xE000)
    assert_both_ways_agree(tokenizer, [f"e{chr(code)}x" for code in codes])


def test_ordinary_text_is_simple(tokenizer):
    """Otherwise nothing would be gained by counting."""
    kinds = character_model.kinds_of_characters(
        character_model.ModelProto.FromString(tokenizer.model_bytes)
    )
    kind_of = {c: kinds[ord(c)] for c in "aé’“中한かΩжبไก्，\t \u00a0\u200b…½\u0301\u3099\u1161\x07"}
    letters = [c for c, kind in kind_of.items() if kind == character_model.LETTER]
    spaces = [c for c, kind in kind_of.items() if kind == character_model.SPACE]
    assert "".join(letters) == "aé’“中한かΩжبไก्，" and "".join(spaces) == "\t \u00a0\u200b"


def assert_both_ways_agree(tokenizer, examples):
    counted = encode_spans(tokenizer, examples)
    looked_up = SpanTokenizer(tokenizer).tokenize(examples)
    np.testing.assert_array_equal(counted.ids, looked_up.ids.values)
    np.testing.assert_array_equal(counted.splits, looked_up.ids.row_splits)
    np.testing.assert_array_equal(counted.starts, looked_up.starts.values)
    np.testing.assert_array_equal(counted.ends, looked_up.ends.values)


def test_spans_are_in_order_and_leave_out_nothing_but_spaces(vocabulary):
    """H3."""
    examples = texts(400, seed=2)
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.model_bytes)
    made_nothing_of = {
        c for c in {*"".join(examples)} if not processor.normalize(c).strip(" \u2581")
    }
    for text, (_, starts, ends) in zip(
        examples, rows(encode_spans(vocabulary, examples)), strict=True
    ):
        spans = [span for span in zip(starts, ends, strict=True) if span[0] < span[1]]
        assert all(0 <= start <= end <= len(text) for start, end in zip(starts, ends, strict=True))
        for (start, end), (next_start, next_end) in zip(spans[:-1], spans[1:], strict=True):
            assert start <= next_start and end <= next_end
        covered = {place for start, end in spans for place in range(start, end)}
        left_out = {text[place] for place in range(len(text)) if place not in covered}
        assert left_out <= made_nothing_of, repr(text)


def test_works_in_graphs(vocabulary):
    spans = SpanTokenizer(vocabulary)
    function = tf.function(spans.tokenize, input_signature=[tf.TensorSpec([None], tf.string)])
    for examples in (AWKWARD, [], [""], ["½"]):
        strings = tf.constant([text.encode() for text in examples], tf.string)
        for made, expected in zip(function(strings), spans.tokenize(strings), strict=True):
            assert made.to_list() == expected.to_list()
            assert made.nrows() == len(examples) and made.dtype == tf.int32


@pytest.mark.parametrize(
    "text, words",
    [
        ("ﬁne ½", ["ﬁne", "½"]),  # H1
        ("ｶﾞ ｱ", ["ｶﾞ", "ｱ"]),
        ("\u1112\u1161\u11ab \u1100", ["\u1112\u1161\u11ab", "\u1100"]),  # H3
        ("Ｆｕｌｌ\u00a0Ｗ\u200bx", ["Ｆｕｌｌ", "Ｗ", "x"]),
        ("\r\nnew\r\nline e\u0301", ["new", "line", "e\u0301"]),
        ("می\u200cشود 😀", ["می", "شود", "😀"]),
        ("\ud83dx lone", ["\ud83dx", "lone"]),
    ],
)
def test_words_are_cut_out_of_the_users_own_text(tokenizer, text, words):
    ids, starts, ends = next(rows(encode_spans(tokenizer, [text])))
    covered = np.zeros(len(text), bool)
    for start, end in zip(starts, ends, strict=True):
        covered[start:end] = True
    assert (
        "".join(c if kept else " " for c, kept in zip(text, covered, strict=True)).split() == words
    )


def test_each_piece_of_one_character_has_all_of_it(tokenizer):
    """H2: one character that becomes a phrase of four words."""
    ids, starts, ends = next(rows(encode_spans(tokenizer, ["a \ufdfa b"])))
    of_phrase = [span for span in zip(starts, ends, strict=True) if span[0] < span[1]][1:-1]
    assert len(of_phrase) >= 4 and set(of_phrase) == {(2, 3)}


def test_pieces_of_characters(tokenizer):
    """Beside the definition: all pieces that share a character with the stretch."""
    examples = ["", "The old  house ½ e\u0301", "  ", "\ufdfa", "Старый дом"]
    spans = encode_spans(tokenizer, examples)
    cases = [
        (number, start, end)
        for number, text in enumerate(examples)
        for start in range(len(text) + 1)
        for end in range(start, len(text) + 1)
    ]
    first, last = pieces_of_characters(spans, *np.array(cases).T)
    for (number, start, end), *found in zip(cases, first.tolist(), last.tolist(), strict=True):
        shared = [
            piece
            for piece in range(spans.splits[number], spans.splits[number + 1])
            if max(start, spans.starts[piece]) < min(end, spans.ends[piece])
        ]
        assert found == ([shared[0], shared[-1]] if shared else [-1, -1])
