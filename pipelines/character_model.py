"""SentencePiece models that take the normalised text apart into characters, and what becomes of each character."""

import unicodedata

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

ModelProto = sentencepiece_model_pb2.ModelProto
_Piece = ModelProto.SentencePiece
_SPACES = {" ", "\u2581"}  # a normalised space, and how SentencePiece writes it

# What becomes of a character of the first plane, wherever it stands.
LETTER, SPACE, OTHER = range(3)
_PLANE = 1 << 16
# Normalisations that SentencePiece knows by name follow Unicode; any other may do anything.
_UNICODE_RULES = {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"}


def length(piece: _Piece) -> int:
    """Returns how many characters a piece spells, without spaces; of a character's bytes, the first counts."""
    if piece.type == _Piece.BYTE:
        return int(not is_later_byte(piece))
    if piece.type == _Piece.USER_DEFINED:
        return int(not is_space(piece))
    return sum(c not in _SPACES for c in piece.piece)


def is_space(piece: _Piece) -> bool:
    """Returns whether a piece is made of spaces."""
    return _SPACES.issuperset(piece.piece)


def is_later_byte(piece: _Piece) -> bool:
    """Returns whether a piece is a byte of a character, and not its first."""
    return piece.type == _Piece.BYTE and int(piece.piece[1:-1], 16) & 0xC0 == 0x80


def spell_unknown_characters(proto: ModelProto):
    """Makes unknown characters come as bytes, which do not hide how many they are."""
    if not proto.trainer_spec.byte_fallback:
        proto.trainer_spec.byte_fallback = True
        for byte in range(256):
            proto.pieces.add(piece=f"<0x{byte:02X}>", type=_Piece.BYTE)


def model_of_characters(proto: ModelProto) -> ModelProto:
    """Returns a model with the same normalisation, whose pieces are characters and symbols.

    Any character would do without a piece of its own, but takes longer byte by byte.
    """
    characters = ModelProto(normalizer_spec=proto.normalizer_spec)
    characters.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.CHAR
    characters.trainer_spec.treat_whitespace_as_suffix = (
        proto.trainer_spec.treat_whitespace_as_suffix
    )
    symbols = {piece.piece for piece in proto.pieces if piece.type == _Piece.USER_DEFINED}
    known = {c for piece in proto.pieces if piece.type == _Piece.NORMAL for c in piece.piece}
    characters.pieces.add(piece="[UNK]", type=_Piece.UNKNOWN)
    for character in sorted((known | _SPACES) - symbols):
        characters.pieces.add(piece=character, type=_Piece.NORMAL)
    for symbol in sorted(symbols):
        characters.pieces.add(piece=symbol, type=_Piece.USER_DEFINED)
    spell_unknown_characters(characters)
    return characters


def kinds_of_characters(proto: ModelProto) -> np.ndarray:
    """Returns what becomes of each code point of the first plane, int8 `[65536]`.

    LETTER: one character that is no space; SPACE: a space; OTHER: several characters, none, or it depends on what is
    before it. Everything is OTHER under rules that are not Unicode's.
    """
    kinds = np.full(_PLANE, OTHER, np.int8)
    symbols = any(piece.type == _Piece.USER_DEFINED for piece in proto.pieces)
    if symbols or proto.normalizer_spec.name not in _UNICODE_RULES:
        return kinds
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=model_of_characters(proto).SerializeToString()
    )
    codes = [
        code
        for code in range(1, _PLANE)
        if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    ]
    # Between digits, which nothing combines with.
    made = processor.normalize([f"0{chr(code)}0" for code in codes])
    for code, text in zip(codes, made, strict=True):
        text = text.strip(" \u2581")  # a space in front of all
        letters = sum(c not in _SPACES for c in text)
        if len(text) == 3:
            kinds[code] = LETTER if letters == 3 else SPACE
    kinds[_combining_codes()] = OTHER
    return kinds


def _combining_codes() -> list[int]:
    """Returns the code points of the first plane that may become one character with what is before them."""
    seconds = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul, which is composed by rule
    pairs = [unicodedata.decomposition(chr(code)).split() for code in range(_PLANE)]
    seconds |= {int(pair[1], 16) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
    return [
        code
        for code in range(_PLANE)
        if ord(unicodedata.normalize("NFKD", chr(code))[0]) in seconds
    ]
