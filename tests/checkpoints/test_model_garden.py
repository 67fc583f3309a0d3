import os

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.model_from_weights import model_from_weights, variables_by_path
from rembert_tf.checkpoints.model_garden import (
    number_of_heads,
    open_model_garden,
    write_model_garden,
)
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
# As `tf.train.Checkpoint(encoder=BertEncoderV2(...))` of tf-models-official 2.20 names them.
ENCODER_VARIABLES = {
    "_embedding_layer/embeddings": [50, 8],
    "_embedding_norm_layer/beta": [8],
    "_embedding_norm_layer/gamma": [8],
    "_embedding_projection/bias": [16],
    "_embedding_projection/kernel": [8, 16],
    "_pooler_layer/bias": [16],
    "_pooler_layer/kernel": [16, 16],
    "_position_embedding_layer/embeddings": [12, 8],
    "_transformer_layers/0/_attention_layer/_key_dense/bias": [2, 8],
    "_transformer_layers/0/_attention_layer/_key_dense/kernel": [16, 2, 8],
    "_transformer_layers/0/_attention_layer/_output_dense/bias": [16],
    "_transformer_layers/0/_attention_layer/_output_dense/kernel": [2, 8, 16],
    "_transformer_layers/0/_attention_layer/_query_dense/bias": [2, 8],
    "_transformer_layers/0/_attention_layer/_query_dense/kernel": [16, 2, 8],
    "_transformer_layers/0/_attention_layer/_value_dense/bias": [2, 8],
    "_transformer_layers/0/_attention_layer/_value_dense/kernel": [16, 2, 8],
    "_transformer_layers/0/_attention_layer_norm/beta": [16],
    "_transformer_layers/0/_attention_layer_norm/gamma": [16],
    "_transformer_layers/0/_intermediate_dense/bias": [32],
    "_transformer_layers/0/_intermediate_dense/kernel": [16, 32],
    "_transformer_layers/0/_output_dense/bias": [16],
    "_transformer_layers/0/_output_dense/kernel": [32, 16],
    "_transformer_layers/0/_output_layer_norm/beta": [16],
    "_transformer_layers/0/_output_layer_norm/gamma": [16],
    "_type_embedding_layer/embeddings": [2, 8],
}


def write_tree(prefix, shapes, **objects):
    """Writes a checkpoint of objects with these attributes; returns its prefix."""
    root = tf.Module()
    for path, shape in shapes.items():
        *parents, last = path.split("/")
        parent = root
        for name in parents:
            if not hasattr(parent, name):
                setattr(parent, name, tf.Module())
            parent = getattr(parent, name)
        setattr(parent, last, tf.Variable(np.full(shape, 0.5, "float32")))
    for name, value in objects.items():
        setattr(root, name, value)
    return tf.train.Checkpoint(root=root).save(str(prefix))


def under(parent, shapes):
    return {f"{parent}/{name}": shape for name, shape in shapes.items()}


def assert_same_weights(one, other):
    ours, theirs = variables_by_path(one), variables_by_path(other)
    assert list(ours) == list(theirs)
    for path, variable in ours.items():
        np.testing.assert_array_equal(variable.numpy(), theirs[path].numpy(), err_msg=path)


def test_names_and_shapes_are_those_of_model_garden(config, tmp_path):
    encoder = RemBertEncoder(config.replace(num_hidden_layers=1))
    write_model_garden(encoder, tmp_path / "model")
    found = dict(tf.train.list_variables(tf.train.latest_checkpoint(tmp_path / "model")))
    del found["_CHECKPOINTABLE_OBJECT_GRAPH"], found["save_counter" + VALUE]
    assert found == {f"encoder/{name}{VALUE}": s for name, s in ENCODER_VARIABLES.items()}


@pytest.mark.parametrize("widths", ["config", "coupled", "tied"])
@pytest.mark.parametrize("model_class", [RemBertEncoder, RemBertForMaskedLM])
def test_what_is_written_is_read_again_bit_for_bit(model_class, widths, request, tmp_path):
    if widths == "tied":  # tied, with a projection
        config = request.getfixturevalue("config").replace(
            output_embedding_size=8, tie_word_embeddings=True
        )
    else:
        config = request.getfixturevalue(widths)
    model = model_class(config)
    code = write_model_garden(model, tmp_path / "model")
    assert code in (tmp_path / "model" / "README.md").read_text()

    weights = open_model_garden(tmp_path / "model")
    again, report = model_from_weights(weights, config, model_class, strict=True)
    assert_same_weights(model, again)
    is_masked_lm = model_class is RemBertForMaskedLM
    poolers = [key for key, _ in report.skipped if key.rpartition("/")[0].endswith("_pooler_layer")]
    assert len(report.skipped) == len(poolers) == (2 if is_masked_lm else 0)
    assert number_of_heads(tmp_path / "model") == 2
    table = weights.shape("masked_lm_head/output_embedding/table")
    assert table == ((50, 24) if is_masked_lm and widths == "config" else None)


def test_a_masked_lm_gets_a_new_pooler_and_its_card_says_so(config, tmp_path):
    write_model_garden(RemBertForMaskedLM(config), tmp_path / "model")
    kernel = open_model_garden(tmp_path / "model").read("rembert/pooler/kernel")
    assert 0.2 < np.std(kernel) < 0.35  # initializer_range 0.3, cut at two deviations
    assert "The pooler of the encoder is new" in (tmp_path / "model" / "README.md").read_text()
    write_model_garden(RemBertEncoder(config), tmp_path / "encoder")
    assert "The pooler" not in (tmp_path / "encoder" / "README.md").read_text()


def test_the_card_names_what_is_not_trained(config, tmp_path):
    model = RemBertForMaskedLM(config)
    model.newly_made = ("masked_lm_head/dense/kernel",)
    write_model_garden(model, tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Not trained yet, and random: masked_lm_head/dense/kernel." in card


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="Linux counts memory")
def test_writing_needs_little_more_than_the_model(config, tmp_path):
    model = RemBertForMaskedLM(
        config.replace(vocab_size=50_000, input_embedding_size=64, output_embedding_size=256)
    )
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before = _memory("VmRSS")
    write_model_garden(model, tmp_path / "model")
    assert _memory("VmHWM") - before < 0.5 * 4 * model.count_params()


def _memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def test_a_model_in_half_precision_is_written_as_float32(config, tmp_path):
    write_model_garden(RemBertEncoder(config, dtype="bfloat16"), tmp_path / "model")
    weights = open_model_garden(tmp_path / "model")
    assert {weights.read(path).dtype.name for path in weights.tensors} == {"float32"}


def test_the_encoder_is_found_wherever_it_hangs(config, tmp_path):
    prefix = write_tree(tmp_path / "ckpt", under("classifier/_network", ENCODER_VARIABLES))
    weights = open_model_garden(prefix)
    assert weights.path == prefix
    assert weights.unknown == {}
    assert len(weights.tensors) == len(ENCODER_VARIABLES)
    assert weights.tensors["rembert/layer_0/attention/query/kernel"].shape == (16, 16)
    config = config.replace(num_hidden_layers=1)
    model, _ = model_from_weights(weights, config, RemBertEncoder, strict=True)
    assert {float(x) for variable in model.weights for x in np.ravel(variable)} == {0.5}


def test_what_only_training_needs_is_counted_and_other_heads_are_named(tmp_path):
    shapes = under("encoder", ENCODER_VARIABLES) | {
        "optimizer/_variables/0": [],
        "optimizer/_variables/1": [50, 8],
        "global_step": [],
        "next_sentence/dense/kernel": [16, 4],
    }
    weights = open_model_garden(write_tree(tmp_path / "ckpt", shapes))
    assert weights.unknown == {"next_sentence/dense/kernel": (16, 4)}
    assert weights.notes[-1].endswith(": global_step (1), optimizer (2), save_counter (1)")
    assert any("gelu_new" in note for note in weights.notes)
    assert any("`norm_first`" in note for note in weights.notes)


def test_a_head_with_a_table_of_its_own_is_untied_even_where_the_widths_are_equal(tmp_path):
    head = {"dense/kernel": [16, 8], "dense/bias": [8], "layer_norm/gamma": [8]}
    head |= {"layer_norm/beta": [8], "bias": [50], "embedding_table": [50, 8]}
    shapes = under("encoder", ENCODER_VARIABLES) | under("masked_lm", head)
    weights = open_model_garden(write_tree(tmp_path / "ckpt", shapes))
    assert weights.shape("masked_lm_head/output_embedding/table") == (50, 8)
    assert weights.shape("masked_lm_head/output_embedding/bias") == (50,)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"dense/kernel": [2, 3]}, "there are 0. The checkpoint holds dense, "),
        (
            under("generator", ENCODER_VARIABLES) | under("discriminator", ENCODER_VARIABLES),
            "there must be one encoder .* there are 2",
        ),
        (
            {f"encoder/{n}": s for n, s in ENCODER_VARIABLES.items() if "norm_layer" not in n},
            "it lacks _embedding_norm_layer/gamma, _embedding_norm_layer/beta",
        ),
        (
            under("encoder", ENCODER_VARIABLES)
            | {"encoder/_transformer_layers/0/_lowrank_kv_projection/kernel": [16, 4]},
            "it also has .*_transformer_layers/0/_lowrank_kv_projection/kernel",
        ),
    ],
)
def test_another_architecture_is_refused(shapes, message, tmp_path):
    prefix = write_tree(tmp_path / "ckpt", shapes)
    with pytest.raises(ValueError, match=message):
        open_model_garden(prefix)


def test_what_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing: no checkpoint is found"):
        open_model_garden(tmp_path / "nothing")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("bert/pooler/dense/bias", [3])
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(tmp_path / "model.ckpt"), write_state=False)
    with pytest.raises(ValueError, match="model.ckpt: a TensorFlow 1 checkpoint"):
        open_model_garden(tmp_path / "model.ckpt")


@pytest.mark.parametrize("damage", ["data", "cut data", "index"])
def test_damage_is_named(damage, config, tmp_path):
    write_model_garden(RemBertEncoder(config), tmp_path / "model")
    prefix = str(tmp_path / "model" / "bert_model.ckpt-1")
    data, index = f"{prefix}.data-00000-of-00001", f"{prefix}.index"
    if damage == "data":
        os.remove(data)
    else:
        file = data if damage == "cut data" else index
        os.truncate(file, os.path.getsize(file) // 2)
    with pytest.raises(ValueError, match="bert_model.ckpt-1.*damaged"):
        weights = open_model_garden(prefix)
        for path in weights.tensors:
            weights.read(path)


def test_models_that_model_garden_cannot_hold_are_refused(config, coupled, tmp_path):
    path = tmp_path / "model"
    with pytest.raises(ValueError, match="Write `model.encoder`.* a RemBertForSequenceClassificat"):
        write_model_garden(RemBertForSequenceClassification(config), path)
    with pytest.raises(ValueError, match="input_projection=True, input_embedding_size=16"):
        write_model_garden(RemBertEncoder(coupled.replace(input_projection=True)), path)
    with pytest.raises(ValueError, match="`layer_norm_eps` must be Model Garden's, 1e-12"):
        write_model_garden(RemBertEncoder(config.replace(layer_norm_eps=1e-6)), path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_holds_something_is_left_alone(config, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    with pytest.raises(ValueError, match="`path` must be a new or an empty folder"):
        write_model_garden(RemBertEncoder(config), tmp_path / "full")
    (tmp_path / "empty").mkdir()
    write_model_garden(RemBertEncoder(config), tmp_path / "empty")
    assert sorted(os.listdir(tmp_path / "empty")) == [
        "README.md",
        "bert_model.ckpt-1.data-00000-of-00001",
        "bert_model.ckpt-1.index",
        "checkpoint",
    ]
    assert os.listdir(tmp_path / "full") == ["thesis.txt"]


def test_a_failed_write_leaves_nothing_behind(config, tmp_path, monkeypatch):
    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.train.Checkpoint, "save", fail)
    with pytest.raises(OSError, match="could not be written: No space left"):
        write_model_garden(RemBertEncoder(config), tmp_path / "model")
    assert os.listdir(tmp_path) == []
