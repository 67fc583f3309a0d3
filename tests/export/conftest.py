"""Every kind of model, random but far from indifferent, exported and moved to another place."""

import shutil

import keras
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.export.load_exported import load_exported
from rembert_tf.export.saved_model import export
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

LABELS = {"tagger": ("DET", "NOUN", "VERB", "X"), "classifier": ("no", "yes", "может")}
SETTINGS = ServingConfig(
    max_seq_length=32, doc_stride=7, max_query_length=10, n_best_size=5, max_answer_length=6,
    top_k=3, rows_per_batch=8, layer=1,
)  # fmt: skip


@pytest.fixture(scope="session")
def settings():
    """What all models of these tests do with text."""
    return SETTINGS


@pytest.fixture(scope="session")
def models():
    """A model of each class by a short name."""
    keras.utils.set_random_seed(0)
    shape = RemBertConfig(
        vocab_size=40_000, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=24,
        max_position_embeddings=32, initializer_range=0.5,
    )  # fmt: skip
    return {
        "tagger": RemBertForTokenClassification(shape.replace(id2label=LABELS["tagger"])),
        "classifier": RemBertForSequenceClassification(
            shape.replace(id2label=LABELS["classifier"])
        ),
        "questions": RemBertForQuestionAnswering(shape),
        "masked_lm": RemBertForMaskedLM(shape),
        "encoder": RemBertEncoder(shape),
    }


@pytest.fixture(scope="session")
def exported(models, tokenizer, tmp_path_factory):
    """All models, exported and then moved to another place."""
    written = tmp_path_factory.mktemp("written")
    for name, model in models.items():
        paths = export(model, tokenizer, written / name, SETTINGS)
        assert paths.ids == written / name / "ids" / "1"
        assert paths.text == written / name / "text" / "1"
    moved = tmp_path_factory.mktemp("moved") / "served"
    shutil.move(written, moved)
    return moved


@pytest.fixture(scope="session")
def served(exported, models):
    """What `load_exported` makes of each."""
    return {name: load_exported(exported / name) for name in models}


@pytest.fixture(scope="session")
def all_text(small_world):
    """Sentences in all scripts of the small world, some joined, and what is awkward about text."""
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    joined = [" ".join(sentences[i : i + 5]) for i in range(0, len(sentences), 5)]
    awkward = [
        "", "   ", "x", " leading and  trailing ", "tab\tnew\nline", "a\x00b \x00 c", "\u200b \u00a0",
        "\U0001f469\u200d\U0001f52c \U0001f1ea\U0001f1fa", "½ ﬁ e\u0301 ﷺ", "[MASK] [CLS]",
    ]  # fmt: skip
    return sentences + joined + awkward
