"""Micro-batches: a batch in parts has the gradients, weights and metrics of the whole."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.config import DistributionConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.micro_batches import part_of_batch, sum_over_micro_batches
from rembert_tf.training.trainer import Trainer


@pytest.mark.parametrize("rows", [0, 1, 4, 6, 7])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_each_row_stands_in_one_part(rows, count):
    batch = ({"a": tf.range(rows), "b": tf.reshape(tf.range(2 * rows), [rows, 2])}, None)
    parts = [part_of_batch(batch, number, count) for number in range(count)]
    assert np.concatenate([part["a"] for part, _ in parts]).tolist() == list(range(rows))
    np.testing.assert_array_equal(np.concatenate([part["b"] for part, _ in parts]), batch[0]["b"])
    sizes = [len(part["a"]) for part, _ in parts]
    assert max(sizes) - min(sizes) <= 1
    assert all(none is None for _, none in parts)


def test_known_sizes_stay_known_and_unknown_ones_work():
    def shape_of_part(*shape):
        traced = tf.function(lambda x, number: part_of_batch(x, number, 2))
        specs = tf.TensorSpec(shape), tf.TensorSpec([], tf.int32)
        return traced.get_concrete_function(*specs).outputs[0].shape.as_list()

    assert shape_of_part(6, 5) == [3, 5]
    assert shape_of_part(7, 5) == [None, 5]
    assert shape_of_part(None, 5) == [None, 5]
    assert shape_of_part(6, None) == [3, None]


def test_rows_of_a_table_are_merged():
    """Ids 1 1 2 | 1: the sum holds each row once, with the gradients of its repeated ids added up."""
    table = tf.Variable(tf.zeros([4, 2]))
    scale = tf.Variable(1.0)

    def gradients_of(ids):
        with tf.GradientTape() as tape:
            loss = scale * tf.reduce_sum(tf.gather(table, ids) + 1.0)
        return tape.gradient(loss, [table, scale])

    ids = tf.constant([1, 1, 2, 1])
    assert isinstance(gradients_of(ids)[0], tf.IndexedSlices)
    for count in (1, 2, 3):
        of_table, of_scale = sum_over_micro_batches(gradients_of, ids, count, [table, scale])
        np.testing.assert_array_equal(of_table, [[0, 0], [3, 3], [1, 1], [0, 0]])
        assert of_scale == 8


def examples(rows=7, batch_size=5):
    """Ids that repeat, uneven weights, and a tail of two rows."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 5, (rows, 3)).astype("int32")
    labels = rng.integers(0, 4, (rows, 3)).astype("int32")
    weights = (rng.random((rows, 3)) < 0.6).astype("float32")
    return tf.data.Dataset.from_tensor_slices((ids, labels, weights)).batch(batch_size)


def train(strategy, count, *, jit_compile=False, steps_per_execution=1, weighted=True):
    """Three epochs of a tagger with a penalty, clipping and both kinds of metrics."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.Input((3,), dtype="int32"),
                keras.layers.Embedding(5, 4),
                keras.layers.Dense(4, kernel_regularizer=keras.regularizers.L2(0.1)),
            ]
        )
        trainer = Trainer(model)
        trainer.compile(
            keras.optimizers.SGD(0.5, global_clipnorm=0.3),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="of_all")],
            weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="of_weights")],
            gradient_accumulation_steps=count,
            jit_compile=jit_compile,
            steps_per_execution=steps_per_execution,
        )
    data = examples() if weighted else examples().map(lambda ids, labels, _: (ids, labels))
    history = trainer.fit(data, epochs=3, verbose=0).history
    return trainer, history


def assert_same(one, other):
    for a, b in zip(one[0].get_weights(), other[0].get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    assert one[1].keys() == other[1].keys() >= {"loss", "of_all", "of_weights"}
    for name, values in one[1].items():
        np.testing.assert_allclose(values, other[1][name], rtol=1e-5, err_msg=name)
    assert int(one[0].batch_number.numpy()) == int(other[0].batch_number.numpy()) == 6
    np.testing.assert_allclose(
        one[0].gradient_norm.numpy(), other[0].gradient_norm.numpy(), rtol=1e-5
    )


@pytest.fixture(scope="module")
def whole():
    trainer, history = train(tf.distribute.get_strategy(), 1)
    assert history["loss"][0] > history["loss"][-1] > 0
    return trainer, history


@pytest.mark.parametrize(
    "count, replicas, jit_compile", [(2, 1, False), (4, 1, True), (4, 2, False), (2, 2, True)]
)
def test_micro_batches_give_the_weights_and_metrics_of_the_whole_batch(
    whole, count, replicas, jit_compile
):
    """On two replicas and four micro-batches, the tail of two rows leaves some micro-batches empty."""
    config = DistributionConfig(
        distribution="mirrored" if replicas > 1 else "one_device",
        cpu_replicas=replicas if replicas > 1 else 0,
    )
    assert_same(whole, train(make_strategy(config), count, jit_compile=jit_compile))


def test_without_weights_the_loss_is_the_mean_over_rows():
    one = train(tf.distribute.get_strategy(), 1, weighted=False)
    assert_same(one, train(tf.distribute.get_strategy(), 3, weighted=False))


@pytest.mark.parametrize("replicas", [1, 2])
def test_steps_per_execution_changes_nothing(whole, replicas):
    """Two batches an epoch, three an execution: the last execution has fewer, and none is lost."""
    config = DistributionConfig(
        distribution="mirrored" if replicas > 1 else "one_device",
        cpu_replicas=replicas if replicas > 1 else 0,
    )
    for steps in (2, 3):
        trained = train(make_strategy(config), 1, steps_per_execution=steps)
        assert_same(whole, trained)
    scores = [
        trainer.evaluate(examples(), verbose=0, return_dict=True)
        for trainer in (whole[0], trained[0])
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-5)


def test_only_one_micro_batch_is_in_memory():
    """The loop holds its body once: the graph does not grow with the number of micro-batches."""
    sizes = []
    for count in (2, 16):
        variable = tf.Variable(tf.ones([3]))

        @tf.function
        def step(batch, count=count, variable=variable):
            def gradients_of(part):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.tanh(part * variable))
                return tape.gradient(loss, [variable])

            return sum_over_micro_batches(gradients_of, batch, count, [variable])

        graph = step.get_concrete_function(tf.TensorSpec([32, 3])).graph.as_graph_def()
        sizes.append(sum(len(function.node_def) for function in graph.library.function))
    assert sizes[0] == sizes[1] > 0


@pytest.mark.parametrize("count", [0, -1])
def test_counts_below_one_are_refused(count):
    trainer = Trainer(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
    with pytest.raises(ValueError, match=f"Received: gradient_accumulation_steps={count}"):
        trainer.compile("sgd", "mse", gradient_accumulation_steps=count)
    with pytest.raises(ValueError, match=f"Received: gradient_accumulation_steps={count}"):
        DistributionConfig(gradient_accumulation_steps=count)
