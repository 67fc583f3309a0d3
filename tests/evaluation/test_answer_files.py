import json
import pathlib

import pytest

from rembert_tf.evaluation import answer_files
from rembert_tf.pipelines import answer_spans

TYDIQA = (
    pathlib.Path(__file__).parents[3] / "shared/data/xtreme/download/tydiqa/tydiqa-goldp-v1.1-train"
)


def write(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return str(path)


def questions(*pairs):
    return [{"paragraphs": [{"context": "c", "qas": [question(*pair) for pair in pairs]}]}]


def question(key, *answers):
    return {
        "id": key,
        "question": "?",
        "answers": [{"text": a, "answer_start": 0} for a in answers],
    }


@pytest.mark.parametrize("whole", [True, False])
def test_gold_answers_of_an_object_or_the_bare_list(tmp_path, whole):
    data = questions(("a", "x", "y"), ("b", "z")) + questions((3, "w"))
    path = write(tmp_path / "test-en.json", {"version": 1.0, "data": data} if whole else data)
    assert answer_files.read_gold_answers(path) == {"a": ["x", "y"], "b": ["z"], "3": ["w"]}


def test_a_question_without_answers_is_kept(tmp_path):
    path = write(tmp_path / "test-en.json", questions(("a", "x"), ("b",)))
    assert answer_files.read_gold_answers(path) == {"a": ["x"], "b": []}


def test_repeated_ids_are_numbered_and_lose_nothing(tmp_path):
    path = write(
        tmp_path / "test-en.json", questions(("a", "x"), ("b", "y"), ("a", "z"), ("a", "w"))
    )
    gold = answer_files.read_gold_answers(path)
    assert gold == {"a": ["x"], "b": ["y"], "a#2": ["z"], "a#3": ["w"]}


@pytest.mark.parametrize(
    ("ids", "keys"),
    [
        (["a", "a#2", "a"], ["a", "a#2", "a#3"]),
        (["a", "a", "a#2"], ["a", "a#3", "a#2"]),
        (["a", "a", "a", "a#3", "a#3", "a"], ["a", "a#2", "a#4", "a#3", "a#3#2", "a#5"]),
        (["a#2", "a", "a#2", "a"], ["a#2", "a", "a#2#2", "a#3"]),
    ],
)
def test_gold_and_predicted_answers_get_the_same_keys(tmp_path, ids, keys):
    gold = write(tmp_path / "gold.json", questions(*((key, str(n)) for n, key in enumerate(ids))))
    assert answer_files.read_gold_answers(gold) == {
        key: [str(number)] for number, key in enumerate(keys)
    }
    predicted = tmp_path / "predicted.json"
    candidates = [answer_spans.Candidate(str(n), 0, 1, 0.0, 0.0, 1.0) for n in range(len(ids))]
    answers = [
        answer_spans.AnswerPrediction(key, (candidate,))
        for key, candidate in zip(ids, candidates, strict=True)
    ]
    answer_spans.write_predictions(predicted, answers)
    assert answer_files.read_predicted_answers(str(predicted)) == {
        key: str(number) for number, key in enumerate(keys)
    }


@pytest.mark.skipif(not TYDIQA.is_dir(), reason="needs ../shared/data/xtreme")
@pytest.mark.parametrize(("language", "count"), [("en", 3696), ("ko", 1625), ("sw", 2755)])
def test_every_question_of_xtremes_tydiqa_train_files_is_kept(language, count):
    gold = answer_files.read_gold_answers(str(TYDIQA / f"tydiqa.goldp.{language}.train.json"))
    assert len(gold) == count


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{"data": [\n1,]}', r":2: this is not JSON"),
        ({"a": "x"}, r": a label file of questions is a list of documents"),
        ([{"paragraphs": [{"context": "c"}]}], r": documents must hold .*'qas'"),
        ([{"paragraphs": [{"qas": [{"question": "?"}]}]}], r": question number 1 has no `id`"),
        (questions(("a", None)), r": question 'a': `answers` must be"),
        ([{"paragraphs": [{"qas": [{"id": "a", "answers": "x"}]}]}], r": question 'a': `answers`"),
        (
            questions(("a", ""), ("b", "")),
            r": none of the 2 questions has an answer.*without labels",
        ),
        ([], r": the file holds no question"),
    ],
)
def test_wrong_label_files_are_named(tmp_path, value, words):
    path = write(tmp_path / "test-en.json", value)
    with pytest.raises(ValueError, match=r"test-en\.json" + words):
        answer_files.read_gold_answers(path)


def test_predicted_answers(tmp_path):
    path = write(tmp_path / "test-en.json", '\ufeff{"a": "x",\r\n "b": ""}\n')
    assert answer_files.read_predicted_answers(path) == {"a": "x", "b": ""}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{"a": "x"\n"b": "y"}', r":2: this is not JSON"),
        ('{"a": "x", "b": "y", "a": "z"}', r": 'a' comes twice"),
        ({"a": "x", "b": 12}, r": question 'b': an answer must be a string.*Received: 12"),
        ({"a": None}, r": question 'a': an answer must be a string.*Received: null"),
        ({"a": ["x", "y"]}, r": question 'a': .*Received: \["),
        (["x"], r": predicted answers are a JSON object.*Received: list"),
        ("", r":1: this is not JSON"),
    ],
)
def test_wrong_prediction_files_are_named(tmp_path, value, words):
    path = write(tmp_path / "test-en.json", value)
    with pytest.raises(ValueError, match=r"test-en\.json" + words):
        answer_files.read_predicted_answers(path)
