import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.config import PretrainingDataConfig, VocabularyConfig
from rembert_tf.pipelines.masking import DynamicMasking
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary
from rembert_tf.pipelines.word_pieces import WordPieces, byte_pieces


def words(pieces):
    """Joins pieces to words."""
    ids = tf.range(len(pieces))[tf.newaxis]
    starts = WordPieces.of_pieces(pieces).starts(ids, tf.ones_like(ids, tf.bool))[0]
    joined = []
    for piece, start in zip(pieces, starts.numpy(), strict=True):
        if start:
            joined.append(piece)
        else:
            joined[-1] += piece
    return joined


def test_a_piece_with_a_space_begins_a_word():
    assert words(["▁the", "▁hous", "es", "▁", "stand"]) == ["▁the", "▁houses", "▁stand"]
    assert words(["▁До", "ма", "▁मका", "न", "▁می", "\u200c", "روم"]) == ["▁Дома", "▁मकान", "▁می\u200cروم"]  # fmt: skip


def test_punctuation_is_a_word_of_its_own():
    assert words(["▁(", "the", "▁end", ".", ")", "▁don", "'", "t", "▁3", ".", "5"]) == [
        "▁(", "the", "▁end", ".", ")", "▁don", "'", "t", "▁3", ".", "5",
    ]  # fmt: skip


def test_in_scripts_without_spaces_each_piece_is_a_word():
    for pieces in (["▁", "中国", "人", "民"], ["▁これ", "は", "ペン", "です"], ["▁ภาษา", "ไทย"]):
        assert words(pieces) == pieces
    assert words(["▁한국", "어", "는", "▁말"]) == ["▁한국어는", "▁말"]  # Korean has spaces
    assert words(["▁iPhone", "を", "使", "U", "SB"]) == ["▁iPhone", "を", "使", "USB"]
    assert words(["▁サーバー", "U", "SB"]) == ["▁サーバー", "USB"]  # ー belongs to two scripts
    assert words(["▁ㄅㄆ", "ㄇ", "▁ꦲꦏ", "ꦱ"]) == ["▁ㄅㄆ", "ㄇ", "▁ꦲꦏ", "ꦱ"]


def test_no_word_goes_over_a_gap():
    pieces = WordPieces.of_pieces(["▁a", "b", "c"])
    starts = pieces.starts(tf.constant([[0, 1, 2]]), tf.constant([[True, False, True]]))
    assert starts.numpy().tolist() == [[True, False, True]]


def test_bytes_and_reserved_pieces_of_a_real_vocabulary(text_folder, tmp_path):
    path = train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder),
            output=str(tmp_path),
            vocab_size=340,
            byte_fallback=True,
            reserved_pieces=20,
            languages=("en",),
            report_sentences=0,
        )
    )
    tokenizer = RemBertTokenizer.from_file(path)
    pieces = tokenizer.pieces()
    is_byte = byte_pieces(tokenizer)
    assert is_byte.sum() == 256 and pieces[np.argmax(is_byte)] == "<0x00>"
    (spelled,) = tokenizer.encode(["ab語"])
    starts = WordPieces.of_tokenizer(tokenizer).starts(
        tf.constant([spelled]), tf.ones([1, len(spelled)], tf.bool)
    )
    assert is_byte[spelled].sum() == 3 and not starts.numpy()[0][is_byte[spelled]].any()

    config = PretrainingDataConfig(records_dir="", masking="whole_word")
    masking = DynamicMasking.of(config, tokenizer, seed=0)
    reserved = [i for i, piece in enumerate(pieces) if piece.startswith("<reserved_")]
    assert len(reserved) == 20
    never = {*reserved, *tokenizer.special_ids.tolist()}
    assert never.isdisjoint(masking.ordinary_ids.tolist())
    assert never.isdisjoint(masking.drawn_ids.tolist())
    assert not is_byte[masking.drawn_ids].any() and is_byte[masking.ordinary_ids].sum() == 256
    assert len(masking.drawn_ids) == 340 - 256 - len(never)
