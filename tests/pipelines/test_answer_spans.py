"""The best answers of a question, beside the plain loops of the definition."""

import json

import numpy as np
import pytest

from rembert_tf.pipelines import answer_spans, question_answering, tagging
from rembert_tf.pipelines.answer_ceiling import answer_ceiling, log_ceiling
from rembert_tf.pipelines.squad_files import Answer, Question

TEXT = "The old man reads  a book ½ in the garden. 孩子在家看书。 Снег лежит e\u0301 \ufdfa 😀\u200d🔬 на горах."


@pytest.fixture(scope="module")
def features(tokenizer):
    questions = [
        Question("a", "where?", TEXT, ()),
        Question("b", "what is in the garden", TEXT[:40], ()),
        Question("empty", "?", " \n", ()),
        Question("a", "who?", TEXT * 3, ()),
    ]
    return question_answering.make_features(
        questions, tokenizer, (), 40, doc_stride=7, max_query_length=20
    )


def by_loops(features, outputs, number, n_best_size, max_answer_length):
    """BERT's rule, word for word, over all pairs."""
    rows = np.flatnonzero(features.question_of_row == number)
    pieces = features.pieces

    def context_of(row, piece):
        left = piece - features.window_pieces[row]
        right = features.window_lengths[row] - 1 - left
        return min(left, right) + 0.01 * features.window_lengths[row]

    def windows_with(piece):
        return [
            r for r in rows if 0 <= piece - features.window_pieces[r] < features.window_lengths[r]
        ]

    found = []
    for row in rows:
        first = features.window_pieces[row]
        logits = outputs[features.windows[row] :]
        for i in range(features.window_lengths[row]):
            if max(windows_with(first + i), key=lambda r: context_of(r, first + i)) != row:
                continue
            for j in range(i, min(i + max_answer_length, features.window_lengths[row])):
                if all(pieces.ends[first + k] > pieces.starts[first + k] for k in (i, j)):
                    score = logits[i, 0] + logits[j, 1]
                    found.append((score, pieces.starts[first + i], pieces.ends[first + j]))
    return sorted(found, reverse=True)[:n_best_size]


@pytest.mark.parametrize("n_best_size, max_answer_length", [(1, 1), (5, 3), (20, 30), (2000, 100)])
def test_the_n_best_are_those_of_the_loops(features, n_best_size, max_answer_length):
    outputs = np.random.default_rng(0).normal(size=(len(features.input_ids), 2)).astype(np.float32)
    answers = answer_spans.predictions(
        features, outputs, n_best_size=n_best_size, max_answer_length=max_answer_length
    )
    assert [answer.id for answer in answers] == ["a", "b", "empty", "a"]
    for number, (question, answer) in enumerate(zip(features.questions, answers, strict=True)):
        expected = by_loops(features, outputs, number, n_best_size, max_answer_length)
        made = [(c.start_logit + c.end_logit, c.start, c.end) for c in answer.n_best]
        assert [m[1:] for m in made] == [e[1:] for e in expected]
        np.testing.assert_allclose([m[0] for m in made], [e[0] for e in expected], rtol=1e-5)
        assert all(c.text == question.context[c.start : c.end] for c in answer.n_best)
        shares = np.exp([e[0] - expected[0][0] for e in expected])
        np.testing.assert_allclose(
            [c.probability for c in answer.n_best], shares / shares.sum(), rtol=1e-5
        )
        assert answer.text == (answer.n_best[0].text if number != 2 else "")


def test_equal_scores_go_to_the_first_place(features):
    outputs = np.zeros((len(features.input_ids), 2), np.float32)
    answers = answer_spans.predictions(features, outputs)
    again = answer_spans.predictions(features, outputs, n_best_size=1)
    assert [a.text for a in answers] == [a.text for a in again]
    assert all(len(answer.n_best) == 20 for answer in answers if answer.id != "empty")


def test_perfect_logits_give_every_answer_in_every_script(tokenizer):
    """I4: answers are slices of the user's own context."""
    words = ["man", "½", "garden", "孩", "Снег", "e\u0301", "\ufdfa", "😀\u200d🔬", "горах"]
    questions = [
        Question(word, "?", TEXT * 2, (Answer(word, TEXT.index(word) + shift),))
        for word in words
        for shift in (0, len(TEXT))
    ]
    made = question_answering.make_features(
        questions, tokenizer, (), 48, doc_stride=16, max_query_length=8
    )
    outputs = perfect(made)
    for question, answer in zip(questions, answer_spans.predictions(made, outputs), strict=True):
        assert question.id in answer.text  # a small vocabulary may cut at more
        assert answer.n_best[0].start <= question.answers[0].start < answer.n_best[0].end


def perfect(features):
    outputs = np.zeros((len(features.input_ids), 2), np.float32)
    has_answer = features.labels[:, 0] > 0
    for column in range(2):
        places = features.row_splits[:-1] + features.labels[:, column]
        outputs[places[has_answer], column] = 10
    return outputs


def test_settings_and_shapes_are_checked(features):
    outputs = np.zeros((len(features.input_ids), 2), np.float32)
    for name in ("n_best_size", "max_answer_length"):
        with pytest.raises(ValueError, match=f"^`{name}` must be at least 1. Received: {name}=0"):
            answer_spans.predictions(features, outputs, **{name: 0})
    for wrong in (outputs[:-1], outputs[:, :1], outputs + np.nan):
        with pytest.raises(ValueError, match="^`outputs` must be finite logits"):
            answer_spans.predictions(features, wrong)


def test_files(features, tmp_path):
    """Repeated ids keep all answers, in order."""
    outputs = np.random.default_rng(1).normal(size=(len(features.input_ids), 2))
    answers = answer_spans.predictions(features, outputs, n_best_size=3)
    answers.insert(1, answer_spans.AnswerPrediction("a#2", answers[0].n_best))
    answer_spans.write_predictions(tmp_path / "answers.json", answers)
    answer_spans.write_n_best(tmp_path / "n_best.json", answers)
    read = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    assert list(read) == ["a", "a#2", "b", "empty", "a#3"]
    assert list(read.values()) == [answer.text for answer in answers]
    n_best = json.loads((tmp_path / "n_best.json").read_text(encoding="utf-8"))
    assert {len(n_best[key]) for key in ("a", "b", "a#3")} == {3} and n_best["empty"] == []
    assert n_best["b"][0]["text"] == read["b"]
    assert answer_spans.format_line(answer_spans.AnswerPrediction("a", ())) == ""
    candidate = answers[0].n_best[0]._replace(text=" two\n\twords ")
    assert answer_spans.format_line(answer_spans.AnswerPrediction("a", (candidate,))) == "two words"


def test_the_ceiling_counts_what_stands_in_the_way(tokenizer):
    text = "The house. " * 10

    def ask(*answers):
        return Question("1", "?", text, answers)

    questions = [
        ask(Answer("The house.", 11)),
        ask(Answer(" house", 3)),  # spaces do not count
        ask(Answer("ous", 5)),
        ask(Answer("ous", 5), Answer("house", 4)),
        ask(Answer(text, 0)),
        ask(Answer("sea", None)),
        ask(),
    ]
    ceiling = answer_ceiling(questions, tokenizer, max_answer_length=20)
    counts = (
        ceiling.questions,
        ceiling.reachable,
        ceiling.boundaries,
        ceiling.length,
        ceiling.windows,
        ceiling.place,
    )
    assert counts == (6, 3, 1, 1, 0, 1)
    assert ceiling.exact_match == 0.5 and "at most 50.0 % of 6 answers" in str(ceiling)
    ceiling = answer_ceiling(
        questions,
        tokenizer,
        max_seq_length=20,
        max_query_length=4,
        doc_stride=4,
        max_answer_length=100,
    )
    assert (ceiling.reachable, ceiling.length, ceiling.windows) == (3, 0, 1)
    ceiling = answer_ceiling(questions[2:3], tokenizer, words=lambda answer: [len(answer) > 0])
    assert ceiling.reachable == 1
    assert answer_ceiling([], tokenizer).exact_match == 0


def test_the_ceiling_is_logged_where_there_are_answers(tokenizer, caplog):
    caplog.set_level("INFO", logger="absl")
    text = "The house. " * 10
    answered = Question("1", "?", text, (Answer("The house.", 11),))
    withheld = Question("2", "?", text, ())
    features = question_answering.make_features([withheld, answered, withheld], tokenizer)
    caplog.clear()
    log_ceiling(features, 30)
    assert "a perfect model answers at most 100.0 % of 1 answers exactly" in caplog.text
    caplog.clear()
    log_ceiling(features, 1)
    assert "at most 0.0 % of 1 answers" in caplog.text
    assert "`max_answer_length` 100.0" in caplog.text
    without = question_answering.make_features([withheld], tokenizer)
    sentence = tagging.TaggedSentence(("The", "house"), None, 1)
    words = tagging.make_features([sentence], tokenizer, ("X",), 16)
    caplog.clear()
    for other in (without, words):
        log_ceiling(other, 30)
    assert not caplog.text
