"""Questions in the published variants of SQuAD's JSON."""

import json

import pytest

from rembert_tf.pipelines import squad_files
from rembert_tf.pipelines.squad_files import Answer, Question

CONTEXT = "東京は😀 a\u200cb にある。"


def write(tmp_path, value, name="questions.json"):
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def squad(*questions, context=CONTEXT):
    return {"data": [{"paragraphs": [{"context": context, "qas": list(questions)}]}]}


def question(**fields):
    return {"id": "q1", "question": "where?", "answers": []} | fields


def read_one(tmp_path, **fields):
    (read,) = squad_files.read_questions(write(tmp_path, squad(question(**fields))))
    return read


@pytest.mark.parametrize(
    "start",
    [3, "3", len("東京は".encode()), len("東京は".encode("utf-16-le")) // 2],
    ids=["number", "string", "bytes", "utf-16"],
)
def test_places_become_code_points(tmp_path, start):
    """H4."""
    read = read_one(tmp_path, answers=[{"text": "😀", "answer_start": start}])
    assert read == Question("q1", "where?", CONTEXT, (Answer("😀", 3),))


@pytest.mark.parametrize("unit, encoding", [(1, "utf-8"), (2, "utf-16-le")])
def test_places_in_bytes_behind_an_emoji(tmp_path, unit, encoding):
    place = CONTEXT.index("に")
    start = len(CONTEXT[:place].encode(encoding)) // unit
    assert start != place
    read = read_one(tmp_path, answers=[{"text": "に", "answer_start": start}])
    assert read.answers == (Answer("に", place),)


@pytest.mark.parametrize("start", [4, -1, 500])
def test_answers_that_are_elsewhere_are_kept_and_reported(tmp_path, caplog, start):
    read = read_one(tmp_path, answers=[{"text": "東京", "answer_start": start}])
    assert read.answers == (Answer("東京", None),)
    assert (
        "answers of 1 questions are not where the file says" in caplog.text and "q1" in caplog.text
    )


@pytest.mark.parametrize("answers", [[], None, [{"text": "", "answer_start": 0}]])
def test_withheld_answers(tmp_path, answers):
    assert read_one(tmp_path, answers=answers).answers == ()


def test_questions_without_the_key_of_answers(tmp_path):
    path = write(tmp_path, squad({"id": 7, "question": "who?"}))
    assert squad_files.read_questions(path) == [Question("7", "who?", CONTEXT, ())]


def test_bare_lists_byte_order_marks_and_several_answers(tmp_path):
    answers = [{"text": "東京", "answer_start": 0}, {"text": "京", "answer_start": 1, "kind": "x"}]
    value = squad(question(answers=answers), question(id="q2"))["data"]
    path = tmp_path / "list.json"
    path.write_text("\ufeff" + json.dumps(value, ensure_ascii=False), encoding="utf-8")
    first, second = squad_files.read_questions(path)
    assert first.answers == (Answer("東京", 0), Answer("京", 1)) and second.id == "q2"


def test_repeated_ids_lose_nothing(tmp_path):
    texts = [f"question {number}" for number in range(5)]
    value = squad(*(question(question=text) for text in texts))
    read = squad_files.read_questions(write(tmp_path, value))
    assert [q.question for q in read] == texts and {q.id for q in read} == {"q1"}


def test_lone_surrogates_and_line_breaks_stay(tmp_path):
    path = tmp_path / "raw.json"
    path.write_text(
        '[{"paragraphs": [{"context": "\\ud83d x\\r\\ny", "qas": [{"id": "1", "question": "\\ud83d?"}]}]}]'
    )
    (read,) = squad_files.read_questions(path)
    assert read.context == "\ud83d x\r\ny" and read.question == "\ud83d?"


@pytest.mark.parametrize(
    "value, message",
    [
        ({}, "data must be a list"),
        ([3], r"data\[0\] must be an object"),
        ([{}], r"data\[0\].paragraphs must be a list"),
        ([{"paragraphs": [{"qas": []}]}], r"paragraphs\[0\]: `context` must be a string"),
        ([{"paragraphs": [{"context": ""}]}], r"paragraphs\[0\].qas must be a list"),
        (squad(question(), {"question": "?"}), r"qas\[1\]: `id` must be"),
        (squad({"id": "1"}), r"qas\[0\]: `question` must be a string"),
        (squad(question(answers=[{"answer_start": 1}])), r"answers\[0\]: `text` must be a string"),
        (squad(question(answers=[{"text": "a", "answer_start": "x"}])), "`answer_start` must be a whole"),
        (squad(question(answers=[{"text": "a"}])), "`answer_start` must be a whole"),
        (squad(question(answers={"text": ["a"]})), r"qas\[0\].answers must be a list"),
        (squad(question(is_impossible=True)), r"qas\[0\]: .*SQuAD 2.0.*id='q1'"),
        (squad(), "holds no question"),
    ],
)  # fmt: skip
def test_errors_name_file_and_place(tmp_path, value, message):
    with pytest.raises(ValueError, match=f"questions.json: .*{message}"):
        squad_files.read_questions(write(tmp_path, value))


def test_broken_files(tmp_path):
    path = tmp_path / "questions.json"
    path.write_bytes(b'{"data": [\n{"paragraphs": }]}')
    with pytest.raises(ValueError, match=r"questions.json:2: column 16: this is not JSON"):
        squad_files.read_questions(path)
    path.write_bytes(b'{"data": \n"\xff"}')
    with pytest.raises(ValueError, match=r"questions.json:2: the file must be UTF-8.*0xff"):
        squad_files.read_questions(path)


def test_plain_text():
    assert squad_files.read_text(["who?\tA b.\tc", "no text", ""]) == [
        Question("1", "who?", "A b.\tc", ()),
        Question("2", "no text", "", ()),
        Question("3", "", "", ()),
    ]
    assert squad_files.inputs_of(Question("1", "who?", "A b.", ())) == ("A b.", "who?")
    assert squad_files.labels_of([]) == set()
