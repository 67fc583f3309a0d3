"""From a configuration to a `tf.distribute.Strategy`."""

import functools

import tensorflow as tf

from rembert_tf.training.config import DistributionConfig


def make_strategy(config: DistributionConfig) -> tf.distribute.Strategy:
    """Returns the strategy that `config.distribution` names.

    `one_device` is TensorFlow's default strategy. `mirrored` takes all GPUs, or `cpu_replicas` logical CPU devices.

    Raises:
        ValueError: `mirrored` with neither a GPU nor `cpu_replicas`; `cpu_replicas` after TensorFlow has started.
    """
    if config.distribution == "one_device":
        return tf.distribute.get_strategy()
    if config.cpu_replicas:
        return _mirrored(tuple(_logical_cpus(config.cpu_replicas)))
    gpus = tf.config.list_logical_devices("GPU")
    if not gpus:
        raise ValueError(
            "`distribution` mirrored needs GPUs, or `cpu_replicas` to stand in for them. "
            f"Received: distribution={config.distribution}, cpu_replicas={config.cpu_replicas}"
        )
    return _mirrored(tuple(gpu.name for gpu in gpus))


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
