"""Fixtures that all tests share: a small world in ten scripts, its text, vocabulary and records."""

import importlib.util
import pathlib

import pytest
import tensorflow as tf

# Two logical CPU devices stand in for two GPUs. They must be set before TensorFlow starts, so before any test file,
# of whatever folder, makes a tensor.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

_SMALL_WORLD = pathlib.Path(__file__).parent / "small_world.py"


@pytest.fixture(scope="session")
def small_world():
    """The module `small_world.py`."""
    spec = importlib.util.spec_from_file_location("small_world", _SMALL_WORLD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def text_folder(small_world, tmp_path_factory) -> pathlib.Path:
    """A folder with a text file of 30 documents a language; en has 90."""
    folder = tmp_path_factory.mktemp("text")
    for language in small_world.SENTENCES:
        made = small_world.documents(language, 90 if language == "en" else 30)
        (folder / f"{language}.txt").write_text(small_world.text(made), encoding="utf-8")
    (folder / "MANIFEST.json").write_text("{}")
    return folder


@pytest.fixture(scope="session")
def vocabulary_file(text_folder, tmp_path_factory) -> pathlib.Path:
    """A `sentencepiece.model` of 300 pieces."""
    from rembert_tf.pipelines.config import VocabularyConfig
    from rembert_tf.pipelines.vocabulary import train_vocabulary

    return train_vocabulary(
        VocabularyConfig(
            input_dir=str(text_folder),
            output=str(tmp_path_factory.mktemp("vocabulary")),
            vocab_size=300,
        )
    )


@pytest.fixture(scope="session")
def tokenizer(vocabulary_file):
    """The tokenizer of `vocabulary_file`."""
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    return RemBertTokenizer.from_file(vocabulary_file)


@pytest.fixture(scope="session")
def records_folder(text_folder, vocabulary_file, tmp_path_factory) -> pathlib.Path:
    """Records of `text_folder`, a tenth of the documents held out."""
    from rembert_tf.pipelines.config import RecordsConfig
    from rembert_tf.pipelines.record_builder import build_records

    folder = tmp_path_factory.mktemp("records")
    build_records(
        RecordsConfig(
            input_dir=str(text_folder),
            tokenizer=str(vocabulary_file),
            output_dir=str(folder),
            heldout_fraction=0.1,
            tokens_per_shard=300,
        )
    )
    return folder
