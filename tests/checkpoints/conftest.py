import keras
import pytest

from rembert_tf.config import RemBertConfig


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
