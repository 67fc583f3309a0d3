"""Chains in a graph without a loop over their links: which numbers a walk comes to."""

import tensorflow as tf


def reached(first: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    """Marks all numbers that are reached by going on from number i to `following[i]`, again and again.

    The walk is doubled: 1, 2, 4, 8, ... links at once.

    Args:
        first: Where walks begin, bool [n].
        following: From each number, the next one, int32 [n]; an end leads to itself.

    Returns:
        bool [n].

    Example:
        >>> first = tf.constant([True, False, False, False, False])
        >>> reached(first, tf.constant([2, 3, 4, 4, 4])).numpy().tolist()
        [True, False, True, False, True]
    """
    count = tf.size(following)

    def double(marked, jump, _):
        also = tf.math.unsorted_segment_max(marked, jump, count)
        twice = tf.gather(jump, jump)
        return tf.maximum(marked, also), twice, tf.reduce_any(twice != jump)

    marked, _, _ = tf.while_loop(
        lambda marked, jump, going: going, double, (tf.cast(first, tf.int32), following, True)
    )
    return marked > 0
