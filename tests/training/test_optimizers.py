import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.checkpoints.vocabulary import resize_vocabulary
from rembert_tf.config import RemBertConfig
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.adamw import AdamW
from rembert_tf.training.config import DistributionConfig, OptimizerConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.lamb import Lamb
from rembert_tf.training.optimizers import excluded_variables, make_optimizer


def make_model(dtype="float32"):
    config = RemBertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, input_embedding_size=4, output_embedding_size=6, id2label=("A", "B"),
    )  # fmt: skip
    return RemBertForTokenClassification(config, dtype=dtype)


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.mark.parametrize("name, optimizer_class", [("adamw", AdamW), ("lamb", Lamb)])
def test_decayed_are_exactly_kernels_and_tables(model, name, optimizer_class):
    optimizer = make_optimizer(OptimizerConfig(optimizer=name), model, 100)
    assert type(optimizer) is optimizer_class
    decayed = {v.path for v in model.trainable_variables if optimizer._use_weight_decay(v)}
    expected = {v.path for v in model.trainable_variables if len(v.shape) > 1}
    assert decayed == expected
    assert any("word_embeddings" in path for path in decayed)


def test_both_sets_are_printed_with_all_layers_as_one(model, caplog):
    caplog.set_level("INFO", logger="absl")
    make_optimizer(OptimizerConfig(), model, 100)
    decayed, undecayed = (record.getMessage() for record in caplog.records)
    assert decayed.startswith("adamw, weight decay 0.01 on 17 variables: ")
    assert "rembert/layer_*/attention/query/kernel, " in decayed
    assert undecayed.startswith("no weight decay on 24 variables: ")
    assert undecayed.count("rembert/layer_*/output_norm/gamma") == 1


def test_a_name_that_matches_nothing_is_refused(model):
    with pytest.raises(ValueError, match=r"exclude_from_weight_decay=\['bias', 'layer_norm'\]"):
        excluded_variables(model, ("bias", "layer_norm"))


def test_a_loaded_or_resized_model_keeps_what_is_not_decayed(model, tmp_path):  # case D2
    def undecayed(model):
        optimizer = make_optimizer(OptimizerConfig(), model, 100)
        return {v.path for v in model.trainable_variables if not optimizer._use_weight_decay(v)}

    model.save_pretrained(tmp_path / "model")
    loaded, _ = load_pretrained(tmp_path / "model", RemBertForTokenClassification)
    assert undecayed(loaded) == undecayed(model)
    resized = resize_vocabulary(loaded, 30)
    assert undecayed(resized) == undecayed(model)
    assert "word_embeddings" not in " ".join(undecayed(resized))


def test_one_norm_for_all_variables():  # case D5
    """Gradients of norm 3 and 4 have norm 5 together: with limit 1, both become a fifth."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])
    config = OptimizerConfig(exclude_from_weight_decay=("bias",), global_clip_norm=1.0)
    optimizer = make_optimizer(config, model, 10)
    optimizer.apply([tf.constant([[3.0, 0.0]]), tf.constant([0.0, 4.0])])
    moments = [momentum.numpy() for momentum in optimizer._momentums]  # a tenth of the gradients
    np.testing.assert_allclose(moments[0], [[0.06, 0.0]], rtol=1e-5)
    np.testing.assert_allclose(moments[1], [0.0, 0.08], rtol=1e-5)


def test_the_schedule_follows_the_settings(model):
    config = OptimizerConfig(
        learning_rate=0.4, end_learning_rate=0.1, decay_power=2, warmup_steps=2
    )
    optimizer = make_optimizer(config, model, 6)
    rates = []
    for _ in range(7):
        rates.append(float(optimizer.learning_rate))
        optimizer.iterations.assign_add(1)
    # 0.1 + 0.3 * ((6 - s) / 4) ** 2 from step 2 on.
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.4, 0.26875, 0.175, 0.11875, 0.1], rtol=1e-6)


def test_warmup_is_a_share_of_the_run_or_a_number():
    assert OptimizerConfig().resolved_warmup_steps(50) == 5
    assert OptimizerConfig(warmup_steps=7).resolved_warmup_steps(50) == 7


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.0},
        {"warmup_proportion": 1.0},
        {"global_clip_norm": -1.0},
        {"decay_power": -1.0},
        {"end_learning_rate": -1.0},
    ],
)
def test_wrong_settings_name_the_field_and_the_value(changes):
    (name, value), *_ = changes.items()
    with pytest.raises(ValueError, match=rf"`{name}`.*Received: {name}={value}"):
        OptimizerConfig(**changes)


@pytest.mark.parametrize("replicas", [1, 2])
def test_float16_steps_that_are_not_finite_are_left_out(replicas):
    """Weights and `iterations`, and with them the schedule, stay; only the loss scale is halved."""
    strategy = tf.distribute.get_strategy()
    if replicas == 2:
        strategy = make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2))
    with strategy.scope():
        model = make_model("mixed_float16")
        config = OptimizerConfig(learning_rate=0.1, warmup_steps=0, weight_decay=0.0)
        optimizer = make_optimizer(config, model, 100)
    optimizer.inner_optimizer._all_reduce_sum_gradients = list  # as the trainer does
    bias = model.classifier.dense.bias
    others = [tf.zeros(variable.shape) for variable in model.trainable_variables[:-1]]
    assert model.trainable_variables[-1] is bias

    @tf.function
    def step(gradient):
        strategy.run(lambda g: optimizer.apply([*others, g]), args=(gradient,))

    scale = float(optimizer.scale_loss(1.0))
    assert scale > 1
    for value, steps, new_scale in ((3.0, 1, 1), (np.inf, 1, 1 / 2), (np.nan, 1, 1 / 4)):
        step(tf.constant([value, 4.0]) * scale)
        assert int(optimizer.iterations.numpy()) == steps
        assert float(optimizer.scale_loss(1.0)) == new_scale * scale
        np.testing.assert_allclose(bias.numpy(), [-0.1, -0.1], rtol=1e-4)
    assert float(optimizer.learning_rate) == pytest.approx(0.1 * 99 / 100)
    # Clipping saw the gradient without the scale: (3, 4) became (0.6, 0.8), and a tenth of it is kept.
    momentum = optimizer.inner_optimizer._momentums[-1].numpy()
    np.testing.assert_allclose(momentum, [0.06, 0.08], rtol=1e-5)
    step(tf.constant([3.0, 4.0]) * scale / 4)
    assert int(optimizer.iterations.numpy()) == 2


def test_the_loss_scale_is_in_the_training_checkpoint(tmp_path):
    optimizers = []
    for _ in range(2):
        variable = keras.Variable(np.ones(2, "float32"))
        optimizers.append(keras.optimizers.LossScaleOptimizer(AdamW(0.1)))
        optimizers[-1].build([variable])
    optimizers[0].apply([tf.constant([np.inf, 1.0])])
    optimizers[0].apply([tf.constant([1.0, 1.0])])
    path = tf.train.Checkpoint(optimizer=optimizers[0]).save(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(optimizer=optimizers[1]).restore(path).assert_existing_objects_matched()
    for saved, restored in zip(optimizers[0].variables, optimizers[1].variables, strict=True):
        np.testing.assert_array_equal(saved.numpy(), restored.numpy())
    assert float(optimizers[1].scale_loss(1.0)) == 2.0**14
