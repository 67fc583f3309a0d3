"""Windows and answers in a graph are those of the Python side, for random logits of many shapes of context."""

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import answer_spans, question_answering, served_answers, squad_files
from rembert_tf.pipelines.features import ranges
from rembert_tf.pipelines.piece_spans import SpanTokenizer


@pytest.fixture(scope="module")
def questions(small_world):
    sentences = [text for texts in small_world.SENTENCES.values() for text in texts]
    contexts = [*sentences[:9], " ".join(sentences[:12]), "", "  ", "x", "½ ﬁ " * 30, " a" * 60]
    asked = [*sentences[3:16], "", "word " * 40]
    return [
        squad_files.Question(id=str(n), question=q, context=c, answers=())
        for n, (q, c) in enumerate(zip(asked, contexts, strict=True))
    ]


@pytest.mark.parametrize("length, stride, query", [(16, 3, 4), (24, 8, 9), (64, 100, 20)])
def test_rows_and_answers_are_those_of_prediction(questions, tokenizer, length, stride, query):
    features = question_answering.make_features(
        questions, tokenizer, (), length, doc_stride=stride, max_query_length=query
    )
    rng = np.random.default_rng(length)
    outputs = rng.normal(size=(len(features.input_ids), 2)).astype("float32")
    expected = answer_spans.predictions(features, outputs, n_best_size=4, max_answer_length=5)

    spans = SpanTokenizer(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)] * 2)
    def windows_of(question, context):
        return served_answers.question_rows(
            tokenizer, spans, question, context,
            max_seq_length=length, doc_stride=stride, max_query_length=query,
        )  # fmt: skip

    windows = windows_of(
        tf.constant([q.question for q in questions]), tf.constant([q.context for q in questions])
    )
    np.testing.assert_array_equal(windows.rows.input_ids.values, features.input_ids)
    np.testing.assert_array_equal(windows.rows.input_ids.row_splits, features.row_splits)
    np.testing.assert_array_equal(windows.rows.token_type_ids.values, features.token_type_ids)
    np.testing.assert_array_equal(windows.question_of_row, features.question_of_row)
    np.testing.assert_array_equal(windows.lengths, features.window_lengths)
    places = ranges(features.windows, features.window_lengths)
    starts = features.row_splits[:-1].repeat(features.window_lengths)
    np.testing.assert_array_equal(windows.positions.values, places - starts)

    best = served_answers.best_answers(
        windows, tf.constant(outputs[places]), tf.constant(len(questions)),
        n_best_size=4, max_answer_length=5,
    )  # fmt: skip
    for number, prediction in enumerate(expected):
        found = tuple(int(x[number]) for x in (best.starts, best.ends))
        if not prediction.n_best:
            assert found == (0, 0) and best.scores[number] == served_answers.NO_ANSWER
            assert best.probabilities[number] == 0
            continue
        answer = prediction.n_best[0]
        assert found == (answer.start, answer.end)
        score = answer.start_logit + answer.end_logit
        np.testing.assert_allclose(best.scores[number], score, atol=1e-5)
        np.testing.assert_allclose(best.probabilities[number], answer.probability, atol=1e-5)
    assert [bool(x) for x in windows.truncated][-1]


@pytest.mark.parametrize("most", [1, 3])
def test_windows_may_be_limited(questions, tokenizer, most):
    asked = [tf.constant([getattr(q, name) for q in questions]) for name in ("question", "context")]
    lengths = {"max_seq_length": 24, "doc_stride": 5, "max_query_length": 9}
    spans = SpanTokenizer(tokenizer)
    whole = served_answers.question_rows(tokenizer, spans, *asked, **lengths)
    few = served_answers.question_rows(tokenizer, spans, *asked, **lengths, max_windows=most)
    counts = np.bincount(whole.question_of_row)
    np.testing.assert_array_equal(np.bincount(few.question_of_row), np.minimum(counts, most))
    rows = np.flatnonzero(np.concatenate([np.arange(count) < most for count in counts]))
    assert few.rows.input_ids.to_list() == tf.gather(whole.rows.input_ids, rows).to_list()
    np.testing.assert_array_equal(few.truncated, whole.truncated.numpy() | (counts > most))
    assert 0 < np.sum(counts > most) < len(questions)


def test_no_question_at_all(tokenizer):
    windows = served_answers.question_rows(
        tokenizer, SpanTokenizer(tokenizer), tf.zeros([0], tf.string), tf.zeros([0], tf.string),
        max_seq_length=20, doc_stride=4, max_query_length=6,
    )  # fmt: skip
    best = served_answers.best_answers(
        windows, tf.zeros([0, 2]), tf.constant(0), n_best_size=3, max_answer_length=4
    )
    assert windows.rows.input_ids.nrows() == 0 and all(x.shape == (0,) for x in best)
