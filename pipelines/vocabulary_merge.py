"""Appends the pieces of a new language to an old vocabulary, whose pieces keep their ids and their scores.

Unigram SentencePiece splits a text so that the sum of its pieces' scores, log-probabilities, is largest. New pieces
compete with the old ones, and with good scores they would change how the old languages are split. So the grown file is
made as a mixture with one percent of the new language: a new piece scores what its own file gives it plus ln 0.01. That
is well below the old pieces of its length, and well above the short pieces in which the old file splits the new
language.

Measured with an old file of 8,000 pieces in five languages, and 2,100 and 2,300 new ones for Swahili and Welsh, which
are written in letters that it knows: text of the new language got 39 and 46 % fewer pieces, no more than in a file of
its own, and text of the old languages 0.4 % fewer. With the new file's scores as they stand, these were 0.8 and 0.9 %.
"""

import math

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines.piece_matching import spell_pieces

NEW_SHARE = 0.01
_PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece


def merge_vocabularies(old_model: bytes, new_model: bytes, max_new_pieces: int) -> bytes:
    """Appends to the old vocabulary what it lacks of the new one.

    Single characters come first, since text would be unknown without them; then the longer pieces, both in the order
    of the new file, the best score first. Pieces that would never be used are left out: those that score less than
    their spelling with old pieces, and those that the old file's normalisation changes.

    Args:
        old_model: The vocabulary file to extend; unigram.
        new_model: A vocabulary file of the new language; unigram.
        max_new_pieces: How many pieces are appended, at most.

    Returns:
        The grown vocabulary file.

    Raises:
        ValueError: A file is no unigram vocabulary.

    Example:
        >>> merge_vocabularies(tokenizer.model_bytes, tokenizer.model_bytes, 100) == tokenizer.model_bytes
        True
    """
    merged = _parse(old_model, "old_model")
    present = {piece.piece for piece in merged.pieces}
    lacking = [
        _PIECE(piece=piece.piece, score=piece.score + math.log(NEW_SHARE))
        for piece in _parse(new_model, "new_model").pieces
        if piece.type == _PIECE.NORMAL and piece.piece not in present
    ]
    lacking.sort(key=lambda piece: len(piece.piece) > 1)  # characters first, otherwise as they are
    appended = _usable(lacking, old_model)[:max_new_pieces]
    if not appended:
        return old_model
    merged.DiscardUnknownFields()  # among them self-tests, which hold for the old file
    merged.pieces.extend(appended)
    merged.trainer_spec.vocab_size = len(merged.pieces)
    return merged.SerializeToString()


def _usable(pieces, old_model: bytes):
    """Returns the pieces that can occur in the output of the grown vocabulary."""
    old = sentencepiece.SentencePieceProcessor(model_proto=old_model)
    normalizer = sentencepiece.SentencePieceNormalizer(
        model_proto=old_model, add_dummy_prefix=False, remove_extra_whitespaces=False
    )
    usable = []
    spellings = spell_pieces(old_model, [piece.piece for piece in pieces])
    for piece, ids in zip(pieces, spellings, strict=True):
        spelled_better = old.unk_id() not in ids and sum(old.get_score(ids)) >= piece.score
        if not spelled_better and normalizer.normalize(piece.piece) == piece.piece:
            usable.append(piece)
    return usable


def _parse(model: bytes, name: str) -> sentencepiece_model_pb2.ModelProto:
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    spec = proto.trainer_spec
    if spec.model_type != spec.UNIGRAM:
        raise ValueError(
            f"`{name}` must be a unigram vocabulary, whose scores are log-probabilities. "
            f"Received: model_type={spec.ModelType.Name(spec.model_type)}"
        )
    return proto
