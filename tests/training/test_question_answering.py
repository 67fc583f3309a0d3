"""A small model learns to find answers: file, windows, training, best spans, and the file that is read back."""

import json
import pathlib

import keras
import numpy as np

from rembert_tf.config import RemBertConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.pipelines import answer_spans, finetuning, question_answering, squad_files
from rembert_tf.pipelines.config import VocabularyConfig
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.vocabulary import train_vocabulary
from rembert_tf.training.span_loss import span_loss
from rembert_tf.training.trainer import Trainer

SAMPLE = pathlib.Path(__file__).parents[2] / "pipelines" / "sample"


def exact_match(questions, answers):
    return np.mean([q.answers[0].text == a.text for q, a in zip(questions, answers, strict=True)])


def test_training_finds_the_answers(tmp_path):
    keras.utils.set_random_seed(0)
    vocabulary = train_vocabulary(
        VocabularyConfig(input_dir=str(SAMPLE / "text"), output=str(tmp_path), vocab_size=2000)
    )
    tokenizer = RemBertTokenizer.from_file(vocabulary)
    questions = squad_files.read_questions(SAMPLE / "squad" / "train-v1.1.json")
    features = question_answering.make_features(
        questions, tokenizer, (), 64, doc_stride=24, max_query_length=24
    )
    assert features.num_rows > len(questions)  # some texts take several windows
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, input_embedding_size=64, output_embedding_size=64,
    )  # fmt: skip
    model = RemBertForQuestionAnswering(config)

    def predict():
        batches = finetuning.make_inference_dataset(features, 64)
        outputs = batches.restore(
            np.stack([logits.numpy() for logits in model(inputs).values()], axis=-1)
            for inputs, _, _ in batches.dataset
        )
        return answer_spans.predictions(features, outputs)

    before = exact_match(questions, predict())
    trainer = Trainer(model)
    trainer.compile(keras.optimizers.Adam(2e-3), span_loss)
    data = FinetuningDataConfig(
        task="xquad", data_dir=str(SAMPLE), max_seq_length=64, max_query_length=24, batch_size=16
    )
    dataset = finetuning.make_training_dataset(features, data)
    trainer.fit(dataset, shuffle=False, steps_per_epoch=500, verbose=0)
    answers = predict()
    assert before < 0.05 and exact_match(questions, answers) > 0.4

    answer_spans.write_predictions(tmp_path / "answers.json", answers)
    read = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert list(read) == [question.id for question in questions]
    assert all(read[q.id] in q.context and read[q.id] for q in questions)
