import hashlib
import io
import types

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.pipelines import tokenization
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer

LITERAL = "The [CLS] reads a [MASK] and [SEP] in [PAD] the [UNK] house."


@pytest.fixture(scope="module")
def train(small_world):
    """Trains a vocabulary of 200 pieces over English and Russian with options of one's own."""

    def train_model(**options):
        model = io.BytesIO()
        sentences = [
            *small_world.SENTENCES["en"],
            *small_world.SENTENCES["ru"],
            "a [b] CLS MASK SEP",
        ]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences * 3),
            model_writer=model,
            vocab_size=120,
            hard_vocab_limit=False,
            minloglevel=2,
            **options,
        )
        return model.getvalue()

    return train_model


def test_special_ids_come_from_the_file(tokenizer, vocabulary_file):
    pieces = tokenizer.pieces()
    ids = tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id
    assert tuple(pieces[i] for i in ids) == SPECIAL_PIECES
    assert tokenizer.pad_id == 0
    assert tokenizer.special_ids.tolist() == sorted(ids)
    together = np.concatenate([tokenizer.special_ids, tokenizer.ordinary_ids])
    assert sorted(together) == list(range(tokenizer.vocab_size)) == list(range(len(pieces)))
    assert tokenizer.fingerprint == hashlib.sha256(vocabulary_file.read_bytes()).hexdigest()


def test_specials_may_stand_anywhere(train):  # case F5
    in_between = RemBertTokenizer(
        train(pad_id=3, unk_id=2, bos_id=4, eos_id=1, pad_piece="[PAD]", unk_piece="[UNK]",
              bos_piece="[CLS]", eos_piece="[SEP]", control_symbols=["[MASK]"])
    )  # fmt: skip
    assert in_between.special_ids.tolist() == [0, 1, 2, 3, 4]
    assert (in_between.sep_id, in_between.unk_id, in_between.pad_id) == (1, 2, 3)
    assert (in_between.cls_id, in_between.mask_id) == (4, 0)

    proto = sentencepiece_model_pb2.ModelProto.FromString(train(
        pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, pad_piece="[PAD]", unk_piece="[UNK]",
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    ))  # fmt: skip
    moved = [*proto.pieces[5:], *proto.pieces[:5]]
    del proto.pieces[:]
    proto.pieces.extend(moved)
    size = len(moved)
    at_the_end = RemBertTokenizer(proto.SerializeToString())
    assert at_the_end.special_ids.tolist() == list(range(size - 5, size))
    assert (at_the_end.pad_id, at_the_end.mask_id) == (size - 5, size - 1)
    (ids,) = at_the_end.encode(["The children read."])
    assert len(ids) and not np.isin(ids, at_the_end.special_ids).any()


@pytest.mark.parametrize("kind", ["control_symbols", "user_defined_symbols"])
def test_literal_special_pieces_stay_text(train, kind):  # case F6
    controls = ["[CLS]", "[SEP]", "[MASK]"]
    if kind == "user_defined_symbols":
        controls += ["[PAD]"]
        pad = {}
    else:
        pad = {"pad_id": 0, "pad_piece": "[PAD]"}
    model = train(unk_id=1, unk_piece="[UNK]", bos_id=-1, eos_id=-1, **pad, **{kind: controls})
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model).encode(LITERAL)
    ours = RemBertTokenizer(model)
    (ids,) = ours.encode([LITERAL])
    control_ids = [ours.pad_id, ours.cls_id, ours.sep_id, ours.mask_id]
    assert not np.isin(ids, control_ids).any()
    # The test has teeth: SentencePiece itself falls for user-defined symbols.
    assert np.isin(control_ids, theirs).all() == (kind == "user_defined_symbols")
    pieces = ours.pieces()
    spelled = "".join(pieces[i] for i in ids if i != ours.unk_id)
    assert "CLS" in spelled and "MASK" in spelled and "[" in spelled


def test_ids_are_those_of_sentencepiece(tokenizer, vocabulary_file, small_world):  # case H8
    texts = [text for sentences in small_world.SENTENCES.values() for text in sentences]
    texts += ["", " ", "\t\n", "\u200b", "ﬁ ½ ｱｲ Ａ", "e\u0301\u00a0x", "🙂 qwxyz", "a" * 3000]
    oracle = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_file))
    ours = tokenizer.encode(texts)
    assert [ids.tolist() for ids in ours] == oracle.encode(texts)
    assert {ids.dtype for ids in ours} == {np.dtype(np.int32)}
    assert tokenizer.encode([]) == []


def test_bytes_that_are_no_utf8_are_as_in_sentencepiece(tokenizer, vocabulary_file):  # case H8
    raw = [b"the \xff house", b"\xed\xa0\x80", b"tea\xc3", b"a\0b", b"\0", "\ufffd".encode()]
    oracle = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_file))
    ours = tokenizer.tokenize(raw).to_list()
    assert ours == [oracle.encode(text) for text in raw]
    assert tokenizer.unk_id in ours[0]
    controls = np.setdiff1d(tokenizer.special_ids, tokenizer.unk_id)
    assert not np.isin(np.concatenate(ours), controls).any()


def test_half_a_surrogate_pair_is_refused_with_its_place(tokenizer):
    with pytest.raises(
        ValueError, match=r"`texts` must be .*Received: U\+D83D as character 5 of 'tea "
    ):
        tokenizer.encode(["bread", "tea \ud83d"])


@pytest.mark.parametrize(
    "literal", ["[CLS]", "[MASK]", "[SEP]", "[PAD]", "[UNK]", "<pad>", "\u2581", "［ＭＡＳＫ］"]
)
def test_literals_are_no_control_ids(tokenizer, literal):  # case F6
    texts = [literal, f"the {literal} house", f"the{literal}house", literal * 3]
    controls = np.setdiff1d(tokenizer.special_ids, tokenizer.unk_id)
    alone, *ids, thrice = tokenizer.encode(texts)
    assert all(len(pieces) > 2 for pieces in ids)
    for pieces in (alone, *ids, thrice):
        assert not np.isin(pieces, controls).any()


def test_graphs_give_the_same_ids(tokenizer, small_world):
    texts = list(small_world.SENTENCES["hi"])
    eager = tokenizer.tokenize(texts)
    assert eager.dtype == tf.int32
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(len(texts)).map(tokenizer.tokenize)
    assert next(iter(dataset)).to_list() == eager.to_list()
    assert tf.function(tokenizer.tokenize)(tf.constant(texts)).to_list() == eager.to_list()


def test_a_new_global_seed_does_not_lose_the_model(train):
    """It clears TensorFlow's kernels, and with them the model of tensorflow_text's own tokenizer."""
    options = dict(unk_id=1, unk_piece="[UNK]", bos_id=-1, eos_id=-1, pad_id=0, pad_piece="[PAD]")
    model = train(**options, control_symbols=["[CLS]", "[SEP]", "[MASK]"])
    tokenizer = RemBertTokenizer(model)
    in_graph = tf.function(tokenizer.tokenize)
    expected = in_graph(tf.constant(["The old house"])).to_list()
    tf.random.set_seed(1)
    assert in_graph(tf.constant(["The old house"])).to_list() == expected
    assert tokenizer.encode(["The old house"])[0].tolist() == expected[0]
    del tokenizer  # a second tokenizer of the same vocabulary does not need the first
    assert RemBertTokenizer(model).encode(["The old house"])[0].tolist() == expected[0]


def test_a_saved_model_holds_the_vocabulary(tokenizer, tmp_path):  # cases G2 and G3
    module = tf.Module()
    module.tokenizer = tokenizer
    module.serve = tf.function(
        lambda texts: tokenizer.tokenize(texts).to_tensor(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, tmp_path / "saved")
    (tmp_path / "saved").rename(tmp_path / "moved")
    served = tf.saved_model.load(tmp_path / "moved").serve(tf.constant(["The old house"]))
    assert served.numpy().tolist() == [tokenizer.encode(["The old house"])[0].tolist()]


def test_save_and_read_again(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "copy")
    for path in (tmp_path / "copy", tmp_path / "copy" / "sentencepiece.model"):
        copy = RemBertTokenizer.from_file(path)
        assert (copy.fingerprint, copy.model_bytes) == (
            tokenizer.fingerprint,
            tokenizer.model_bytes,
        )
    assert [file.name for file in (tmp_path / "copy").iterdir()] == ["sentencepiece.model"]


def test_files_that_are_no_vocabulary_are_refused(train, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such vocabulary file"):
        RemBertTokenizer.from_file(tmp_path)
    file = tmp_path / "sentencepiece.model"
    for content in (b"", b"no model at all"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="sentencepiece.model: not a SentencePiece model"):
            RemBertTokenizer.from_file(tmp_path)
    file.write_bytes(train(pad_id=0, pad_piece="[PAD]", unk_id=1, unk_piece="[UNK]", bos_id=-1,
                           eos_id=-1, control_symbols=["[CLS]", "[SEP]"]))  # fmt: skip
    with pytest.raises(ValueError, match=r"lacks the special piece \[MASK\]"):
        RemBertTokenizer.from_file(file)
    file.write_bytes(train(unk_id=0, bos_id=-1, eos_id=-1, control_symbols=list(SPECIAL_PIECES)))
    with pytest.raises(ValueError, match=r"unknown piece of the vocabulary must be \[UNK\]"):
        RemBertTokenizer.from_file(file)


def test_versions_must_fit():  # case F17
    tokenization.check_versions("2.20.0", "2.20.1")
    with pytest.raises(ImportError, match=r"pip install 'tensorflow-text==2\.20\.\*'"):
        tokenization.check_versions("2.20.0", "2.21.0")


def test_a_wrong_version_stops_the_import_with_the_fix(monkeypatch):  # case F17
    code = compile(open(tokenization.__file__, encoding="utf-8").read(), "tokenization", "exec")
    monkeypatch.setattr(tokenization.metadata, "version", lambda name: "2.19.0")
    with pytest.raises(
        ImportError, match=r"tensorflow-text 2\.19\.0 does not fit TensorFlow 2\.20"
    ):
        exec(code, types.ModuleType("tokenization").__dict__)
