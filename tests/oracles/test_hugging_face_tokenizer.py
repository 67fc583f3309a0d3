"""A vocabulary's folder in transformers: the same special pieces, the same ids."""

import shutil

import numpy as np
import pytest

from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary

pytestmark = pytest.mark.oracle
transformers = pytest.importorskip("transformers")

KINDS = {
    "plain": {"vocab_size": 330},
    "reserved": {"vocab_size": 640, "reserved_pieces": 310},
    "bytes": {"vocab_size": 560, "byte_fallback": True},
}
ODD = (
    *("", " ", "\u200b", "x  y   z ", "ﬁ ½ ｱｲ Ａ", "e\u0301\u00a0x", "🙂 the\ud7a3", "``quoted'' ''x''"),
    *("a\u2581b", "a\tb\nc", "\ufffd", "\ufdfa", "\u1100\u1161\u11a8", "\u0bb5\u0bc6\u0bbe"),
    *("[CLS] the [MASK] and [PAD]", "[MASK]", "<reserved_0> tea", "<0x41>"),
)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def folder(request, text_folder, tmp_path_factory):
    """A vocabulary that knows the letters of the special pieces."""
    text, path = (tmp_path_factory.mktemp(f"{request.param}_{name}") for name in ("text", "out"))
    shutil.copytree(text_folder, text, dirs_exist_ok=True)
    (text / "xx.txt").write_text("[CLS] [MASK] [PAD] <reserved_0> <0x41>\n" * 9)
    train_vocabulary(
        VocabularyConfig(
            input_dir=str(text), output=str(path), report_sentences=0, **KINDS[request.param]
        )
    )
    return path


def test_the_special_pieces_are_ours(folder):
    ours, theirs = RemBertTokenizer.from_file(folder), _load(folder)
    for role, name in zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL_PIECES, strict=True):
        assert getattr(theirs, f"{role}_token") == name
        assert getattr(theirs, f"{role}_token_id") == getattr(ours, f"{role}_id")
    assert len(theirs) == ours.vocab_size


def test_the_ids_are_ours(folder, small_world):
    ours, theirs = RemBertTokenizer.from_file(folder), _load(folder)
    texts = [text for sentences in small_world.SENTENCES.values() for text in sentences]
    texts += ODD
    got = theirs(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    for text, ids, expected in zip(texts, got, ours.encode(texts), strict=True):
        assert ids == expected.tolist(), text


def test_pairs_have_the_published_form(folder):
    ours, theirs = RemBertTokenizer.from_file(folder), _load(folder)
    first, second = (ids.tolist() for ids in ours.encode(["The old house", "a river"]))
    pair = theirs("The old house", "a river")
    cls, sep = [ours.cls_id], [ours.sep_id]
    assert pair["input_ids"] == cls + first + sep + second + sep
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    asked = theirs("The [MASK] house", add_special_tokens=False)["input_ids"]
    assert asked.count(ours.mask_id) == 1  # their rule: a literal [MASK] asks for a piece


def test_a_model_folder_brings_its_tokenizer(folder, tmp_path):
    ours = RemBertTokenizer.from_file(folder)
    config = RemBertConfig(
        vocab_size=ours.vocab_size, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6,
        max_position_embeddings=24,
    )  # fmt: skip
    save_pretrained(RemBertEncoder(config), tmp_path / "model", ours)
    theirs = _load(tmp_path / "model")
    assert theirs.model_max_length == 24 and theirs.mask_token_id == ours.mask_id
    ids = theirs("Das \ue123 Haus")["input_ids"]
    (expected,) = ours.encode(["Das \ue123 Haus"])
    np.testing.assert_array_equal(ids, [ours.cls_id, *expected, ours.sep_id])


def _load(folder):
    return transformers.AutoTokenizer.from_pretrained(folder)
