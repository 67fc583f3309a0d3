"""Windows and labels of questions (I1, I3)."""

import random

import numpy as np
import pytest

from rembert_tf.pipelines import question_answering
from rembert_tf.pipelines.squad_files import Answer, Question


def make_questions(small_world, count=60):
    chooser = random.Random(0)
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    questions = []
    for number in range(count):
        context = " ".join(chooser.choices(sentences, k=chooser.randrange(1, 12)))
        start = chooser.randrange(len(context))
        text = context[start : start + chooser.randrange(1, 12)]
        answers = (Answer(text, start),) if number % 5 else ()
        questions.append(Question(str(number), chooser.choice(sentences), context, answers))
    return questions + questions[:2]  # a text comes again


@pytest.mark.parametrize(
    "length, stride, query", [(64, 16, 20), (24, 5, 8), (16, 100, 12), (384, 128, 64)]
)
def test_rows_are_those_of_a_loop(tokenizer, small_world, length, stride, query):
    questions = make_questions(small_world)
    features = question_answering.make_features(
        questions, tokenizer, (), length, doc_stride=stride, max_query_length=query
    )
    expected, types, owners = [], [], []
    for number, question in enumerate(questions):
        asked = tokenizer.encode([question.question])[0].tolist()[:query]
        text = tokenizer.encode([question.context])[0].tolist()
        room = length - 3 - len(asked)
        start = 0
        while True:
            window = text[start : start + room]
            expected.append([tokenizer.cls_id, *asked, tokenizer.sep_id, *window, tokenizer.sep_id])
            types.append([0] * (len(asked) + 2) + [1] * (len(window) + 1))
            owners.append(number)
            if start + room >= len(text):
                break
            start += min(stride, room)
    splits = features.row_splits
    rows = [features.input_ids[a:b].tolist() for a, b in zip(splits[:-1], splits[1:], strict=True)]
    assert rows == expected and max(map(len, rows)) <= length
    assert features.token_type_ids.tolist() == [t for row in types for t in row]
    assert features.question_of_row.tolist() == owners


def test_labels_point_to_the_answer_or_to_cls(tokenizer, small_world):
    questions = make_questions(small_world)
    features = question_answering.make_features(
        questions, tokenizer, (), 32, doc_stride=6, max_query_length=10
    )
    found = set()
    for row, number in enumerate(features.question_of_row):
        question, (start, end, length) = questions[number], features.labels[row]
        assert length == features.row_lengths[row]
        has_text = any(answer.text.strip() for answer in question.answers)
        assert features.sample_weights[row] == has_text
        if start == 0:
            assert end == 0
            continue
        found.add(number)
        shift = features.window_pieces[row] + features.row_splits[row] - features.windows[row]
        pieces = features.pieces
        (answer,) = question.answers
        cut_start, cut_end = pieces.starts[start + shift], pieces.ends[end + shift]
        cut = question.context[cut_start:cut_end]
        assert answer.text.strip() in cut
        # Without its first or its last piece, it would be too short.
        stripped = answer.start + len(answer.text) - len(answer.text.lstrip())
        assert pieces.ends[start + shift] > stripped
        assert pieces.starts[end + shift] < stripped + len(answer.text.strip())
    assert len(found) > 30


def test_an_answer_beyond_the_first_window(tokenizer):
    """I3: the answer at about piece 900 of 1000 is in a later window, and the others are negatives."""
    context = "x. " * 300 + "The garden. " + "x. " * 30
    start = context.index("garden")
    question = Question("1", "where?", context, (Answer("garden", start),))
    features = question_answering.make_features([question], tokenizer, (), 128)
    has_answer = features.labels[:, 0] > 0
    assert features.num_rows > 5 and 0 < has_answer.sum() < features.num_rows
    assert not has_answer[0] and features.sample_weights.all()


@pytest.mark.parametrize("context", ["", "  \n ", "\u200b"])
def test_texts_without_text(tokenizer, context):
    features = question_answering.make_features([Question("1", "?", context, ())], tokenizer)
    assert features.num_rows == 1 and features.window_lengths.tolist() == [0]
    assert features.input_ids[-2:].tolist() == [tokenizer.sep_id] * 2


def test_no_question_at_all(tokenizer):
    features = question_answering.make_features([], tokenizer)
    assert features.num_rows == 0 and features.labels.shape == (0, 3)


def test_answers_without_a_place_have_no_weight(tokenizer):
    questions = [
        Question("1", "?", "The house", (Answer("sea", None),)),
        Question("2", "?", "The house", (Answer("sea", None), Answer("house", 4))),
        Question("3", "?", "The  house", (Answer(" ", 3),)),
    ]
    features = question_answering.make_features(questions, tokenizer)
    assert features.sample_weights.tolist() == [0, 1, 0]
    assert (features.labels[:, 0] > 0).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"max_seq_length": 16}, "max_seq_length"),
        ({"max_seq_length": 43, "max_query_length": 40}, "max_seq_length"),
        ({"doc_stride": 0}, "doc_stride"),
        ({"max_query_length": 0}, "max_query_length"),
    ],
)
def test_lengths_that_leave_no_room(tokenizer, settings, name):
    """I1: an error in place of an endless loop."""
    with pytest.raises(ValueError, match=f"^`{name}` .*Received: "):
        question_answering.make_features([Question("1", "?", "a", ())], tokenizer, **settings)


def test_the_shortest_rows_that_are_allowed(tokenizer):
    context = "The old man reads a book in the garden."
    question = Question("1", "The old man reads a book. " * 5, context, ())
    features = question_answering.make_features([question], tokenizer, (), 44, max_query_length=40)
    assert (features.window_lengths == 1).all()
    np.testing.assert_array_equal(
        features.input_ids[features.windows], tokenizer.encode([context])[0]
    )
