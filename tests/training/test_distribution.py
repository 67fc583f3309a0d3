"""The strategy that a configuration names, and the rows that each replica gets."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.masked_batches import rows_of_worker
from rembert_tf.training import workers
from rembert_tf.training.config import DistributionConfig
from rembert_tf.training.distribution import (
    check_batches,
    make_strategy,
    per_replica_batches,
    per_worker_batches,
    workers_of,
)
from rembert_tf.training.trainer import Trainer
from rembert_tf.training.workers import has_several_workers, is_chief, working_together


@pytest.fixture(scope="module")
def mirrored():
    return make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2))


def test_one_device_is_the_default_strategy():
    assert make_strategy(DistributionConfig()) is tf.distribute.get_strategy()


def test_mirrored_is_one_strategy_however_often_it_is_made(mirrored):
    assert mirrored.num_replicas_in_sync == 2
    assert make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=2)) is mirrored


def test_mirrored_needs_devices():
    with pytest.raises(ValueError, match="Received: cpu_replicas=3, devices="):
        make_strategy(DistributionConfig(distribution="mirrored", cpu_replicas=3))
    if not tf.config.list_logical_devices("GPU"):
        with pytest.raises(ValueError, match="Received: distribution=mirrored, cpu_replicas=0"):
            make_strategy(DistributionConfig(distribution="mirrored"))
    with pytest.raises(ValueError, match="stand in for .* Received: cpu_replicas=2"):
        DistributionConfig(cpu_replicas=2)


def test_multi_worker_needs_a_cluster_and_comes_first(monkeypatch):
    config = DistributionConfig(distribution="multi_worker")
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="needs the environment variable TF_CONFIG"):
        make_strategy(config)
    cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
    tf_config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config))
    tf.constant(0)  # TensorFlow has started
    with pytest.raises(ValueError, match="multi_worker must come first: .*program startup"):
        make_strategy(config)


@pytest.mark.parametrize("rows", [8, 7, 3, 1])
def test_replicas_together_see_the_batch(mirrored, rows):
    data = tf.data.Dataset.from_tensors({"a": tf.range(rows), "b": tf.ones([rows, 2])}).repeat(2)
    shared = per_replica_batches(data, mirrored)
    seen = [mirrored.experimental_local_results(batch["a"]) for batch in shared]
    assert len(seen) == 2
    for parts in seen:
        assert np.concatenate(parts).tolist() == list(range(rows))
        assert abs(len(parts[0]) - len(parts[1])) <= 1


def test_shapes_stay_static_and_endless_data_endless(mirrored):
    def shared(rows):
        data = tf.data.Dataset.from_tensors((tf.ones([rows, 5]), tf.range(rows))).repeat()
        return per_replica_batches(data, mirrored)

    assert shared(8).cardinality == tf.data.INFINITE_CARDINALITY
    for rows, expected in ((8, 4), (7, None)):
        specs = tf.nest.flatten(shared(rows).element_spec, expand_composites=True)
        assert {tuple(spec.shape) for spec in specs} == {(expected, 5), (expected,)}


def test_one_replica_gets_the_data_as_they_are():
    data = tf.data.Dataset.range(3).batch(2)
    assert per_replica_batches(data, tf.distribute.get_strategy()) is data


class Cluster:
    """A stand-in for a strategy: it gives the data of one worker of several."""

    def __init__(self, worker, workers, replicas_of_each):
        self.num_replicas_in_sync = workers * replicas_of_each
        self.context = tf.distribute.InputContext(workers, worker, self.num_replicas_in_sync)

    def distribute_datasets_from_function(self, make):
        return make(self.context)


@pytest.mark.parametrize("count, replicas_of_each", [(2, 1), (3, 2)])
def test_workers_that_make_their_own_rows_see_what_workers_with_whole_batches_see(
    count, replicas_of_each
):
    for rows in (12, 7, 3):
        whole = tf.data.Dataset.from_tensors({"a": tf.range(rows), "b": tf.ones([rows, 2])})
        seen = []
        for worker in range(count):
            cluster = Cluster(worker, count, replicas_of_each)
            asked = []

            def own(*worker_of, asked=asked, rows=rows):
                asked.append(worker_of)
                mine = rows_of_worker(rows, *worker_of)
                a = tf.range(mine.start, mine.stop)
                return tf.data.Dataset.from_tensors({"a": a, "b": tf.ones([len(mine), 2])})

            of_own = list(per_worker_batches(own, cluster).as_numpy_iterator())
            of_whole = list(per_replica_batches(whole, cluster).as_numpy_iterator())
            assert asked == [(worker, count)] and workers_of(cluster) == ([worker], count)
            assert len(of_own) == replicas_of_each
            for mine, expected in zip(of_own, of_whole, strict=True):
                np.testing.assert_array_equal(mine["a"], expected["a"])
                np.testing.assert_array_equal(mine["b"], expected["b"])
            seen += [row for part in of_own for row in part["a"]]
        assert seen == list(range(rows))


def test_a_batch_with_fewer_rows_than_workers_leaves_some_without():
    """The last batch of an evaluation may be that small; a batch that workers make by rows may not."""
    data = tf.data.Dataset.from_tensors(tf.range(1))
    parts = [next(iter(per_replica_batches(data, Cluster(n, 2, 1)))).numpy() for n in range(2)]
    assert [part.tolist() for part in parts] == [[], [0]]


def trained_on(strategy, batches):
    keras.utils.set_random_seed(0)
    with strategy.scope():
        trainer = Trainer(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        trainer.compile("sgd", loss, weighted_metrics=["accuracy"])
    history = trainer.fit(batches, steps_per_epoch=3, epochs=2, shuffle=False, verbose=0).history
    return trainer.model.get_weights(), history


def test_fit_takes_batches_that_are_shared_out_as_they_are(mirrored):
    def make(worker, workers):
        assert (worker, workers) == (0, 1)
        features = np.random.default_rng(0).normal(size=(11, 3)).astype("float32")
        labels, weights = np.arange(11) % 2, np.linspace(0, 1, 11, dtype="float32")
        data = tf.data.Dataset.from_tensor_slices((features, labels, weights))
        return data.batch(4).repeat()

    expected, losses = trained_on(mirrored, make(0, 1))
    for strategy in (mirrored, tf.distribute.get_strategy()):
        weights, history = trained_on(strategy, per_worker_batches(make, strategy))
        assert history.keys() == losses.keys() == {"loss", "accuracy"}
        for name, values in losses.items():
            np.testing.assert_allclose(history[name], values, rtol=1e-5)
        for got, value in zip(weights, expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=0, atol=1e-6)


def test_rows_that_two_workers_make_or_none_are_refused(mirrored, tmp_path, monkeypatch):
    with working_together(mirrored, str(tmp_path), []) as worker:
        worker.check_rows(7)
        monkeypatch.setattr(workers, "workers_of", lambda strategy: ([0], 2))
        with pytest.raises(ValueError, match="row 3 is made by 0. Received: rows="):
            worker.check_rows(7)
        monkeypatch.setattr(workers, "workers_of", lambda strategy: ([0, 1, 1], 2))
        with pytest.raises(ValueError, match="row 3 is made by 2. Received: rows="):
            worker.check_rows(7)
        with pytest.raises(ValueError, match="`workers` must not exceed .* 1. Received: workers=2"):
            worker.check_rows(1)


def test_several_replicas_of_a_worker_say_what_it_makes_once(mirrored, tmp_path, monkeypatch):
    with working_together(mirrored, str(tmp_path), []) as worker:
        monkeypatch.setattr(workers, "has_several_workers", lambda strategy: True)
        assert worker._gather(3, 5) == [3, 5]
        worker.check_rows(7)


def test_a_single_process_is_the_chief_and_writes_to_the_runs_folder(mirrored, tmp_path):
    for strategy in (tf.distribute.get_strategy(), mirrored):
        assert is_chief(strategy) and not has_several_workers(strategy)
        with working_together(strategy, str(tmp_path), []) as worker:
            assert worker.folder == tmp_path
            worker.check_same("data", b"any")
        with (
            pytest.raises(tf.errors.UnavailableError),
            working_together(strategy, str(tmp_path), []),
        ):
            raise tf.errors.UnavailableError(None, None, "no other worker is to blame")


class TpuOfFour:
    """A stand-in: only the number of replicas counts here."""

    num_replicas_in_sync = 4


def test_a_tpu_needs_equal_parts_of_one_shape():
    config = DistributionConfig(distribution="tpu", gradient_accumulation_steps=2)
    check_batches(config, TpuOfFour, batch_size=16, pad_to_max=True)
    with pytest.raises(ValueError, match="4 times 2. Received: batch_size=12"):
        check_batches(config, TpuOfFour, batch_size=12, pad_to_max=True)
    with pytest.raises(ValueError, match="Received: pad_to_max=False"):
        check_batches(config, TpuOfFour, batch_size=16, pad_to_max=False)
    check_batches(DistributionConfig(), TpuOfFour, batch_size=3, pad_to_max=False)


def test_the_tpu_is_connected_and_initialized_before_its_strategy(monkeypatch):
    calls = []
    resolver_module = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolver_module, "TPUClusterResolver", lambda tpu: f"resolver of {tpu}")
    for module, name in (
        (tf.config, "experimental_connect_to_cluster"),
        (tf.tpu.experimental, "initialize_tpu_system"),
        (tf.distribute, "TPUStrategy"),
    ):
        monkeypatch.setattr(
            module, name, lambda resolver, name=name: calls.append((name, resolver)) or name
        )
    config = DistributionConfig(distribution="tpu", tpu_address="a-tpu")
    assert make_strategy(config) == "TPUStrategy"
    assert calls == [
        ("experimental_connect_to_cluster", "resolver of a-tpu"),
        ("initialize_tpu_system", "resolver of a-tpu"),
        ("TPUStrategy", "resolver of a-tpu"),
    ]
