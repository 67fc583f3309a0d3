import importlib.util
import pathlib

import pytest

from rembert_tf.config import RemBertConfig


@pytest.fixture(scope="session")
def golden_models():
    """The module `golden_models.py`."""
    path = pathlib.Path(__file__).parent / "golden_models.py"
    spec = importlib.util.spec_from_file_location("golden_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        classifier_dropout_prob=0.0,
        initializer_range=0.3,
        id2label=("A", "B", "C"),
    )


@pytest.fixture
def dropout_config(config):
    """The same with dropout everywhere."""
    return config.replace(
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        embedding_dropout_prob=0.1,
        classifier_dropout_prob=0.5,
    )
