"""2,000 real texts in 40 and more languages: the export answers what the Python model answers, whatever the batch."""

import lzma
import pathlib

import numpy as np
import pytest
import tensorflow as tf

TEXTS = pathlib.Path(__file__).parents[3] / "shared" / "data" / "rawtext"

pytestmark = pytest.mark.skipif(not TEXTS.is_dir(), reason="needs the real files")


def paragraphs(path, count):
    opened = lzma.open if path.suffix == ".xz" else open
    found = []
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.strip():
                found.append(line.rstrip("\n"))
            if len(found) == count:
                break
    return found


@pytest.fixture(scope="module")
def texts():
    files = sorted(path for path in TEXTS.iterdir() if path.suffix in (".txt", ".xz"))
    made = [text for path in files for text in paragraphs(path, -(-2000 // len(files)))]
    assert len(files) > 40 and len(made) >= 2000
    return made[:2000]


def test_labels_and_vectors_are_those_of_the_model(served, models, tokenizer, texts):
    answers = served["classifier"](text=texts), served["encoder"](text=texts)
    assert 0 < answers[0]["truncated"].sum() < 2000 and len(set(answers[0]["label"])) == 3

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def call(ids):
        mask = tf.cast(ids != tokenizer.pad_id, tf.int32)
        segments = tf.cast(
            tf.cumsum(tf.cast(ids == tokenizer.sep_id, tf.int32), 1, True) > 0, tf.int32
        )
        pairs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}
        return tf.nn.softmax(models["classifier"](pairs))

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def hidden(ids):
        outputs = models["encoder"](ids, output_hidden_states=True)
        return tf.reduce_mean(outputs["hidden_states"][1], axis=1)

    cls, sep = [tokenizer.cls_id], [tokenizer.sep_id]
    for number, ids in enumerate(tokenizer.encode(texts)):
        ids = ids.tolist()
        row = tf.constant([cls + ids[:29] + sep + sep])
        np.testing.assert_allclose(answers[0]["probabilities"][number], call(row)[0], atol=1e-5)
        row = tf.constant([cls + ids[:30] + sep])
        np.testing.assert_allclose(answers[1]["embedding"][number], hidden(row)[0], atol=1e-5)


def test_offsets_are_places_in_the_users_own_text(served, texts):
    """Each word is the slice of the text that its offsets name; pieces cover the text in order."""
    texts = texts[::4]
    answer = served["tagger"](text=texts)
    for text, words, starts, ends in zip(
        texts, answer["words"], answer["starts"], answer["ends"], strict=True
    ):
        count = int(np.sum(words != ""))
        assert text.split()[:count] == words[:count].tolist()
        places = zip(starts[:count], ends[:count], strict=True)
        assert [text[start:end] for start, end in places] == words[:count].tolist()
    answer = served["tagger"]("serve_pieces", text=texts)
    for text, tags, starts, ends in zip(
        texts, answer["tags"], answer["starts"], answer["ends"], strict=True
    ):
        count = int(np.sum(tags != ""))
        has_text = ends[:count] > starts[:count]
        starts, ends = starts[:count][has_text], ends[:count][has_text]
        assert np.all(np.diff(starts) >= 0) and np.all(np.diff(ends) >= 0)
        assert not len(ends) or ends[-1] <= len(text)
