"""Perfect logits on real question sets reach what a vocabulary's piece boundaries allow, and every question is read."""

import pathlib
import re
import string

import numpy as np
import pytest

from rembert_tf.pipelines import answer_spans, question_answering, squad_files
from rembert_tf.pipelines.answer_ceiling import answer_ceiling
from rembert_tf.pipelines.character_model import ModelProto
from rembert_tf.pipelines.tokenization import RemBertTokenizer

DATA = pathlib.Path(__file__).parents[3] / "shared" / "data"
TYDIQA = "xtreme/download/tydiqa/tydiqa-goldp-v1.1-train/tydiqa.goldp.{}.train.json"
MLQA = "xtreme/download/mlqa/MLQA_V1/dev/dev-context-{0}-question-{0}.json"
# File, questions, and the exact match that a model of 250,000 pieces can reach, in percent.
FILES = [
    ("gold/labels/xquad/test-en.json", 1190, 99.8),
    ("gold/labels/xquad/test-zh.json", 1190, 98.9),
    (MLQA.format("es"), 500, 96.6),
    (MLQA.format("zh"), 504, 95.0),
    pytest.param(MLQA.format("en"), 1148, 99.7, marks=pytest.mark.slow),
    pytest.param(TYDIQA.format("en"), 3696, 99.0, marks=pytest.mark.slow),
    (TYDIQA.format("ko"), 1625, 89.5),
    pytest.param(TYDIQA.format("sw"), 2755, 98.7, marks=pytest.mark.slow),
    ("qa_squad_format/jaquad/jaquad_train_0000.json", 1002, 88.3),
    pytest.param("qa_squad_format/tquad/train-v0.1.json", 8308, 97.4, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def large_tokenizer():
    path = DATA / "spm" / "xlmr_pieces" / "sentencepiece.bpe.model.rebuilt"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    proto = ModelProto.FromString(path.read_bytes())
    roles = {"<unk>": "[UNK]", "<s>": "[CLS]", "</s>": "[SEP]"}
    for piece in proto.pieces:
        piece.piece = roles.get(piece.piece, piece.piece)
    for name in ("[PAD]", "[MASK]"):
        proto.pieces.add(piece=name, type=ModelProto.SentencePiece.CONTROL)
    proto.trainer_spec.unk_piece = "[UNK]"
    return RemBertTokenizer(proto.SerializeToString())


def squad_words(answer):
    answer = "".join(c for c in answer.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", answer).split()


def perfect_logits(features):
    outputs = np.zeros((len(features.input_ids), 2), np.float32)
    has_answer = features.labels[:, 0] > 0
    for column in range(2):
        places = features.row_splits[:-1] + features.labels[:, column]
        outputs[places[has_answer], column] = 10
    return outputs


@pytest.mark.parametrize("name, count, reachable", FILES)
def test_perfect_logits_reach_the_ceiling(large_tokenizer, name, count, reachable):
    questions = squad_files.read_questions(DATA / name)
    assert len(questions) == count
    assert all(answer.start is not None for q in questions for answer in q.answers)
    features = question_answering.make_features(questions, large_tokenizer)
    answers = answer_spans.predictions(
        features, perfect_logits(features), n_best_size=1, max_answer_length=400
    )
    assert [answer.id for answer in answers] == [question.id for question in questions]
    right = [
        any(squad_words(answer.text) == squad_words(gold.text) for gold in question.answers)
        for question, answer in zip(questions, answers, strict=True)
    ]
    ceiling = answer_ceiling(questions, large_tokenizer, max_answer_length=400, words=squad_words)
    assert sum(right) == ceiling.reachable and ceiling.windows == ceiling.place == 0
    assert 100 * ceiling.exact_match > reachable - 0.05
    cut = answer_ceiling(questions, large_tokenizer, words=squad_words)
    assert cut.boundaries == ceiling.boundaries
    assert cut.reachable + cut.length == ceiling.reachable


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("xtreme/download/*qu*d/*.json")) + sorted(DATA.glob("xtreme/download/*qa/*/**/*.json")),
    ids=lambda path: path.name,
)  # fmt: skip
def test_every_question_of_every_file_is_read(path):
    text = path.read_text(encoding="utf-8")
    assert len(squad_files.read_questions(path)) == len(re.findall(r'"question"\s*:', text))
