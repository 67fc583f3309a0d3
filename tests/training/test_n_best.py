"""The best answers to each question, in a file beside the predictions that evaluation reads."""

import json

import keras
import pytest

from rembert_tf.config import RemBertConfig
from rembert_tf.evaluation.layout import find_predictions
from rembert_tf.evaluation.tasks import TASKS
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.training.config import PredictionConfig
from rembert_tf.training.prediction import predict_files


def test_the_first_of_the_best_answers_is_the_prediction(tokenizer, small_world, tmp_path):
    keras.utils.set_random_seed(0)
    config = RemBertConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=8,
        max_position_embeddings=24, initializer_range=0.5,
    )  # fmt: skip
    RemBertForQuestionAnswering(config).save_pretrained(tmp_path / "model", tokenizer)
    texts = [text for texts in small_world.SENTENCES.values() for text in texts]
    paragraphs = [
        {"context": " ".join(texts[n : n + 3]), "qas": [{"id": str(n), "question": texts[-n]}]}
        for n in range(5)
    ]
    (tmp_path / "data/xquad").mkdir(parents=True)
    (tmp_path / "data/xquad/xquad.en.json").write_text(
        json.dumps({"data": [{"paragraphs": paragraphs}]})
    )
    settings = {
        "task": "xquad", "data_dir": str(tmp_path / "data"), "model": str(tmp_path / "model"),
        "max_seq_length": 24, "doc_stride": 5, "max_query_length": 8, "n_best_size": 3,
        "max_answer_length": 5,
    }  # fmt: skip
    out = tmp_path / "out"
    (path,) = predict_files(PredictionConfig(**settings, output_dir=str(out), n_best=True))
    answers = json.loads(path.read_text(encoding="utf-8"))
    n_best = json.loads((out / "xquad/test-en.n_best.json").read_text(encoding="utf-8"))
    assert {key: best[0]["text"] for key, best in n_best.items()} == answers and len(answers) == 5
    for number, best in n_best.items():
        context = paragraphs[int(number)]["context"]
        assert len(best) == 3 and sum(one["probability"] for one in best) == pytest.approx(1)
        assert all(context[one["start"] : one["end"]] == one["text"] for one in best)
    assert find_predictions(str(out), TASKS["xquad"], "test") == {"en": str(path)}

    (path,) = predict_files(PredictionConfig(**settings, output_dir=str(tmp_path / "without")))
    assert json.loads(path.read_text(encoding="utf-8")) == answers
    assert {p.name for p in path.parent.iterdir()} == {"test-en.json", ".predictions.json"}


@pytest.mark.parametrize(
    "changes",
    [{"task": "xnli"}, {"model": "", "saved_model": "s"},
     {"data_dir": "", "output_dir": "", "input": "-"}],
)  # fmt: skip
def test_where_there_are_no_best_answers(changes):
    settings = {"task": "xquad", "model": "m", "data_dir": "d", "output_dir": "o"} | changes
    with pytest.raises(ValueError, match="`n_best` needs a `model`, .* Received: n_best=True"):
        PredictionConfig(**settings, n_best=True)
