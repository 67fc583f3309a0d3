import keras
import numpy as np
import pytest
from sentencepiece import sentencepiece_model_pb2

from rembert_tf.checkpoints.folder import save_pretrained
from rembert_tf.checkpoints.model_from_weights import variables_by_path
from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.pipelines.tokenization import SPECIAL_PIECES, RemBertTokenizer


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


@pytest.fixture
def config():
    """Two layers of width 16 between an input table of width 8 and an output table of width 24."""
    return RemBertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        input_embedding_size=8,
        output_embedding_size=24,
        max_position_embeddings=12,
        initializer_range=0.3,
        id2label=("A", "B", "C"),
    )


@pytest.fixture
def coupled(config):
    """The paper's baseline in small: one table for both ends, and no input projection."""
    return config.replace(
        input_embedding_size=16, output_embedding_size=16, tie_word_embeddings=True
    )


@pytest.fixture(scope="session")
def letters():
    """The tokenizer of a vocabulary of 31 pieces: the special ones and the letters from a to z."""
    proto = sentencepiece_model_pb2.ModelProto()
    for piece in (*SPECIAL_PIECES, *map(chr, range(ord("a"), ord("z") + 1))):
        kind = {"[UNK]": "UNKNOWN"}.get(piece, "CONTROL" if piece in SPECIAL_PIECES else "NORMAL")
        proto.pieces.add(piece=piece, type=kind)
    return RemBertTokenizer(proto.SerializeToString())


@pytest.fixture
def folder(config, letters, tmp_path):
    """A masked LM's folder."""
    save_pretrained(RemBertForMaskedLM(config), tmp_path / "model", letters)
    return tmp_path / "model"


@pytest.fixture(scope="session")
def assert_same_weights():
    """Checks that two models have the same variables with the same values."""

    def check(one, other):
        ours, theirs = variables_by_path(one), variables_by_path(other)
        assert list(ours) == list(theirs)
        for path, variable in ours.items():
            np.testing.assert_array_equal(variable.numpy(), theirs[path].numpy(), err_msg=path)

    return check
