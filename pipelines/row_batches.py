"""Any number of rows through a model inside a graph: few at a time, each batch of rows of similar length.

So the memory that a request takes does not grow with the strings it holds, and a short text among long ones costs no
more than it would alone.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def in_batches(
    function: Callable[[tf.Tensor], Any],
    lengths: tf.Tensor,
    specs: Any,
    batch_size: int,
    sizes: tf.Tensor | None = None,
) -> Any:
    """Calls a function on a few rows at a time and gives its values in the order of the rows.

    Args:
        function: the numbers of some rows, int32 [N], to a tensor or a structure of tensors, whose first axis holds the
            values of these rows one after the other: one a row, or as many as `sizes` says.
        lengths: the length of each row, int64 [R].
        specs: a `tf.TensorSpec` for each tensor, its first axis open.
        batch_size: rows a call, at most.
        sizes: values of each row, int64 [R].

    Returns:
        The structure of `specs`; no row gives empty tensors.
    """
    order = tf.argsort(lengths, stable=True)
    count = (tf.size(order) + batch_size - 1) // batch_size
    arrays = [
        tf.TensorArray(spec.dtype, count, element_shape=spec.shape, infer_shape=False)
        for spec in tf.nest.flatten(specs)
    ]

    def call(number, arrays):
        rows = order[number * batch_size : (number + 1) * batch_size]
        values = tf.nest.flatten(function(rows))
        return number + 1, [a.write(number, v) for a, v in zip(arrays, values, strict=True)]

    _, arrays = tf.while_loop(
        lambda number, _: number < count, call, (0, arrays), parallel_iterations=1
    )
    back = tf.argsort(order)
    if sizes is not None:
        sorted_sizes = tf.gather(sizes, order)
        starts = tf.gather(tf.cumsum(sorted_sizes, exclusive=True), back)
        back = tf.ragged.range(starts, starts + sizes).values
    return tf.nest.pack_sequence_as(specs, [tf.gather(array.concat(), back) for array in arrays])
