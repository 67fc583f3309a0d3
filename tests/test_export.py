import json
import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.export import export
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import classification, tagging
from rembert_tf.training.label_predictor import LabelPredictor

LABELS = {"tagger": ("DET", "NOUN", "VERB", "X"), "classifier": ("no", "yes", "может")}
LIMIT = 32
SENTENCES = ["The old man reads a book", "  Старый дом\tстоит у реки . ", "孩子 在家 看书", "x"]
PAIRS = [("We eat bread.", "He reads."), ("Дети пьют чай", ""), ("家", "书在家里。" * 20)]
AWKWARD = [b"", b"   ", b"\xff\xfe bad \xe4\xb8", b"a\x00b", "\u200b \u00a0\U0001f600".encode()]


@pytest.fixture(scope="module")
def models():
    """A tagger and a classifier, random but far from indifferent."""
    keras.utils.set_random_seed(0)
    shape = RemBertConfig(
        vocab_size=40_000, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, input_embedding_size=8, output_embedding_size=24,
        max_position_embeddings=LIMIT, initializer_range=0.5,
    )  # fmt: skip
    return {
        "tagger": RemBertForTokenClassification(shape.replace(id2label=LABELS["tagger"])),
        "classifier": RemBertForSequenceClassification(
            shape.replace(id2label=LABELS["classifier"])
        ),
    }


@pytest.fixture(scope="module")
def exported(models, tokenizer, tmp_path_factory):
    """Both models, exported and then moved to another place."""
    written = tmp_path_factory.mktemp("written")
    for name, model in models.items():
        paths = export(model, tokenizer, written / name, max_seq_length=LIMIT)
        assert paths.ids == written / name / "ids" / "1"
        assert paths.text == written / name / "text" / "1"
    moved = tmp_path_factory.mktemp("moved") / "served"
    shutil.move(written, moved)
    return moved


@pytest.fixture(scope="module")
def serve(exported):
    """The `serve_text` signatures by name of the model."""
    loaded = {name: tf.saved_model.load(str(exported / name / "text/1")) for name in LABELS}
    return {name: module.signatures["serve_text"] for name, module in loaded.items()}


def ask(signature, *strings):
    names = ("text", "text_pair")[: len(strings)]
    answer = signature(
        **{k: tf.constant(v, tf.string) for k, v in zip(names, strings, strict=True)}
    )
    return {key: value.numpy() for key, value in answer.items()}


def decoded(strings):
    return np.vectorize(bytes.decode, otypes=[object])(strings)


def test_the_folders_hold_what_they_say(exported, models, tokenizer):
    for name in LABELS:
        for kind, assets in (
            ("ids", ["README.md", "config.json"]),
            ("text", ["README.md", "config.json", "sentencepiece.model"]),
        ):
            folder = exported / name / kind / "1"
            assert sorted(path.name for path in (folder / "assets").iterdir()) == assets
            config = RemBertConfig.from_json_file(folder / "assets/config.json")
            assert config == models[name].config
            readme = (folder / "assets/README.md").read_text(encoding="utf-8")
            assert ", ".join(LABELS[name]) in readme and f"at most {LIMIT} pieces" in readme
            assert ("text_pair" in readme) == (name == "classifier")
        vocabulary = exported / name / "text/1/assets/sentencepiece.model"
        assert vocabulary.read_bytes() == tokenizer.model_bytes
        assert not list(exported.rglob("*.incomplete"))


def test_every_weight_is_written_once(exported, models):
    for name, model in models.items():
        weights = sum(4 * int(np.prod(variable.shape)) for variable in model.weights)
        assert weights > 1_000_000
        for kind in ("ids", "text"):
            folder = exported / name / kind / "1"
            stored = sum(path.stat().st_size for path in (folder / "variables").iterdir())
            assert weights < stored < 1.05 * weights + 10_000


def test_the_graph_does_not_grow_with_the_vocabulary(exported, models, tokenizer, tmp_path):
    config = models["classifier"].config
    small = RemBertForSequenceClassification(config.replace(vocab_size=1_000))
    paths = export(small, tokenizer, tmp_path, max_seq_length=LIMIT)
    for kind in ("ids", "text"):
        folders = getattr(paths, kind), exported / "classifier" / kind / "1"
        sizes = [(folder / "saved_model.pb").stat().st_size for folder in folders]
        assert sizes[1] == pytest.approx(sizes[0], rel=0.01)


def test_versions_count_on_and_are_never_replaced(models, tokenizer, tmp_path):
    model = models["classifier"]
    for kind, version in (("ids", 3), ("text", 2)):
        (tmp_path / kind / str(version)).mkdir(parents=True)
    paths = export(model, tokenizer, tmp_path, max_seq_length=LIMIT)
    assert paths.ids == tmp_path / "ids/4" and paths.text == tmp_path / "text/4"
    before = sorted(tmp_path.rglob("*"))
    for version in (2, 3, 4):
        with pytest.raises(ValueError, match=f"exists already. Received: version={version}"):
            export(model, tokenizer, tmp_path, max_seq_length=LIMIT, version=version)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_cannot_be_exported_is_refused(models, tokenizer, tmp_path):
    masked_lm = RemBertForMaskedLM(models["tagger"].config.replace(vocab_size=300))
    with pytest.raises(ValueError, match="Received: model of type RemBertForMaskedLM"):
        export(masked_lm, tokenizer, tmp_path)
    for length in (4, LIMIT + 1):
        with pytest.raises(ValueError, match=f"Received: max_seq_length={length}"):
            export(models["tagger"], tokenizer, tmp_path, max_seq_length=length)
    assert not list(tmp_path.iterdir())


def test_a_served_tagger_tags_as_prediction_does(serve, models, tokenizer):
    answer = ask(serve["tagger"], SENTENCES)
    sentences = [tagging.TaggedSentence(tuple(text.split()), None, 1) for text in SENTENCES]
    features = tagging.make_features(sentences, tokenizer, LABELS["tagger"], LIMIT)
    tags = tagging.predicted_tags(features, LabelPredictor(models["tagger"], 2)(features))
    assert len({tag for row in tags for tag in row}) > 1
    rows = zip(SENTENCES, tags, decoded(answer["words"]), decoded(answer["tags"]), strict=True)
    for number, (text, expected, words, served) in enumerate(rows):
        count = len(expected)
        assert served.tolist() == expected + [""] * (len(served) - count)
        assert words.tolist() == text.split() + [""] * (len(served) - count)
        starts, ends = answer["starts"][number], answer["ends"][number]
        assert [
            text[s:e] for s, e in zip(starts[:count], ends[:count], strict=True)
        ] == text.split()
        assert np.all(starts[count:] == -1) and np.all(ends[count:] == -1)
        probability = answer["probability"][number]
        assert np.all(probability[:count] >= 1 / len(LABELS["tagger"]))
        assert np.all(probability[count:] == 0)
    assert not answer["truncated"].any()


def test_a_served_classifier_answers_as_the_model_does(serve, models, tokenizer):
    answer = ask(serve["classifier"], *map(list, zip(*PAIRS, strict=True)))
    pairs = [classification.SentencePair(*pair, None, 1) for pair in PAIRS]
    for number, pair in enumerate(pairs):
        features = classification.make_features([pair], tokenizer, LABELS["classifier"], LIMIT)
        logits = models["classifier"](
            {
                "input_ids": features.input_ids[np.newaxis],
                "token_type_ids": features.token_type_ids[np.newaxis],
            }
        )
        expected = tf.nn.softmax(logits)[0].numpy()
        np.testing.assert_allclose(answer["probabilities"][number], expected, atol=1e-5)
        assert answer["label"][number].decode() == LABELS["classifier"][np.argmax(expected)]
        np.testing.assert_allclose(answer["probability"][number], expected.max(), atol=1e-5)
    assert answer["truncated"].tolist() == [False, False, True]


@pytest.mark.parametrize("name", LABELS)
def test_ids_give_the_models_own_logits(exported, models, name):
    rng = np.random.default_rng(0)
    features = {
        "input_ids": rng.integers(5, 300, (3, 9)).astype("int32"),
        "attention_mask": (np.arange(9) < np.array([[9], [4], [1]])).astype("int32"),
        "token_type_ids": rng.integers(0, 2, (3, 9)).astype("int32"),
    }
    expected = models[name](features).numpy()
    for kind in ("ids", "text"):
        module = tf.saved_model.load(str(exported / name / kind / "1"))
        answer = module.signatures["serving_default"](
            **{key: tf.constant(value) for key, value in features.items()}
        )
        np.testing.assert_allclose(answer["logits"], expected, atol=1e-5)
        np.testing.assert_allclose(answer["probabilities"], tf.nn.softmax(expected), atol=1e-5)


def test_an_answer_does_not_depend_on_its_neighbours(serve):
    texts = SENTENCES + ["word " * 100]
    together, reversed_ = ask(serve["tagger"], texts), ask(serve["tagger"], texts[::-1])
    for number, text in enumerate(texts):
        alone = ask(serve["tagger"], [text])
        width = alone["words"].shape[1]
        for batch, row in ((together, number), (reversed_, -1 - number)):
            assert batch["tags"][row, :width].tolist() == alone["tags"][0].tolist()
            np.testing.assert_allclose(
                batch["probability"][row, :width], alone["probability"][0], atol=1e-5
            )
            assert not any(batch["tags"][row, width:])
    for order in (PAIRS, PAIRS[::-1]):
        batch = ask(serve["classifier"], *map(list, zip(*order, strict=True)))
        for row, (first, second) in enumerate(order):
            alone = ask(serve["classifier"], [first], [second])
            np.testing.assert_allclose(
                batch["probabilities"][row], alone["probabilities"][0], atol=1e-5
            )


def test_words_beyond_the_limit_are_given_without_a_tag(serve):
    answer = ask(serve["tagger"], ["a " * 100, "a a"])
    tags = answer["tags"]
    assert answer["truncated"].tolist() == [True, False]
    assert answer["words"].shape == (2, 100) and all(answer["words"][0] == b"a")
    tagged = tags[0] != b""
    assert 0 < tagged.sum() <= LIMIT - 2 and np.array_equal(tagged, np.sort(tagged)[::-1])
    assert np.array_equal(answer["probability"][0] > 0, tagged)
    assert (tags[1] != b"").sum() == 2


def test_awkward_strings_are_answered(serve):
    answer = ask(serve["tagger"], AWKWARD)
    counts = [np.sum(row != b"") for row in answer["tags"]]
    assert counts == [0, 0, 3, 1, 2] and not answer["truncated"].any()
    answer = ask(serve["classifier"], AWKWARD, AWKWARD[::-1])
    assert {label.decode() for label in answer["label"]} <= set(LABELS["classifier"])
    np.testing.assert_allclose(answer["probabilities"].sum(axis=1), 1, atol=1e-5)
    for text in ([b"", b" "], []):  # not one word, not one string
        assert ask(serve["tagger"], text)["tags"].shape == (len(text), 0)


# Fresh processes, elsewhere, which know nothing of this project.

IDS = """
import json, sys
import tensorflow as tf
folder, features = sys.argv[1], json.loads(sys.argv[2])
answers = {}
for name in ("tagger", "classifier"):
    path = f"{folder}/{name}/ids/1"
    signature = tf.saved_model.load(path).signatures["serving_default"]
    tensors = {key: tf.constant(value, tf.int32) for key, value in features.items()}
    answer = signature(**tensors)["logits"].numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], path)
        signature = graph.signature_def["serving_default"]
        feed = {signature.inputs[key].name: value for key, value in features.items()}
        logits = session.run(signature.outputs["logits"].name, feed)
    assert abs(answer - logits).max() < 1e-5
    answers[name] = answer.tolist()
assert not {"rembert_tf", "tensorflow_text"} & set(sys.modules)
print("ANSWERS", json.dumps(answers))
"""

TEXT = """
import json, sys
import tensorflow as tf, tensorflow_text
folder, (sentences, first, second) = sys.argv[1], json.loads(sys.argv[2])
load = lambda name: tf.saved_model.load(f"{folder}/{name}/text/1").signatures["serve_text"]
tags = load("tagger")(text=tf.constant(sentences))["tags"].numpy()
labels = load("classifier")(text=tf.constant(first), text_pair=tf.constant(second))["label"]
answers = [[[tag.decode() for tag in row] for row in tags], [x.decode() for x in labels.numpy()]]
assert "rembert_tf" not in sys.modules
print("ANSWERS", json.dumps(answers))
"""


def fresh_process(code, folder, question, cwd):
    result = subprocess.run(
        [sys.executable, "-c", code, str(folder), json.dumps(question)],
        capture_output=True, text=True, timeout=300, cwd=cwd,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    (line,) = (x for x in result.stdout.splitlines() if x.startswith("ANSWERS "))
    return json.loads(line.removeprefix("ANSWERS "))


def test_ids_answer_where_there_is_tensorflow_alone(exported, models, tmp_path):
    features = {
        "input_ids": [[2, 9, 8, 3]],
        "attention_mask": [[1] * 4],
        "token_type_ids": [[0] * 4],
    }
    answers = fresh_process(IDS, exported, features, tmp_path)
    for name, model in models.items():
        expected = model(np.array(features["input_ids"], "int32"))
        np.testing.assert_allclose(answers[name], expected, atol=1e-5)


def test_strings_are_answered_where_this_package_is_not_imported(exported, serve, tmp_path):
    first, second = map(list, zip(*PAIRS, strict=True))
    tags, labels = fresh_process(TEXT, exported, (SENTENCES, first, second), tmp_path)
    assert tags == decoded(ask(serve["tagger"], SENTENCES)["tags"]).tolist()
    assert labels == decoded(ask(serve["classifier"], first, second)["label"]).tolist()
