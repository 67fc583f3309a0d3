"""Each kind of model answers over strings what the Python model answers."""

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import (
    answer_spans,
    classification,
    question_answering,
    squad_files,
    tagging,
)
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.training.label_predictor import LabelPredictor

LIMIT = 32


def padded(rows, pad_id):
    ids = tf.ragged.constant([list(row) for row in rows], tf.int32)
    mask = tf.sequence_mask(ids.row_lengths(), dtype=tf.int32)
    return {"input_ids": ids.to_tensor(pad_id), "attention_mask": mask}


def framed(tokenizer, pieces):
    return [tokenizer.cls_id, *pieces[: LIMIT - 2], tokenizer.sep_id]


def test_a_classifier_answers_pairs_and_single_texts(served, models, tokenizer, all_text):
    firsts, seconds = all_text, all_text[7:] + all_text[:7]
    labels = models["classifier"].config.id2label
    for signature, others in (("serve_pairs", seconds), ("serve_text", [""] * len(firsts))):
        inputs = {"text": firsts} | ({"text_pair": others} if signature == "serve_pairs" else {})
        answer = served["classifier"](signature, **inputs)
        pairs = [
            classification.SentencePair(a, b, None, 1) for a, b in zip(firsts, others, strict=True)
        ]
        features = classification.make_features(pairs, tokenizer, labels, LIMIT)
        rows = np.split(features.input_ids, features.row_splits[1:-1])
        types = np.split(features.token_type_ids, features.row_splits[1:-1])
        batch = padded(rows, tokenizer.pad_id)
        batch["token_type_ids"] = padded(types, 0)["input_ids"]
        expected = tf.nn.softmax(models["classifier"](batch)).numpy()
        np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-5)
        assert answer["label"].tolist() == [labels[i] for i in expected.argmax(-1)]
        np.testing.assert_allclose(answer["probability"], expected.max(-1), atol=1e-5)
        whole = classification.make_features(pairs, tokenizer, labels, 10_000)
        assert answer["truncated"].tolist() == (whole.row_lengths > LIMIT).tolist()
        assert len(set(answer["label"])) > 1 and 0 < answer["truncated"].sum() < len(firsts)


def test_a_tagger_tags_words_as_prediction_does(served, models, tokenizer, small_world):
    texts = [text for texts in small_world.SENTENCES.values() for text in texts] + ["", " x\t y "]
    labels = models["tagger"].config.id2label
    sentences = [tagging.TaggedSentence(tuple(text.split()), None, 1) for text in texts]
    features = tagging.make_features(sentences, tokenizer, labels, LIMIT)
    expected = tagging.predicted_tags(features, LabelPredictor(models["tagger"], 4)(features))
    answer = served["tagger"](text=texts)
    width = answer["words"].shape[1]  # of the words that had room
    longest = max(len(text.split()) for text in texts)
    words = [text.split() + [""] * (longest - len(text.split())) for text in texts]
    of_words = served["tagger"]("serve_words", words=words)
    checked = 0
    for number, (text, tags) in enumerate(zip(texts, expected, strict=True)):
        if answer["truncated"][number]:
            continue
        count, checked = len(tags), checked + 1
        filling = [""] * (width - count)
        assert answer["words"][number].tolist() == text.split() + filling
        assert answer["tags"][number].tolist() == tags + filling
        assert of_words["tags"][number].tolist() == tags + [""] * (longest - count)
        places = list(zip(answer["starts"][number], answer["ends"][number], strict=True))
        assert [text[s:e] for s, e in places[:count]] == text.split()
        assert set(places[count:]) <= {(-1, -1)}
        assert np.all(answer["probability"][number, :count] >= 1 / len(labels))
        assert not answer["probability"][number, count:].any()
    assert checked > 40 and len({tag for tags in expected for tag in tags}) > 1
    np.testing.assert_allclose(of_words["probability"][:, :width], answer["probability"], atol=1e-6)
    assert not of_words["probability"][:, width:].any()


def test_an_empty_word_between_words_has_a_tag_as_in_training(served, models, tokenizer):
    answer = served["tagger"]("serve_words", words=[["a", "", "b", ""], ["", "", "", ""]])
    features = tagging.make_features(
        [tagging.TaggedSentence(("a", "", "b"), None, 1)], tokenizer, ("A",), LIMIT
    )
    tags = tf.argmax(models["tagger"](features.input_ids[np.newaxis]), -1).numpy()
    labels = models["tagger"].config.id2label
    expected = [labels[i] for i in tags[0, features.word_positions]]
    assert answer["tags"].tolist() == [[*expected, ""], [""] * 4]


def test_a_tagger_tags_text_without_spaces_piece_by_piece(served, models, tokenizer, all_text):
    answer = served["tagger"]("serve_pieces", text=all_text)
    spans = SpanTokenizer(tokenizer).tokenize([text.encode() for text in all_text])
    pieces = tokenizer.pieces()
    for number in range(len(all_text)):
        ids = spans.ids[number].numpy()[: LIMIT - 2]
        row = np.array([framed(tokenizer, ids.tolist())])
        probabilities = tf.nn.softmax(models["tagger"](row))[0, 1:-1].numpy()
        count = len(ids)
        assert answer["pieces"][number, :count].tolist() == [pieces[i] for i in ids]
        labels = [models["tagger"].config.id2label[i] for i in probabilities.argmax(-1)]
        assert answer["tags"][number, :count].tolist() == labels
        np.testing.assert_allclose(
            answer["probability"][number, :count], probabilities.max(-1), atol=1e-5
        )
        np.testing.assert_array_equal(
            answer["starts"][number, :count], spans.starts[number][:count]
        )
        np.testing.assert_array_equal(answer["ends"][number, :count], spans.ends[number][:count])
        assert not any(answer["tags"][number, count:])
        assert answer["truncated"][number] == (len(spans.ids[number]) > LIMIT - 2)


def test_questions_are_answered_as_prediction_does(served, models, tokenizer, all_text, settings):
    contexts = [*all_text, " ".join(all_text), "½ ﬁ " * 40]
    asked = (all_text[3:] + all_text[:3] + ["who?", "long question " * 20])[: len(contexts)]
    examples = [
        squad_files.Question(id=str(n), question=q, context=c, answers=())
        for n, (q, c) in enumerate(zip(asked, contexts, strict=True))
    ]
    lengths = {"doc_stride": settings.doc_stride, "max_query_length": settings.max_query_length}
    features = question_answering.make_features(examples, tokenizer, (), LIMIT, **lengths)
    outputs = LabelPredictor(models["questions"], 4)(features)
    expected = answer_spans.predictions(
        features, outputs, n_best_size=settings.n_best_size,
        max_answer_length=settings.max_answer_length,
    )  # fmt: skip
    answer = served["questions"](question=asked, context=contexts)
    assert np.bincount(features.question_of_row).max() > 100  # windows of a long context
    for number, (context, prediction) in enumerate(zip(contexts, expected, strict=True)):
        start, end = answer["start"][number], answer["end"][number]
        assert answer["answer"][number] == context[start:end] == prediction.text
        if not prediction.n_best:
            assert (start, end, answer["probability"][number]) == (0, 0, 0)
            assert answer["score"][number] == np.finfo("float32").min
            continue
        best = prediction.n_best[0]
        assert (start, end) == (best.start, best.end)
        score = best.start_logit + best.end_logit
        np.testing.assert_allclose(answer["score"][number], score, atol=1e-4)
        np.testing.assert_allclose(answer["start_logit"][number], best.start_logit, atol=1e-4)
        np.testing.assert_allclose(answer["probability"][number], best.probability, atol=1e-4)
    assert answer["truncated"][-1] and not answer["truncated"].all()
    assert any(not prediction.n_best for prediction in expected)


def test_masks_in_a_text_are_filled_as_the_model_does(served, models, tokenizer, settings):
    texts = ["The old [MASK] reads a book.", "[MASK][MASK]", "no mask", "", "a [MASK", "家[MASK]看 [MASK]",
             "ab" * 50 + "[MASK]", "[MASK]" * 100]  # fmt: skip
    answer = served["masked_lm"]("fill_mask", text=texts)
    pieces = np.array(tokenizer.pieces(), object)  # the table has 40,000 rows
    for number, text in enumerate(texts):
        parts = [ids.tolist() for ids in tokenizer.encode(text.split("[MASK]"))]
        ids = parts[0] + [i for part in parts[1:] for i in (tokenizer.mask_id, *part)]
        row = framed(tokenizer, ids)
        positions = [p for p, i in enumerate(row) if i == tokenizer.mask_id]
        assert answer["truncated"][number] == (len(ids) > LIMIT - 2)
        count = len(positions)
        assert not answer["probabilities"][number, count:].any()
        assert set(answer["starts"][number, count:]) <= {-1}
        starts = answer["starts"][number, :count]
        assert all(text[s:].startswith("[MASK]") for s in starts) and len(set(starts)) == count
        if not count:
            continue
        logits = models["masked_lm"](
            {"input_ids": np.array([row]), "masked_lm_positions": np.array([positions])}
        )
        shares = tf.nn.softmax(logits[0, :, : len(pieces)])
        best = tf.math.top_k(shares, settings.top_k)
        np.testing.assert_allclose(answer["probabilities"][number, :count], best.values, atol=1e-5)
        assert np.array_equal(answer["pieces"][number, :count], pieces[best.indices.numpy()])
    assert (answer["starts"][:, 0] >= 0).sum() == 4 and answer["pieces"].shape[1:] == (30, 3)


def test_sentences_become_the_mean_of_a_layer(served, models, tokenizer, all_text):
    answer = served["encoder"]("embed", text=all_text)
    for number, ids in enumerate(tokenizer.encode(all_text)):
        row = np.array([framed(tokenizer, ids.tolist())])
        hidden = models["encoder"](row, output_hidden_states=True)["hidden_states"][1]
        np.testing.assert_allclose(
            answer["embedding"][number], hidden[0].numpy().mean(0), atol=1e-5
        )
        assert answer["truncated"][number] == (len(ids) > LIMIT - 2)


@pytest.mark.parametrize("name", ["tagger", "classifier", "questions", "masked_lm", "encoder"])
def test_ids_give_what_the_model_says(exported, models, name):
    rng = np.random.default_rng(0)
    features = {
        "input_ids": rng.integers(5, 300, (3, 9)).astype("int32"),
        "attention_mask": (np.arange(9) < np.array([[9], [4], [1]])).astype("int32"),
        "token_type_ids": rng.integers(0, 2, (3, 9)).astype("int32"),
    }
    if name == "masked_lm":
        features["masked_lm_positions"] = np.array([[1, 4], [0, 0], [0, 8]], "int32")
    expected = models[name](features)
    expected = expected if isinstance(expected, dict) else {"logits": expected}
    for kind in ("ids", "text"):
        module = tf.saved_model.load(str(exported / name / kind / "1"))
        ask = module.signatures["serving_default"]
        answer = ask(**{key: tf.constant(value) for key, value in features.items()})
        for key, value in expected.items():
            np.testing.assert_allclose(answer[key], value, atol=1e-5)
        if "probabilities" in answer:
            expected_shares = tf.nn.softmax(expected["logits"])
            np.testing.assert_allclose(answer["probabilities"], expected_shares, atol=1e-5)
        empty = ask(**{key: tf.constant(value[:0]) for key, value in features.items()})
        assert all(value.shape[0] == 0 for value in empty.values())
