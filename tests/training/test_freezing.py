import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.config import FinetuningConfig, OptimizerConfig
from rembert_tf.training.freezing import freeze
from rembert_tf.training.optimizers import make_optimizer

FEATURES = {"input_ids": np.random.default_rng(0).integers(5, 20, (3, 7))}


def make_model(**settings):
    config = RemBertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6,
        initializer_range=0.3, classifier_dropout_prob=0.0, id2label=("A", "B", "C"),
    )  # fmt: skip
    model = RemBertForTokenClassification(config)
    freeze(model, FinetuningConfig(init_checkpoint="model", **settings))
    return model


def trained_parts(model):
    """Returns the parts of the encoder and the head that have a trained variable."""
    paths = [variable.path.split("/") for variable in model.trainable_variables]
    return {path[path.index("rembert") + 1] if "rembert" in path else "head" for path in paths}


LAYERS = {"layer_0", "layer_1"}


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, {"embeddings", "input_projection", *LAYERS, "head"}),
        ({"freeze_layers": 1}, {"layer_1", "head"}),
        ({"freeze_layers": 2}, {"head"}),
        ({"freeze_encoder": True}, {"head"}),
    ],
)
def test_what_is_left_to_train(settings, expected):
    assert trained_parts(make_model(**settings)) == expected


def test_the_table_alone():
    trained = {v.name for v in make_model(freeze_input_embedding=True).trainable_variables}
    assert "word_embeddings" not in trained and "position_embeddings" in trained


def test_the_number_of_trained_parameters_is_printed(caplog):
    caplog.set_level("INFO", logger="absl")
    model = make_model(freeze_encoder=True)
    assert f"27 of {model.count_params():,} parameters are trained" in caplog.text  # 8 * 3 + 3


def test_more_layers_than_there_are_are_refused():
    with pytest.raises(ValueError, match="the 2 layers.*Received: freeze_layers=3"):
        make_model(freeze_layers=3)


@pytest.mark.parametrize(
    "settings, received",
    [
        ({"freeze_layers": -1}, "freeze_layers=-1"),
        ({"lora_rank": -1}, "lora_rank=-1"),
        ({"lora_rank": 2, "freeze_encoder": True}, "lora_rank=2"),
    ],
)
def test_wrong_settings_are_refused(settings, received):
    with pytest.raises(ValueError, match=f"Received: {received}"):
        FinetuningConfig(init_checkpoint="model", **settings)


def train(model, optimizer, steps=3):
    for _ in range(steps):
        with tf.GradientTape() as tape:
            logits = model(FEATURES, training=True)
            loss = -tf.reduce_mean(tf.nn.log_softmax(logits)[..., 1])
        values = [variable.value for variable in model.trainable_variables]
        optimizer.apply(tape.gradient(loss, values))
    return float(loss)


def make_lora():
    model = make_model(lora_rank=2)
    config = OptimizerConfig(learning_rate=0.05, warmup_steps=0)
    return model, make_optimizer(config, model, 100, layer_decay=0.9)


def test_lora_trains_its_matrices_and_the_head_and_is_merged_when_saved(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    model, optimizer = make_lora()
    # Two layers, two kernels each: 8 * 2 + 2 * 8; and the head, 27.
    assert "155 of " in caplog.text
    names = sorted(variable.name for variable in model.trainable_variables)
    assert names == ["bias", "kernel", *["lora_kernel_a"] * 4, *["lora_kernel_b"] * 4]
    base = [v for v in model.encoder.weights if not v.name.startswith("lora_")]
    before, outputs_before = [v.numpy() for v in base], model(FEATURES).numpy()

    train(model, optimizer)
    for variable, old in zip(base, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), old, err_msg=variable.path)
    outputs = model(FEATURES).numpy()
    model.save_pretrained(tmp_path / "model")
    again, report = load_pretrained(
        tmp_path / "model", RemBertForTokenClassification, id2label=("A", "B", "C")
    )
    assert not report.skipped and not report.newly_made
    np.testing.assert_allclose(again(FEATURES), outputs, rtol=0, atol=1e-5)
    assert np.abs(outputs - outputs_before).max() > 0.1
    query = again.encoder.layer_0.attention.query.kernel.numpy()
    assert np.abs(query - model.encoder.layer_0.attention.query._kernel.numpy()).max() > 0.01
    train(model, optimizer, steps=1)  # saving left the training as it was
    np.testing.assert_array_equal(base[-1].numpy(), before[-1])


def test_lora_is_in_the_training_checkpoint(tmp_path):
    model, optimizer = make_lora()
    train(model, optimizer, steps=1)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "checkpoint"))
    again, its_optimizer = make_lora()
    checkpoint = tf.train.Checkpoint(model=again, optimizer=its_optimizer)
    checkpoint.restore(path).assert_existing_objects_matched()
    assert train(model, optimizer, steps=2) == train(again, its_optimizer, steps=2)
