import io
import math
import pathlib

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines import text_files
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary_merge import merge_vocabularies

SAMPLE = pathlib.Path(__file__).parents[2] / "pipelines/sample/text"
KINDS = sentencepiece_model_pb2.ModelProto.SentencePiece


def lines(*languages):
    for language in languages:
        yield from filter(None, text_files.read_lines(SAMPLE / f"{language}.txt"))


def learn(sentences, vocab_size, **settings):
    model = io.BytesIO()
    settings = {
        "unk_id": 1, "unk_piece": "[UNK]", "pad_id": 0, "pad_piece": "[PAD]", "bos_id": -1,
        "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "minloglevel": 2, **settings,
    }  # fmt: skip
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=vocab_size, **settings
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def old():
    """1,500 pieces of English, German and Russian."""
    return learn(lines("en", "de", "ru"), 1500)


def processor(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def proto(model):
    return sentencepiece_model_pb2.ModelProto.FromString(model)


def count(model, *languages):
    return sum(len(ids) for ids in processor(model).encode(list(lines(*languages))))


def test_old_pieces_keep_ids_and_scores_and_new_ones_follow(old):
    new = learn(lines("es"), 400)
    merged, before = proto(merge_vocabularies(old, new, 200)), proto(old)
    assert list(merged.pieces[:1500]) == list(before.pieces)
    assert merged.normalizer_spec == before.normalizer_spec
    assert len(merged.pieces) == merged.trainer_spec.vocab_size == 1700
    scores = {piece.piece: piece.score for piece in proto(new).pieces}
    present = {piece.piece for piece in before.pieces}
    for piece in merged.pieces[1500:]:
        assert piece.type == KINDS.NORMAL and piece.piece not in present
        assert piece.score == pytest.approx(scores[piece.piece] + math.log(0.01), abs=1e-5)
    assert RemBertTokenizer(merged.SerializeToString()).mask_id == 4


def test_a_language_in_known_letters_gets_fewer_pieces_and_the_old_ones_stay(old):
    merged = merge_vocabularies(old, learn(lines("es"), 500), 500)
    assert count(merged, "es") < 0.6 * count(old, "es")
    assert count(merged, "en", "de", "ru") > 0.985 * count(old, "en", "de", "ru")
    text = list(lines("en", "de", "ru"))
    pairs = zip(processor(old).encode(text), processor(merged).encode(text), strict=True)
    same = [before == after for before, after in pairs]
    assert sum(same) > 0.75 * len(same)


def test_a_new_script_is_known_afterwards_and_nothing_else_changes(old):
    merged = merge_vocabularies(old, learn(lines("el"), 500), 400)
    text = list(lines("en", "de", "ru"))
    assert processor(merged).encode(text) == processor(old).encode(text)
    pieces = [
        piece for sentence in processor(merged).encode(list(lines("el"))) for piece in sentence
    ]
    assert pieces.count(1) < 0.002 * len(pieces)


def test_characters_come_first_then_the_best_pieces(old):
    new = proto(learn(lines("el"), 500))
    merged = proto(merge_vocabularies(old, new.SerializeToString(), 60)).pieces[1500:]
    characters = [piece for piece in merged if len(piece.piece) == 1]
    assert 20 < len(characters) < 60 and list(merged[: len(characters)]) == characters
    longer = merged[len(characters) :]
    present = {piece.piece for piece in proto(old).pieces}
    expected = [p.piece for p in new.pieces if len(p.piece) > 1 and p.piece not in present]
    expected = [p for p in expected if p not in ("[PAD]", "[UNK]")]
    assert [piece.piece for piece in longer] == expected[: len(longer)]
    assert [piece.score for piece in longer] == sorted((p.score for p in longer), reverse=True)


def test_every_appended_piece_can_occur(old):
    """A piece that its own text is not split into is a row that is never trained."""
    new = learn(lines("es", "en"), 1200, normalization_rule_name="identity")
    extra = proto(new)
    extra.pieces.add(piece="ﬁn", score=-5.0, type=KINDS.NORMAL)  # the old file makes it `fin`
    extra.pieces.add(piece="▁the▁old", score=-99.0, type=KINDS.NORMAL)  # two old ones score more
    extra.pieces.add(piece="<x>", score=0.0, type=KINDS.USER_DEFINED)
    merged = merge_vocabularies(old, extra.SerializeToString(), 5000)
    appended = [piece.piece for piece in proto(merged).pieces[1500:]]
    assert len(appended) > 300 and not {"ﬁn", "▁the▁old", "<x>"} & set(appended)
    bare = proto(merged)
    bare.normalizer_spec.add_dummy_prefix = False
    bare.normalizer_spec.remove_extra_whitespaces = False
    split = processor(bare.SerializeToString()).encode(
        [piece.replace("▁", " ") for piece in appended]
    )
    assert sum(len(ids) == 1 for ids in split) > 0.97 * len(split)


def test_nothing_to_append_changes_nothing(old):
    assert merge_vocabularies(old, old, 100) == old
    assert merge_vocabularies(old, learn(lines("el"), 300), 0) == old


def test_only_unigram_vocabularies_are_merged(old):
    bpe = learn(lines("en"), 300, model_type="bpe")
    for arguments, name in (((bpe, old), "old_model"), ((old, bpe), "new_model")):
        with pytest.raises(ValueError, match=f"`{name}` must be .* Received: model_type=BPE"):
            merge_vocabularies(*arguments, 10)
