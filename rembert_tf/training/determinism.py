"""`--deterministic`: the same bits on every run."""

import os

import tensorflow as tf


def use_deterministic_ops() -> int:
    """Makes TensorFlow use deterministic kernels only, in this process, from here on.

    The bits then depend on the machine, the settings and the number of threads that share an operation, since the
    order of a sum may follow it.

    Returns:
        That number of threads.
    """
    tf.config.experimental.enable_op_determinism()
    chosen = tf.config.threading.get_intra_op_parallelism_threads()
    return chosen or len(os.sched_getaffinity(0))  # 0: TensorFlow takes every core it may use
