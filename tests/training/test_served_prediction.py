"""rembert-predict by an export gives what it gives by the model folder."""

import json

import keras
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.export.saved_model import export
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction import predict_files
from rembert_tf.training.served_prediction import _requests

CLASSES = {
    "udpos": (RemBertForTokenClassification, ("NOUN", "VERB", "X")),
    "xnli": (RemBertForSequenceClassification, ("entailment", "neutral", "contradiction")),
    "xquad": (RemBertForQuestionAnswering, ()),
}
LENGTHS = {
    "max_seq_length": 24, "doc_stride": 5, "max_query_length": 8, "n_best_size": 3,
    "max_answer_length": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tokenizer, small_world, tmp_path_factory):
    """A model, an export of it and a test file of each kind of task."""
    folder = tmp_path_factory.mktemp("served")
    keras.utils.set_random_seed(0)
    for task, (model_class, labels) in CLASSES.items():
        config = RemBertConfig(
            vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, input_embedding_size=8, output_embedding_size=8,
            max_position_embeddings=24, initializer_range=0.5, id2label=labels,
        )  # fmt: skip
        model = model_class(config)
        model.save_pretrained(folder / task / "model", tokenizer)
        export(model, tokenizer, folder / task / "served", ServingConfig(**LENGTHS))
        (folder / "data" / task).mkdir(parents=True)
    texts = [text for texts in small_world.SENTENCES.values() for text in texts]
    words = [text.split()[:5] for text in texts] + [["a", "\u00a0", "b"]]
    text = "\n\n".join("\n".join(sentence) for sentence in words) + "\n"
    (folder / "data/udpos/test-en.tsv").write_text(text, encoding="utf-8")
    pairs = "".join(f"{a}\t{b}\r\n" for a, b in zip(texts, texts[::-1], strict=True))
    (folder / "data/xnli/test-en.tsv").write_text(pairs, encoding="utf-8", newline="")
    paragraphs = [
        {"context": " ".join(texts[n : n + 4]), "qas": [{"id": str(n), "question": texts[-n]}]}
        for n in range(12)
    ]
    (folder / "data/xquad/xquad.en.json").write_text(
        json.dumps({"data": [{"paragraphs": paragraphs}]})
    )
    return folder


@pytest.mark.parametrize("task", CLASSES)
def test_an_export_predicts_what_the_model_predicts(folder, task, tmp_path):
    common = {"task": task, "data_dir": str(folder / "data"), "labels": "model", **LENGTHS}
    made = {}
    for name in ("model", "saved_model"):
        source = folder / task / ("model" if name == "model" else "served")
        config = PredictionConfig(**common, **{name: str(source)}, output_dir=str(tmp_path / name))
        (file,) = predict_files(config)
        made[name] = file.read_text(encoding="utf-8")
    assert made["saved_model"] == made["model"] and len(made["model"]) > 50


def test_an_export_of_another_kind_is_refused(folder, tmp_path):
    config = PredictionConfig(
        task="udpos", data_dir=str(folder / "data"), output_dir=str(tmp_path),
        saved_model=str(folder / "xnli/served"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="must be the text/ folder of a model for tagging"):
        predict_files(config)
    with pytest.raises(ValueError, match="Give `model` or `saved_model`, not both"):
        PredictionConfig(task="udpos", data_dir="x", output_dir="y", model="a", saved_model="b")
    with pytest.raises(ValueError, match="compares vectors of a `model`"):
        PredictionConfig(task="tatoeba", data_dir="x", output_dir="y", saved_model="b")


def test_sentences_go_out_in_requests_that_an_export_takes(monkeypatch):
    monkeypatch.setattr("rembert_tf.export.load_exported.MOST_WORDS", 6)
    rows = [["a"], ["b"] * 3, ["c"], ["d"] * 7, ["e"], ["f"] * 2]
    requests = list(_requests(rows))
    assert requests == [rows[:2], rows[2:3], rows[3:4], rows[4:]]
