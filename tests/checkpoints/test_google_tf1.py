"""Checkpoints are written by TensorFlow 1's own Saver, and models compared with BERT in NumPy."""

import json
import math
import os
import re

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.google_tf1 import open_google_tf1
from rembert_tf.checkpoints.infer_config import infer_config
from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification

v1 = tf.compat.v1
VOCABULARY, HIDDEN, INNER, LAYERS, HEADS = 50, 16, 32, 2, 2
WORDS = "bert/embeddings/word_embeddings"
FEATURES = {
    "input_ids": np.array([[3, 14, 15, 9, 2], [6, 5, 3, 0, 0]]),
    "attention_mask": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    "token_type_ids": np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]]),
}
REAL = FEATURES["attention_mask"].astype(bool)


# What Google's code would save.


def bert_variables(e_in, e_out=None, tied=False, labels=None):
    """Returns arrays by TF1 name; a masked-LM head if it has a width, no projection if E_in = H."""
    random = np.random.default_rng(e_in)
    arrays = {}

    def add(name, *shape):
        arrays[name] = random.normal(0, 0.3, shape).astype("float32")

    def add_dense(name, inputs, outputs):
        add(f"{name}/kernel", inputs, outputs)
        add(f"{name}/bias", outputs)

    def add_norm(name, width):
        add(f"{name}/gamma", width)
        add(f"{name}/beta", width)

    add(WORDS, VOCABULARY, e_in)
    add("bert/embeddings/position_embeddings", 12, e_in)
    add("bert/embeddings/token_type_embeddings", 2, e_in)
    add_norm("bert/embeddings/LayerNorm", e_in)
    if e_in != HIDDEN:
        add_dense("bert/encoder/embedding_hidden_mapping_in", e_in, HIDDEN)
    for layer in range(LAYERS):
        base = f"bert/encoder/layer_{layer}"
        for name in ("query", "key", "value"):
            add_dense(f"{base}/attention/self/{name}", HIDDEN, HIDDEN)
        add_dense(f"{base}/attention/output/dense", HIDDEN, HIDDEN)
        add_norm(f"{base}/attention/output/LayerNorm", HIDDEN)
        add_dense(f"{base}/intermediate/dense", HIDDEN, INNER)
        add_dense(f"{base}/output/dense", INNER, HIDDEN)
        add_norm(f"{base}/output/LayerNorm", HIDDEN)
    add_dense("bert/pooler/dense", HIDDEN, HIDDEN)
    if e_out:
        add_dense("cls/predictions/transform/dense", HIDDEN, e_out)
        add_norm("cls/predictions/transform/LayerNorm", e_out)
        add("cls/predictions/output_bias", VOCABULARY)
        if not tied:
            add("cls/predictions/output_embedding", VOCABULARY, e_out)
    if labels:
        add("output_weights", labels, HIDDEN)
        add("output_bias", labels)
    return arrays


def training_variables(arrays):
    """Returns the variables that BERT's own training code saves beside the model's."""
    slots = {
        f"{name}/{slot}": np.full_like(array, 9)
        for name, array in arrays.items()
        for slot in ("adam_m", "adam_v")
    }
    return {
        **slots,
        "global_step": np.array(1_234_567, "int64"),
        "cls/seq_relationship/output_weights": np.ones((2, HIDDEN), "float32"),
        "cls/seq_relationship/output_bias": np.ones(2, "float32"),
    }


def write(prefix, arrays, partitioned=(), minimize=False):
    """Writes a checkpoint; variables that are `partitioned` are saved in three slices."""
    with tf.Graph().as_default(), v1.Session() as session:
        for name, array in arrays.items():

            def initialize(shape, dtype=None, partition_info=None, array=array):
                start = partition_info.var_offset[0] if partition_info else 0
                return tf.constant(array[start : start + shape[0]] if shape else array)

            v1.get_variable(
                name,
                array.shape,
                array.dtype,
                initializer=initialize,
                partitioner=v1.fixed_size_partitioner(3) if name in partitioned else None,
                use_resource=False,
            )
        if minimize:
            loss = sum(tf.reduce_sum(variable) for variable in v1.trainable_variables())
            v1.train.AdamOptimizer().minimize(loss, v1.train.get_or_create_global_step())
        session.run(v1.global_variables_initializer())
        v1.train.Saver(max_to_keep=None).save(session, str(prefix), write_meta_graph=False)
    return str(prefix)


# BERT in NumPy.

_erf = np.vectorize(math.erf)


def forward(arrays):
    """Returns the hidden states, the first one projected, and the masked-LM logits if any."""
    arrays = {name: array.astype("float64") for name, array in arrays.items()}

    def dense(x, name):
        return x @ arrays[f"{name}/kernel"] + arrays[f"{name}/bias"]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * arrays[f"{name}/gamma"] + arrays[f"{name}/beta"]

    def gelu(x):
        return x * (1 + _erf(x / math.sqrt(2))) / 2

    def heads(x):
        return x.reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2)

    ids, types = FEATURES["input_ids"], FEATURES["token_type_ids"]
    x = arrays[WORDS][ids] + arrays["bert/embeddings/token_type_embeddings"][types]
    x = x + arrays["bert/embeddings/position_embeddings"][: ids.shape[1]]
    x = norm(x, "bert/embeddings/LayerNorm")
    if "bert/encoder/embedding_hidden_mapping_in/kernel" in arrays:
        x = dense(x, "bert/encoder/embedding_hidden_mapping_in")
    states = [x]
    for layer in range(LAYERS):
        base = f"bert/encoder/layer_{layer}"
        query, key, value = (
            heads(dense(x, f"{base}/attention/self/{name}")) for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / math.sqrt(HIDDEN // HEADS)
        scores = np.exp(np.where(REAL[:, None, None], scores, -1e9))
        mixed = scores / scores.sum(-1, keepdims=True) @ value
        mixed = mixed.swapaxes(1, 2).reshape(x.shape)
        x = norm(
            x + dense(mixed, f"{base}/attention/output/dense"), f"{base}/attention/output/LayerNorm"
        )
        inner = gelu(dense(x, f"{base}/intermediate/dense"))
        x = norm(x + dense(inner, f"{base}/output/dense"), f"{base}/output/LayerNorm")
        states.append(x)
    if "cls/predictions/output_bias" not in arrays:
        return states, None
    x = gelu(dense(x, "cls/predictions/transform/dense"))
    x = norm(x, "cls/predictions/transform/LayerNorm")
    table = arrays.get("cls/predictions/output_embedding", arrays[WORDS])
    return states, x @ table.T + arrays["cls/predictions/output_bias"]


def load(weights, model_class=RemBertForMaskedLM, **overrides):
    config, notes = infer_config(weights, num_attention_heads=HEADS, **overrides)
    weights = weights.replace(notes=(*weights.notes, *notes))
    return model_from_weights(weights, config, model_class, strict=True)


def assert_is_bert(model, arrays):
    states, logits = forward(arrays)
    encoder = model if isinstance(model, RemBertEncoder) else model.encoder
    found = encoder(FEATURES, output_hidden_states=True)["hidden_states"]
    assert len(found) == len(states) == LAYERS + 1
    for ours, theirs in zip(found, states, strict=True):
        np.testing.assert_allclose(ours.numpy()[REAL], theirs[REAL], rtol=1e-5, atol=1e-5)
    if logits is not None:
        assert logits.std() > 0.5
        np.testing.assert_allclose(
            model(FEATURES).numpy()[REAL], logits[REAL], rtol=1e-5, atol=1e-5
        )


@pytest.fixture(scope="module")
def rembert():
    """The variables of a decoupled model: widths 8, 16 and 24."""
    return bert_variables(8, 24)


@pytest.fixture(scope="module")
def prefix(rembert, tmp_path_factory):
    """A checkpoint of it as pre-training leaves it."""
    folder = tmp_path_factory.mktemp("google")
    return write(folder / "rembert.ckpt", {**rembert, **training_variables(rembert)})


@pytest.fixture
def copy(prefix, tmp_path):
    """A copy of the checkpoint, to be damaged."""
    for end in (".index", ".data-00000-of-00001"):
        with open(prefix + end, "rb") as file:
            (tmp_path / f"copy.ckpt{end}").write_bytes(file.read())
    return tmp_path / "copy.ckpt"


def test_a_decoupled_model_as_pretraining_leaves_it(prefix, rembert):
    weights = open_google_tf1(prefix)
    slots = 2 * len(rembert)
    assert weights.notes == (
        f"left out: {slots} optimizer slots, 2 next-sentence variables, global_step 1,234,567",
    )
    model, report = load(weights)
    assert_is_bert(model, rembert)
    assert report.skipped == (
        ("bert/pooler/dense/bias", (16,)),
        ("bert/pooler/dense/kernel", (16, 16)),
    )
    assert report.newly_made == () and weights.notes[0] in str(report)
    config = model.config
    assert (config.input_embedding_size, config.output_embedding_size) == (8, 24)
    assert config.input_projection and not config.tie_word_embeddings


def test_an_encoder_alone(tmp_path):
    arrays = bert_variables(8)
    weights = open_google_tf1(write(tmp_path / "bert.ckpt", arrays))
    model, report = load(weights, RemBertEncoder)
    assert_is_bert(model, arrays)
    assert report.skipped == () and "no masked-LM head" in str(report)
    first = model(FEATURES)["last_hidden_state"].numpy()[:, 0]
    pooler = [arrays[f"bert/pooler/dense/{name}"] for name in ("kernel", "bias")]
    np.testing.assert_allclose(
        model(FEATURES)["pooler_output"], np.tanh(first @ pooler[0] + pooler[1]), atol=1e-5
    )


def test_a_multilingual_bert(tmp_path):
    """One table for both ends, one width, no projection."""
    arrays = bert_variables(HIDDEN, HIDDEN, tied=True)
    prefix = write(tmp_path / "bert_model.ckpt", {**arrays, **training_variables(arrays)})
    model, report = load(open_google_tf1(prefix))
    assert_is_bert(model, arrays)
    config = model.config
    assert config.tie_word_embeddings and not config.input_projection
    assert model.masked_lm_head.output_embedding.table is model.encoder.embeddings.word_embeddings
    assert "taken as tied to the input embedding" in str(report)


def test_a_fine_tuned_classifier_whose_weights_are_stored_the_other_way_round(tmp_path):
    arrays = bert_variables(8, labels=3)
    weights = open_google_tf1(write(tmp_path / "model.ckpt-7", arrays))
    model, _ = load(weights, RemBertForSequenceClassification)
    assert model.config.id2label == ("LABEL_0", "LABEL_1", "LABEL_2")
    np.testing.assert_array_equal(model.classifier.dense.kernel, arrays["output_weights"].T)
    pooled = model.encoder(FEATURES)["pooler_output"].numpy()
    logits = pooled @ arrays["output_weights"].T + arrays["output_bias"]
    np.testing.assert_allclose(model(FEATURES), logits, rtol=1e-5, atol=1e-5)


def test_the_slots_of_tensorflows_own_adam(tmp_path):
    arrays = {
        f"bert/pooler/dense/{name}": np.ones((3, 3), "float32") for name in ("kernel", "bias")
    }
    weights = open_google_tf1(write(tmp_path / "model.ckpt", arrays, minimize=True))
    assert list(weights.tensors) == ["rembert/pooler/bias", "rembert/pooler/kernel"]
    assert weights.unknown == {}  # two slots a variable, and beta1_power and beta2_power
    assert weights.notes == ("left out: 6 optimizer slots, global_step 0",)


@pytest.mark.parametrize(
    "name",
    [
        "bert/pooler/dense/bias/lamb_m",
        "bert/pooler/dense/bias/LAMB_1",
        "bert/pooler/dense/bias/m",
        "training/Adam/bert/pooler/dense/bias/v",
        "AdamWeightDecayOptimizer/bert/pooler/dense/bias",
        "AdamWeightDecayOptimizer_1/beta1_power",
        "bert/pooler/dense/bias/Momentum",
    ],
)
def test_names_of_other_optimizers(name, tmp_path):
    arrays = {"bert/pooler/dense/bias": np.ones(3, "f"), name: np.ones(3, "f")}
    weights = open_google_tf1(write(tmp_path / "model.ckpt", arrays))
    assert list(weights.tensors) == ["rembert/pooler/bias"] and weights.unknown == {}
    assert weights.notes == ("left out: 1 optimizer slot",)


def test_a_partitioned_table_is_whole(rembert, tmp_path):
    table = rembert[WORDS]
    slots = {f"{WORDS}/part_{part}/adam_m": np.ones((17, 8), "float32") for part in range(3)}
    prefix = write(tmp_path / "bert.ckpt", {**rembert, **slots}, partitioned=[WORDS])
    weights = open_google_tf1(prefix)
    assert weights.shape("rembert/embeddings/word_embeddings") == (VOCABULARY, 8)
    np.testing.assert_array_equal(weights.read("rembert/embeddings/word_embeddings"), table)
    assert weights.unknown == {} and weights.notes == ("left out: 3 optimizer slots",)


def test_tensors_are_read_only_when_asked_for(copy):
    weights = open_google_tf1(copy)
    data = bytearray((file := copy.with_name("copy.ckpt.data-00000-of-00001")).read_bytes())
    file.write_bytes(bytes(len(data)))
    for _ in range(2):  # a second question would end the process, if it reached TensorFlow
        with pytest.raises(ValueError, match=r"copy.ckpt: bert/pooler/dense/bias .* is damaged"):
            weights.read("rembert/pooler/bias")


# Names that are not in our table, and the map that places them.

RENAMED = {
    "cls/predictions/output_embedding": "cls/predictions/decoder/table",
    "cls/predictions/output_bias": "cls/predictions/decoder/biases",
    "bert/encoder/layer_1/output/dense/kernel": "bert/encoder/layer_1/w_out",
}


@pytest.fixture(scope="module")
def renamed(rembert, tmp_path_factory):
    """The decoupled model with other names for three variables, and an average of one of them."""
    arrays = {RENAMED.get(name, name): array for name, array in rembert.items()}
    arrays["bert/pooler/dense/bias/ExponentialMovingAverage"] = np.full(HIDDEN, 5, "float32")
    return write(tmp_path_factory.mktemp("renamed") / "rembert.ckpt", arrays)


@pytest.fixture
def name_map(tmp_path):
    """Writes a name map."""

    def write_map(values):
        file = tmp_path / "names.json"
        file.write_text(values if isinstance(values, str) else json.dumps(values))
        return file

    return write_map


MAP = {
    "cls/predictions/decoder/table": "masked_lm_head/output_embedding/table",
    "cls/predictions/decoder/biases": "cls.predictions.decoder.bias",
    "bert/encoder/layer_1/w_out": "bert/encoder/layer_1/output/dense/kernel",
}


def test_unknown_names_are_named_and_the_map_places_them(renamed, rembert, name_map):
    weights = open_google_tf1(renamed)
    average = "bert/pooler/dense/bias/ExponentialMovingAverage"
    assert list(weights.unknown) == sorted([*RENAMED.values(), average])
    (note,) = weights.notes
    assert note.startswith("NOT LOADED, since nothing of ours has these names: ")
    assert "cls/predictions/decoder/table [50, 24]" in note and "--name_map=FILE" in note
    with pytest.raises(ValueError, match="`strict` asks for every variable, and 3 are missing"):
        load(weights)

    weights = open_google_tf1(renamed, name_map(MAP))
    assert weights.unknown == {average: (16,)}
    assert_is_bert(load(weights)[0], rembert)


def test_the_map_comes_before_the_table(renamed, name_map):
    average = "bert/pooler/dense/bias/ExponentialMovingAverage"
    weights = open_google_tf1(renamed, name_map({**MAP, average: "rembert/pooler/bias"}))
    np.testing.assert_array_equal(weights.read("rembert/pooler/bias"), np.full(HIDDEN, 5))
    assert weights.notes == (
        f"left out: bert/pooler/dense/bias, since the name map puts {average} in its place",
    )


@pytest.mark.parametrize(
    "values, message",
    [
        ('{"a": "b",\n oops}', r"names\.json:2: not valid JSON"),
        ('["a"]', r"names\.json: expected a JSON object. Received: list"),
        (
            {"cls/predictions/decoder/tabel": "masked_lm_head/output_embedding/table"},
            r"names\.json: 'cls/predictions/decoder/tabel': 'masked_lm_head/output_embedding/table'"
            r": the checkpoint has no variable .*Did you mean 'cls/predictions/decoder/table'\?",
        ),
        (
            {"bert/encoder/layer_1/w_out": "rembert/layer_1/outputs/kernel"},
            r"'rembert/layer_1/outputs/kernel' is no path of a variable of ours, no name of "
            r"Google's and no key .* Did you mean 'rembert/layer_1/output/kernel'\?",
        ),
        (
            {"bert/encoder/layer_1/w_out": "rembert/layer_#/output/kernel"},
            r"Did you mean 'rembert/layer_0/output/kernel'\?",
        ),
        ({"bert/encoder/layer_1/w_out": 3}, r"'bert/encoder/layer_1/w_out': 3: 3 is no path"),
        (
            {**MAP, "bert/pooler/dense/kernel": "cls/predictions/output_embedding"},
            r"'bert/pooler/dense/kernel': 'cls/predictions/output_embedding': "
            r"'cls/predictions/decoder/table' is already placed there",
        ),
    ],
    ids=["broken", "list", "source", "target", "number sign", "no string", "twice"],
)
def test_a_wrong_map_says_where_it_is_wrong(renamed, name_map, values, message):
    with pytest.raises(ValueError, match=message):
        open_google_tf1(renamed, name_map(values))


def test_a_map_that_is_not_there(renamed, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        open_google_tf1(renamed, tmp_path / "nowhere.json")


def test_a_mapped_tensor_that_is_stored_transposed(rembert, name_map, tmp_path):
    arrays = dict(rembert)
    arrays["table"] = arrays.pop("cls/predictions/output_embedding").T
    prefix = write(tmp_path / "bert.ckpt", arrays)
    weights = open_google_tf1(prefix, name_map({"table": "cls/predictions/output_embedding"}))
    with pytest.raises(ValueError) as error:
        load(weights)
    assert str(error.value) == (
        f"{prefix}: table is [24, 50], but by the other tensors "
        "masked_lm_head/output_embedding/table is [vocab_size=50, output_embedding_size=24]: "
        "it would fit transposed"
    )


# Paths and damage.


def test_every_way_to_name_a_checkpoint(prefix, tmp_path):
    for path in (prefix, f"{prefix}.index", os.path.dirname(prefix)):
        assert open_google_tf1(path).path == prefix
    arrays = {"bert/pooler/dense/bias": np.ones(3, "float32")}
    for step in (1, 2):
        latest = write(tmp_path / f"model.ckpt-{step}", arrays)
    assert open_google_tf1(tmp_path).path == latest
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(ValueError, match="more than one .* one of them: model.ckpt-1, model.ckpt"):
        open_google_tf1(tmp_path)


def test_nothing_there(copy, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"empty: no TensorFlow .*empty: nothing$"):
        open_google_tf1(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match=r"rembert: no .*: copy.ckpt.data.*copy.ckpt.index"):
        open_google_tf1(tmp_path / "rembert")
    with pytest.raises(FileNotFoundError, match="nowhere: nothing"):
        open_google_tf1(tmp_path / "nowhere" / "rembert.ckpt")


def test_a_missing_data_file(copy):
    file = copy.with_name("copy.ckpt.data-00000-of-00001")
    file.rename(copy.with_name("copy.ckpt.data-00001-of-00002"))
    with pytest.raises(FileNotFoundError, match="not whole, since .*copy.ckpt.data-00000-of-00002"):
        open_google_tf1(copy)
    copy.with_name("copy.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(FileNotFoundError, match="not whole, since .*copy.ckpt.data-00000-of-00001"):
        open_google_tf1(copy)


@pytest.mark.parametrize("end", [".index", ".data-00000-of-00001"])
def test_a_file_that_is_cut_off(copy, end):
    file = copy.with_name(f"copy.ckpt{end}")
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(ValueError, match=re.escape(f"copy.ckpt{end}: ") + ".*half written"):
        open_google_tf1(copy)


def test_a_path_that_tensorflow_takes_for_a_pattern(copy, tmp_path):
    os.rename(copy.parent, folder := tmp_path.with_name("run[1]"))
    with pytest.raises(ValueError, match=r"run\[1\]/copy.ckpt.index: .* for a pattern"):
        open_google_tf1(folder / "copy.ckpt")


def test_checkpoints_of_other_kinds(tmp_path):
    tf.train.Checkpoint(x=tf.Variable(1.0)).write(str(tmp_path / "ckpt"))
    with pytest.raises(ValueError, match="a TensorFlow 2 checkpoint.*read as `model_garden`"):
        open_google_tf1(tmp_path / "ckpt")
    prefix = write(tmp_path / "resnet.ckpt", {"conv1/weights": np.ones((3, 3), "float32")})
    with pytest.raises(ValueError, match=r"no variable of this archi.*conv1/weights \[3, 3\]"):
        open_google_tf1(prefix)
