"""The law: the same data gives the same weights on one device and on two, uneven tail included.

Where a test here fails after an update of Keras, `rembert_tf/training/execution.py` and, for the optimizer's hook,
`trainer.py` are the files to change. `test_law.py` has the law as a table.
"""

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from rembert_tf.config import RemBertConfig
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.training.config import DistributionConfig, OptimizerConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.optimizers import make_optimizer
from rembert_tf.training.pretraining import masked_lm_trainer
from rembert_tf.training.trainer import Trainer


@pytest.fixture(scope="module")
def mirrored():
    return make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2))


ONE_DEVICE = tf.distribute.get_strategy()


def small_config(**changes):
    values = {
        "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 32, "input_embedding_size": 8, "output_embedding_size": 24,
        "max_position_embeddings": 16, **changes,
    }  # fmt: skip
    return RemBertConfig(**values)


def masked_batches(rows=7, batch_size=4, repeats=5):
    """Uneven mask counts (row 0 has one masked position, others up to five), repeated ids, a tail."""
    rng = np.random.default_rng(0)
    features = {
        "input_ids": rng.integers(5, 12, (rows, 12)).astype("int32"),
        "attention_mask": np.ones((rows, 12), "int32"),
        "masked_lm_positions": rng.integers(1, 11, (rows, 5)).astype("int32"),
        "dropout_keys": rng.integers(0, 2**32, rows, dtype=np.uint32),
    }
    features["attention_mask"][1:2, 6:] = 0
    weights = (rng.random((rows, 5)) < 0.5).astype("float32")
    weights[0] = [1, 0, 0, 0, 0]
    labels = rng.integers(5, 50, (rows, 5)).astype("int32")
    return (
        tf.data.Dataset.from_tensor_slices((features, labels, weights))
        .batch(batch_size)
        .repeat(repeats)
    )


def train(strategy, config, *, jit_compile=False, dtype="float32", optimizer=None):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = RemBertForMaskedLM(config, dtype=dtype)
        trainer = masked_lm_trainer(
            model,
            optimizer or OptimizerConfig(learning_rate=1e-2, global_clip_norm=0.1),
            DistributionConfig(jit_compile=jit_compile),
            total_steps=20,
        )
    history = trainer.fit(masked_batches(), verbose=0).history
    scores = trainer.evaluate(masked_batches(repeats=1), verbose=0, return_dict=True)
    weights = {variable.path: variable.numpy() for variable in model.trainable_variables}
    return weights, history, scores, trainer


def assert_same(a, b, tolerance):
    for path, value in a[0].items():
        np.testing.assert_allclose(b[0][path], value, rtol=0, atol=tolerance, err_msg=path)
    for name, value in a[1].items():
        np.testing.assert_allclose(b[1][name], value, rtol=1e-4, err_msg=name)
    for name, value in a[2].items():
        np.testing.assert_allclose(b[2][name], value, rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("tied, dropout", [(False, 0.0), (True, 0.1)])
def test_two_replicas_give_the_weights_of_one_device(mirrored, tied, dropout):
    config = small_config(
        tie_word_embeddings=tied,
        output_embedding_size=8 if tied else 24,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    one = train(ONE_DEVICE, config)
    two = train(mirrored, config)
    assert_same(one, two, 1e-5)
    assert one[1]["loss"][0] > 1  # something was trained at all
    np.testing.assert_allclose(
        one[3].gradient_norm.numpy(), two[3].gradient_norm.numpy(), rtol=1e-4
    )


def test_xla_gives_the_same_weights(mirrored):
    config = small_config(hidden_dropout_prob=0.1)
    one = train(ONE_DEVICE, config)
    assert_same(one, train(mirrored, config, jit_compile=True), 1e-5)


def test_bfloat16_agrees_within_its_precision(mirrored):
    optimizer = OptimizerConfig(learning_rate=1e-3)
    one = train(ONE_DEVICE, small_config(), dtype="mixed_bfloat16", optimizer=optimizer)
    two = train(mirrored, small_config(), dtype="mixed_bfloat16", optimizer=optimizer)
    np.testing.assert_allclose(one[1]["loss"], two[1]["loss"], rtol=1e-2)
    for path, weight in one[0].items():  # ten steps of Adam, each at most the learning rate
        np.testing.assert_allclose(weight, two[0][path], atol=5e-3, err_msg=path)
    assert all(weight.dtype == np.float32 for weight in one[0].values())


def test_counters_count_steps_and_real_tokens(mirrored):
    trainer = train(mirrored, small_config())[3]
    assert int(trainer.batch_number.numpy()) == 10
    assert int(trainer.optimizer.iterations.numpy()) == 10
    assert int(trainer.tokens_seen.numpy()) == 5 * (7 * 12 - 6)


def test_loss_is_the_sum_over_all_slots_divided_by_their_weight():
    """Two rows with one and three masked slots: the mean is over four slots, not over two rows."""
    features = np.eye(2, dtype="float32")
    labels = np.array([[0, 0, 0], [1, 1, 1]], "int32")
    weights = np.array([[1, 0, 0], [1, 1, 1]], "float32")

    def values(labels, outputs):
        return tf.where(labels == 0, 8.0, 4.0) + 0 * outputs

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])
    trainer = Trainer(model)
    trainer.compile("sgd", values)
    data = tf.data.Dataset.from_tensors((features, labels, weights))
    assert trainer.evaluate(data, verbose=0) == pytest.approx((8 + 3 * 4) / 4)


def test_the_loss_shown_is_that_of_all_replicas(mirrored):  # cases C5 and C6
    """Replica 0 has one slot with loss 0, replica 1 nine with loss 10: their mean is 9, not 5."""
    labels = np.repeat([[0.0], [10.0]], 9, axis=1).astype("float32")
    weights = np.ones((2, 9), "float32")
    weights[0, 1:] = 0
    data = tf.data.Dataset.from_tensors((np.ones((2, 1), "float32"), labels, weights))
    for strategy in (ONE_DEVICE, mirrored):
        with strategy.scope():
            layer = keras.layers.Dense(9, use_bias=False, kernel_initializer="zeros")
            trainer = Trainer(keras.Sequential([keras.Input((1,)), layer]))
            trainer.compile(keras.optimizers.SGD(1.0), lambda labels, outputs: labels + outputs)
        assert trainer.fit(data, verbose=0).history["loss"] == [9.0]
        # The gradient of a score is its share of all slots: the first column has two of them.
        np.testing.assert_allclose(layer.kernel.numpy(), [[-0.2, *[-0.1] * 8]], rtol=1e-6)


class LengthOfText(keras.Model):
    """A score from the length of a string, where a boolean says that it counts."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        self.dense.build((None, 1))
        self.built = True

    def call(self, inputs, training=None):
        length = tf.where(inputs["counts"], tf.strings.length(inputs["text"]), 0)
        return self.dense(tf.cast(length[:, tf.newaxis], tf.float32))


def test_strings_and_booleans_are_shared_out_too(mirrored):  # cases C3 and C4
    """Three rows, in one batch, for two replicas: lengths 1, 2 and (left out) 3."""
    features = {"text": [b"a", b"bb", b"ccc"], "counts": [True, True, False]}
    data = tf.data.Dataset.from_tensor_slices((features, [0.0, 0.0, 0.0])).batch(3)
    for strategy in (ONE_DEVICE, mirrored):
        with strategy.scope():
            trainer = Trainer(LengthOfText())
            trainer.compile(keras.optimizers.SGD(1.0), lambda labels, outputs: outputs[:, 0])
        assert trainer.fit(data, verbose=0).history["loss"] == [1.0]
        assert trainer.evaluate(data, verbose=0) == 0.0  # the kernel went from 1 to 0


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_tail_is_not_traced_anew(mirrored, replicas):  # case C11
    traced = []

    def loss(labels, outputs):
        traced.append(outputs.shape)
        return outputs[:, 0]

    with (mirrored if replicas == 2 else ONE_DEVICE).scope():
        trainer = Trainer(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
        trainer.compile("sgd", loss)
    data = tf.data.Dataset.from_tensor_slices((np.ones((7, 1), "float32"), np.ones(7))).batch(4)
    trainer.fit(data.take(1), verbose=0)
    before = len(traced)
    trainer.fit(data, epochs=2, verbose=0)
    assert len(traced) == before > 0


def test_penalties_are_added_once_whatever_the_number_of_replicas(mirrored):
    weights = []
    for strategy in (ONE_DEVICE, mirrored):
        with strategy.scope():
            layer = keras.layers.Dense(
                1, use_bias=False, kernel_initializer="ones",
                kernel_regularizer=keras.regularizers.L2(0.5),
            )  # fmt: skip
            model = keras.Sequential([keras.Input((1,)), layer])
            trainer = Trainer(model)
            trainer.compile(keras.optimizers.SGD(0.1), lambda labels, outputs: 0.0 * outputs[:, 0])
        data = tf.data.Dataset.from_tensor_slices((np.ones((3, 1), "float32"), np.zeros(3)))
        trainer.fit(data.batch(3), verbose=0)
        weights.append(layer.kernel.numpy()[0, 0])
    assert weights == pytest.approx([0.9, 0.9])  # 1 - 0.1 * (2 * 0.5 * 1)


@pytest.mark.parametrize("limit", ["global_clipnorm", "clipnorm"])
def test_clipping_sees_repeated_ids_merged(mirrored, limit):  # cases D3 and D4
    """One id four times, SGD 1.0, clip 1.0: the update has norm 1, on one device and on two."""
    for strategy in (ONE_DEVICE, mirrored):
        with strategy.scope():
            table = keras.layers.Embedding(5, 3, embeddings_initializer="zeros")
            model = keras.Sequential([keras.Input((4,), dtype="int32"), table])
            trainer = Trainer(model)
            trainer.compile(
                keras.optimizers.SGD(1.0, **{limit: 1.0}),
                lambda labels, outputs: 100.0 * tf.reduce_sum(outputs, axis=[1, 2]),
            )
        data = tf.data.Dataset.from_tensors((np.full((2, 4), 3, "int32"), np.zeros(2)))
        trainer.fit(data, verbose=0)
        assert np.linalg.norm(table.embeddings.numpy()) == pytest.approx(1.0, abs=1e-5)


def test_a_batch_smaller_than_the_replicas_trains(mirrored):
    with mirrored.scope():
        model = RemBertForMaskedLM(small_config())
        trainer = masked_lm_trainer(model, OptimizerConfig(), DistributionConfig(), total_steps=10)
    trainer.fit(masked_batches(rows=1, batch_size=1, repeats=2), verbose=0)
    assert int(trainer.batch_number.numpy()) == 2


def test_evaluation_counts_every_item_without_a_step_flag(mirrored):
    for strategy in (ONE_DEVICE, mirrored):
        with strategy.scope():
            trainer = Trainer(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
            trainer.compile("sgd", lambda labels, outputs: labels + 0 * outputs[:, 0])
        data = tf.data.Dataset.from_tensor_slices(
            (np.ones((7, 1), "float32"), np.arange(7, dtype="float32"))
        )
        assert trainer.evaluate(data.batch(4), verbose=0) == pytest.approx(3.0)


def test_the_learning_test_tied_and_untied():
    """A few sentences are learnt by heart: accuracy far above chance (case A15)."""
    rng = np.random.default_rng(1)
    rows = rng.integers(5, 50, (16, 12)).astype("int32")
    features = {
        "input_ids": rows.copy(),
        "masked_lm_positions": np.tile(np.array([3, 7], "int32"), (16, 1)),
    }
    labels = rows[:, [3, 7]]
    features["input_ids"][:, [3, 7]] = 4
    data = tf.data.Dataset.from_tensors((features, labels, np.ones((16, 2), "float32"))).repeat(300)
    for tied in (False, True):
        keras.utils.set_random_seed(0)
        width = 16 if tied else 24
        model = RemBertForMaskedLM(
            small_config(
                tie_word_embeddings=tied, input_embedding_size=16, output_embedding_size=width
            )
        )
        trainer = masked_lm_trainer(
            model, OptimizerConfig(learning_rate=1e-2), DistributionConfig(), total_steps=300
        )
        trainer.fit(data, verbose=0)
        scores = trainer.evaluate(data.take(1), verbose=0, return_dict=True)
        assert scores["masked_lm_accuracy"] > 0.8


@pytest.mark.parametrize("loss", ["sum", "scalar"])
def test_losses_that_depend_on_the_batch_are_refused(loss):
    trainer = Trainer(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
    data = tf.data.Dataset.from_tensors((np.ones((2, 1), "float32"), np.ones(2, "float32")))
    with pytest.raises(ValueError, match="Received: "):
        if loss == "sum":
            trainer.compile("sgd", keras.losses.MeanSquaredError(reduction="sum"))
        else:
            trainer.compile("sgd", lambda labels, outputs: tf.reduce_mean(outputs))
            trainer.fit(data, verbose=0)


def test_a_users_own_loss_gives_one_number_on_one_and_two_replicas(mirrored):
    losses = []
    for strategy in (ONE_DEVICE, mirrored):
        keras.utils.set_random_seed(3)
        with strategy.scope():
            model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
            trainer = Trainer(model)
            optimizer = make_optimizer(
                OptimizerConfig(learning_rate=0.1, exclude_from_weight_decay=("bias",)), model, 10
            )
            trainer.compile(optimizer, keras.losses.Huber(delta=0.5))
        data = tf.data.Dataset.from_tensor_slices(
            (np.arange(14, dtype="float32").reshape(7, 2), np.ones((7, 1), "float32"))
        )
        losses.append(trainer.fit(data.batch(4), epochs=3, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def test_a_trainer_that_is_gone_leaves_no_graph_behind():
    """Several trainings in one process need the memory of one: a graph that stays keeps weights and slots."""
    graphs = []
    for _ in range(3):
        train(ONE_DEVICE, small_config())
        gc.collect()
        graphs.append(sum(isinstance(thing, FuncGraph) for thing in gc.get_objects()))
    assert graphs[2] == graphs[1]
