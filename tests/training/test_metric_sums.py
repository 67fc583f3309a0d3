"""The means of a line of the log count the steps before a resume, too."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.training.config import DistributionConfig
from rembert_tf.training.distribution import make_strategy
from rembert_tf.training.metric_sums import MetricSums
from rembert_tf.training.trainer import Trainer


def make_trainer(strategy):
    with strategy.scope():
        trainer = Trainer(keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)]))
        trainer.compile(
            keras.optimizers.SGD(0.0),
            lambda labels, outputs: labels + 0 * outputs,
            weighted_metrics=[keras.metrics.MeanMetricWrapper(lambda y, _: 10 * y, name="tenfold")],
        )
    return trainer


@pytest.mark.parametrize("replicas", [1, 2])
def test_sums_that_are_given_back_are_gone_on_with(replicas):
    """Steps with losses 0, 1 and 2, 3, 4 and 5 in two rows each; the run breaks off after the second step."""
    strategy = tf.distribute.get_strategy()
    if replicas == 2:
        strategy = make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2))
    labels = np.arange(6, dtype="float32")[:, np.newaxis]
    data = tf.data.Dataset.from_tensor_slices((np.ones((6, 1), "float32"), labels)).batch(2)

    first = make_trainer(strategy)
    sums = MetricSums(first)
    sums.give_back()  # nothing was noted yet
    first.fit(data.take(2), verbose=0)
    sums.note()
    noted = sums.variable.numpy().tolist()
    assert noted == [0 + 1 + 2 + 3, 4, 10 * (0 + 1 + 2 + 3), 4]

    second = make_trainer(strategy)
    restored = MetricSums(second)
    restored.variable.assign(noted)
    give_back = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: restored.give_back()
    )
    history = second.fit(data.skip(2), callbacks=[give_back], verbose=0).history
    assert history["loss"] == [2.5] and history["tenfold"] == [25.0]
