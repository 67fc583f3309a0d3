"""From a configuration to a `tf.distribute.Strategy`, and from a batch to what each replica gets."""

import functools
import os
from collections.abc import Callable

import tensorflow as tf

from rembert_tf.training.config import DistributionConfig
from rembert_tf.training.micro_batches import part_of_batch


def make_strategy(config: DistributionConfig) -> tf.distribute.Strategy:
    """Returns the strategy that `config.distribution` names; call it before anything else of TensorFlow.

    `one_device` is TensorFlow's default strategy. `mirrored` takes all GPUs, or `cpu_replicas` logical CPU devices.
    `multi_worker` takes the GPUs (or the CPU) of each worker that the environment variable TF_CONFIG names; `tpu` the
    TPU at `tpu_address`.

    Raises:
        ValueError: `mirrored` with neither a GPU nor `cpu_replicas`; `cpu_replicas` or `multi_worker` after TensorFlow
            has started; `multi_worker` without TF_CONFIG.
    """
    if config.distribution == "one_device":
        return tf.distribute.get_strategy()
    if config.distribution == "multi_worker":
        return _multi_worker()
    if config.distribution == "tpu":
        return _tpu(config.tpu_address)
    if config.cpu_replicas:
        return _mirrored(tuple(_logical_cpus(config.cpu_replicas)))
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        raise ValueError(
            "`distribution` mirrored needs GPUs, or `cpu_replicas` to stand in for them. "
            f"Received: distribution={config.distribution}, cpu_replicas={config.cpu_replicas}"
        )
    return _mirrored(tuple(gpu.name for gpu in gpus))


def check_batches(
    config: DistributionConfig, strategy: tf.distribute.Strategy, batch_size: int, pad_to_max: bool
) -> None:
    """Checks what a TPU needs: all batches of one shape, which every replica and micro-batch shares equally.

    Args:
        config: the settings.
        strategy: the strategy made from them.
        batch_size: rows of a batch.
        pad_to_max: whether all rows are padded to one length.

    Raises:
        ValueError: `distribution` is tpu, and the shapes would vary.
    """
    if config.distribution != "tpu":
        return
    parts = strategy.num_replicas_in_sync * config.gradient_accumulation_steps
    if batch_size % parts:
        raise ValueError(
            "On a TPU, `batch_size` must be a multiple of its replicas times `gradient_accumulation_steps`, "
            f"{strategy.num_replicas_in_sync} times {config.gradient_accumulation_steps}. "
            f"Received: batch_size={batch_size}"
        )
    if not pad_to_max:
        raise ValueError("On a TPU, `pad_to_max` is needed. Received: pad_to_max=False")


def per_replica_batches(dataset: tf.data.Dataset, strategy: tf.distribute.Strategy):
    """Returns the dataset from which each replica gets its rows of every batch, in the order of the replicas.

    All workers make all batches and keep their own rows, so that together they see exactly the batch that one device
    sees, whatever its size, and wherever the data start. `per_worker_batches` spares them the rows of the others.

    Args:
        dataset: global batches: tensors `[B, ...]`.
        strategy: the strategy.

    Returns:
        A `tf.distribute.DistributedDataset`; with one replica, `dataset` itself.
    """

    def rows_of(worker, workers):
        return dataset if workers == 1 else dataset.map(_part_of(dataset, worker, workers))

    return per_worker_batches(rows_of, strategy)


def per_worker_batches(
    make: Callable[[int, int], tf.data.Dataset], strategy: tf.distribute.Strategy
):
    """Returns what `per_replica_batches` does, from data of which each worker makes its own rows alone.

    `fit` and `evaluate` of a `Trainer` take it as it is:

        batches = per_worker_batches(
            lambda worker, workers: make_pretraining_dataset(..., worker=worker, workers=workers), strategy
        )
        trainer.fit(batches, shuffle=False)

    Args:
        make: maps the number of a worker, from 0, and the number of workers to that worker's rows of every batch.
            Together, in the order of the workers, they are the batch. Give `fit` endless data: of others Keras counts a
            batch for every replica, and warns when they end.
        strategy: the strategy.

    Returns:
        A `tf.distribute.DistributedDataset`; with one replica, the dataset that `make` made.
    """
    if strategy.num_replicas_in_sync == 1:
        return make(0, 1)

    def of_this_worker(context):
        dataset = make(context.input_pipeline_id, context.num_input_pipelines)
        here = context.num_replicas_in_sync // context.num_input_pipelines

        def parts(*batch):
            numbers = tf.data.Dataset.range(here)
            return numbers.map(lambda number: _part_of(dataset, number, here)(*batch))

        made = dataset.flat_map(parts)
        batches = dataset.cardinality()
        if batches != tf.data.UNKNOWN_CARDINALITY:
            # Endless data need no question to the other workers, in every step, whether they have a batch.
            count = batches if batches == tf.data.INFINITE_CARDINALITY else batches * here
            made = made.apply(tf.data.experimental.assert_cardinality(count))
        return made.prefetch(2 * here)

    return strategy.distribute_datasets_from_function(of_this_worker)


def workers_of(strategy: tf.distribute.Strategy) -> tuple[list[int], int]:
    """Returns the numbers of the workers for which this process makes data, and how many workers there are.

    They are those that `per_worker_batches` hands to `make`: the process itself; on a TPU, each of the TPU's hosts.
    """
    contexts = []

    def keep(context):
        contexts.append(context)
        return tf.data.Dataset.range(1)

    strategy.distribute_datasets_from_function(keep)
    return [context.input_pipeline_id for context in contexts], contexts[0].num_input_pipelines


def _part_of(dataset: tf.data.Dataset, number, count: int) -> Callable:
    """Returns the function from the components of a batch of `dataset` to part `number` of `count`."""

    def part(*batch):
        batch = batch if isinstance(dataset.element_spec, tuple) else batch[0]
        return part_of_batch(batch, number, count)

    return part


@functools.cache
def _multi_worker() -> tf.distribute.MultiWorkerMirroredStrategy:
    if not os.environ.get("TF_CONFIG"):
        raise ValueError(
            "`distribution` multi_worker needs the environment variable TF_CONFIG in each worker: "
            '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}, '
            "for example. Received: distribution=multi_worker"
        )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy()
    except RuntimeError as error:
        raise ValueError(f"`distribution` multi_worker must come first: {error}") from error


@functools.cache
def _tpu(address: str) -> tf.distribute.TPUStrategy:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.MirroredStrategy:
    """Returns one strategy for each set of devices.

    Two on the same devices number their collective operations alike, and the second run of a process ends in a
    shape mismatch between them.
    """
    return tf.distribute.MirroredStrategy(devices)


def _logical_cpus(count: int) -> list[str]:
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * count
        )
    except RuntimeError:  # TensorFlow has started; the devices may have been made before
        pass
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    if len(devices) < count:
        raise ValueError(
            "Logical CPU devices must be set before TensorFlow starts. "
            f"Received: cpu_replicas={count}, devices={devices}"
        )
    return devices[:count]
