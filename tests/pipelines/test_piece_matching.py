import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines.piece_matching import match_pieces, spell_pieces
from rembert_tf.pipelines.tokenization import RemBertTokenizer

KINDS = sentencepiece_model_pb2.ModelProto.SentencePiece
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BYTES = [(f"<0x{byte:02X}>", "BYTE") for byte in range(256)]


def tokenizer_of(*pieces):
    """A tokenizer of these pieces in this order; `(piece, kind)` where the kind is not NORMAL."""
    proto = sentencepiece_model_pb2.ModelProto()
    proto.normalizer_spec.name = "identity"
    proto.trainer_spec.byte_fallback = BYTES[0] in pieces
    for piece in pieces:
        piece, kind = piece if isinstance(piece, tuple) else (piece, "NORMAL")
        if piece == "[UNK]":
            kind = "UNKNOWN"
        elif piece.startswith("["):
            kind = "CONTROL"
        score = -1.0 if kind == "NORMAL" else 0.0
        proto.pieces.add(piece=piece, score=score, type=KINDS.Type.Value(kind))
    return RemBertTokenizer(proto.SerializeToString())


def test_pieces_match_by_string_and_special_pieces_by_role():
    old = tokenizer_of(*SPECIAL, "▁a", "b", "▁")
    new = tokenizer_of("▁", "[MASK]", "[PAD]", "b", "[UNK]", "[SEP]", "[CLS]", "▁a")
    match = match_pieces(old, new)
    assert match.kept.tolist() == [7, 4, 0, 6, 1, 3, 2, 5]
    assert not match.parts and match.ordinary.tolist() == [5, 6, 7]


def test_a_new_piece_is_spelled_as_inside_a_text():
    old = tokenizer_of(*SPECIAL, "▁", "a", "b", "ab")
    new = tokenizer_of(*SPECIAL, "bab", "▁abb", "bxa", "xy")
    match = match_pieces(old, new)
    pieces = old.pieces()
    parts = {new.pieces()[i]: [pieces[j] for j in ids] for i, ids in match.parts.items()}
    assert parts == {
        "bab": ["b", "ab"],  # and no space in front
        "▁abb": ["▁", "ab", "b"],
        "bxa": ["b", "a"],  # x is unknown
    }
    assert match.kept[5:].tolist() == [-1] * 4


def test_a_special_piece_matches_no_text():
    old = tokenizer_of(*SPECIAL, "s", ("t", "CONTROL"), ("<u>", "UNUSED"), ("<v>", "CONTROL"))
    new = tokenizer_of(*SPECIAL, ("s", "CONTROL"), "t", ("<u>", "UNUSED"), ("<w>", "CONTROL"))
    match = match_pieces(old, new)
    assert match.kept[5:].tolist() == [-1, -1, 7, -1]
    assert not match.parts  # neither a control piece nor a `t` that is unknown can be spelled


def test_a_byte_matches_no_text_that_looks_like_it():
    letters = ("<", "0", "x", "4", "1", ">")
    old = tokenizer_of(*SPECIAL, *letters, "<0x41>")
    new = tokenizer_of(*SPECIAL, *BYTES, "4")
    match = match_pieces(old, new)
    assert match.kept[5:].tolist() == [-1] * 256 + [8] and not match.parts


def test_a_character_is_spelled_by_its_bytes_where_there_are_bytes():
    old = tokenizer_of(*SPECIAL, *BYTES, "a")
    match = match_pieces(old, tokenizer_of(*SPECIAL, "é"))
    assert match.parts[5].tolist() == [5 + 0xC3, 5 + 0xA9]


def test_real_pieces_are_spelled_as_the_tokenizer_splits_them(tokenizer):
    words = ["▁Freund", "▁hounds", "▁маленький"]
    spelled = spell_pieces(tokenizer.model_bytes, words)
    for word, ids in zip(words, spelled, strict=True):
        np.testing.assert_array_equal(ids, tokenizer.encode([word[1:]])[0])
    (inside,) = spell_pieces(tokenizer.model_bytes, ["hounds"])
    assert "".join(tokenizer.pieces()[i] for i in inside) == "hounds"


@pytest.mark.parametrize("count", [0, 1])
def test_few_pieces(count, tokenizer):
    assert len(spell_pieces(tokenizer.model_bytes, ["▁a"] * count)) == count
