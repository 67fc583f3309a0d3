"""What lies in the two folders, how large it is, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.config import RemBertConfig
from rembert_tf.export import sizes
from rembert_tf.export.saved_model import export
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification

SIGNATURES = {
    "tagger": {"serve_text", "serve_words", "serve_pieces"},
    "classifier": {"serve_text", "serve_pairs"},
    "questions": {"serve_text"},
    "masked_lm": {"serve_text", "fill_mask"},
    "encoder": {"serve_text", "embed"},
}


def test_the_folders_hold_what_they_say(exported, models, tokenizer):
    for name, model in models.items():
        labels = model.config.id2label
        for kind in ("ids", "text"):
            folder = exported / name / kind / "1"
            expected = {"README.md", "config.json"} | ({"labels.txt"} if labels else set())
            expected |= {"sentencepiece.model"} if kind == "text" else set()
            assert {path.name for path in (folder / "assets").iterdir()} == expected
            config = RemBertConfig.from_json_file(folder / "assets/config.json")
            assert config == model.config
            readme = (folder / "assets/README.md").read_text(encoding="utf-8")
            assert "32 pieces" in readme and "curl -d" in readme and "tensorflow_text" in readme
            assert all(f"`{signature}(" in readme for signature in SIGNATURES[name])
            if labels:
                text = (folder / "assets/labels.txt").read_text(encoding="utf-8")
                assert tuple(text.splitlines()) == labels and ", ".join(labels) in readme
        vocabulary = exported / name / "text/1/assets/sentencepiece.model"
        assert vocabulary.read_bytes() == tokenizer.model_bytes
    assert not list(exported.rglob("*.incomplete"))


def test_signatures_have_the_names_of_their_tasks(served):
    for name, expected in SIGNATURES.items():
        assert set(served[name].signatures) == {"serving_default", *expected}


def test_every_weight_is_written_once(exported, models):
    for name, model in models.items():
        weights = sum(4 * int(np.prod(variable.shape)) for variable in model.weights)
        assert weights == sizes.weight_bytes(model) > 1_000_000
        for kind in ("ids", "text"):
            stored = sizes.on_disk(exported / name / kind / "1/variables")
            assert weights < stored < 1.02 * weights


def test_the_graph_does_not_grow_with_the_vocabulary(
    exported, models, tokenizer, tmp_path, settings
):
    config = models["classifier"].config
    small = RemBertForSequenceClassification(config.replace(vocab_size=1_000))
    paths = export(small, tokenizer, tmp_path, settings)
    for kind in ("ids", "text"):
        folders = getattr(paths, kind), exported / "classifier" / kind / "1"
        small_graph, graph = ((folder / "saved_model.pb").stat().st_size for folder in folders)
        assert graph == pytest.approx(small_graph, rel=0.01)


def test_bfloat16_halves_the_weights_and_answers_float32(models, tokenizer, tmp_path, settings):
    model = models["classifier"]
    half = RemBertForSequenceClassification(model.config, dtype="bfloat16")
    for to, of in zip(half.weights, model.weights, strict=True):
        to.assign(tf.cast(of, "bfloat16"))
    assert sizes.weight_bytes(half) == sizes.weight_bytes(model) // 2
    paths = export(half, tokenizer, tmp_path, settings)
    for folder in (paths.ids, paths.text):
        assert sizes.on_disk(folder / "variables") < 1.02 * sizes.weight_bytes(half)
    ask = tf.saved_model.load(str(paths.text)).signatures["serve_text"]
    probabilities = ask(text=tf.constant(["The old man"]))["probabilities"]
    whole = tf.nn.softmax(model(tokenized(tokenizer, "The old man")))
    assert probabilities.dtype == tf.float32
    np.testing.assert_allclose(probabilities, whole, atol=0.05)


def tokenized(tokenizer, text):
    ids = [tokenizer.cls_id, *tokenizer.encode([text])[0].tolist(), *[tokenizer.sep_id] * 2]
    return {
        "input_ids": np.array([ids]),
        "token_type_ids": np.array([[0] * (len(ids) - 1) + [1]]),
    }


def test_ids_of_fixed_length_compile_with_xla(models, tokenizer, tmp_path):
    model = models["classifier"]
    paths = export(model, tokenizer, tmp_path, ServingConfig(max_seq_length=32, ids_length=16))
    module = tf.saved_model.load(str(paths.ids))
    ask = module.signatures["serving_default"]
    features = {
        "input_ids": tf.constant([[2] * 16] * 3),
        "attention_mask": tf.ones([3, 16], tf.int32),
        "token_type_ids": tf.zeros([3, 16], tf.int32),
    }
    compiled = tf.function(lambda **x: ask(**x), jit_compile=True)(**features)
    np.testing.assert_allclose(compiled["logits"], model(features), atol=1e-5)
    assert ask.structured_input_signature[1]["input_ids"].shape.as_list() == [None, 16]


def test_versions_count_on_and_are_never_replaced(models, tokenizer, tmp_path, settings):
    model = models["classifier"]
    for kind, version in (("ids", 3), ("text", 2)):
        (tmp_path / kind / str(version)).mkdir(parents=True)
    paths = export(model, tokenizer, tmp_path, settings)
    assert paths.ids == tmp_path / "ids/4" and paths.text == tmp_path / "text/4"
    before = sorted(tmp_path.rglob("*"))
    for version in (2, 3, 4):
        with pytest.raises(ValueError, match=f"exists already. Received: version={version}"):
            export(model, tokenizer, tmp_path, settings, version=version)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_cannot_be_exported_is_refused(models, tokenizer, tmp_path):
    def refused(message, model, error=ValueError, **settings):
        with pytest.raises(error, match=message):
            export(model, tokenizer, tmp_path, ServingConfig(**settings))

    refused("Received: model of type Layer", tf.keras.layers.Layer())
    refused("Received: max_seq_length=33", models["tagger"], max_seq_length=33)
    refused("Received: max_seq_length=4", models["tagger"], max_seq_length=4)
    refused("Received: ids_length=33", models["tagger"], max_seq_length=32, ids_length=33)
    refused("Received: top_k=0", models["masked_lm"], max_seq_length=32, top_k=0)
    lengths = {"max_seq_length": 32, "max_query_length": 64}
    refused("max_seq_length=32, max_query_length=64", models["questions"], **lengths)
    refused("Received: layer=3", models["encoder"], max_seq_length=32, layer=3)
    few = RemBertForQuestionAnswering(models["questions"].config.replace(vocab_size=200))
    refused("Received: tokenizer of 300 pieces", few, max_seq_length=32, max_query_length=9)
    assert not list(tmp_path.iterdir())


def test_the_size_is_known_before_anything_is_written(models, tokenizer, exported, tmp_path):
    for name, model in models.items():
        whole = sizes.on_disk(exported / name)
        assert whole < sizes.estimate(model, tokenizer) < whole + 10_000_000
    with pytest.raises(OSError, match=r"the export takes about 1000000\.00 GB, and the disk has "):
        sizes.check_room(tmp_path / "not/yet", 10**15)
    sizes.check_room(tmp_path / "not/yet", 1000)


def test_the_published_size_without_a_model():
    """1.67 GB are dropped with the head of a masked LM of the published size."""
    count = RemBertConfig().num_parameters()
    assert sizes.readable(4 * count.masked_lm_head_total) == "1.67 GB"
