"""Parts of a batch: one rule cuts it for the replicas and, within each of them, for the micro-batches."""

from collections.abc import Callable, Sequence

import tensorflow as tf
from keras import tree


def part_of_batch(batch, number, count: int):
    """Returns part `number` of `count` nearly equal parts of a batch; no row is lost, none stands in two parts.

    Where the number of rows is known and a multiple of `count`, all shapes stay static (XLA needs that).

    Args:
        batch: a nest of tensors `[B, ...]`; `None` stays `None`.
        number: which part, int or int scalar.
        count: number of parts; some are empty if it exceeds `B`.

    Returns:
        The same nest, with rows `number * B // count` up to, not including, `(number + 1) * B // count`.
    """
    first_tensor = next(x for x in tree.flatten(batch) if x is not None)
    rows = first_tensor.shape[0]
    number = tf.cast(number, tf.int32)
    if rows is not None and rows % count == 0:
        size = rows // count
        begin = number * size
    else:
        rows = tf.shape(first_tensor)[0]
        begin = number * rows // count
        size = (number + 1) * rows // count - begin

    def cut(x):
        if x is None:
            return None
        inner = [
            tf.shape(x)[axis] if width is None else width
            for axis, width in enumerate(x.shape[1:], start=1)
        ]
        part = tf.slice(x, [begin, *(0 for _ in inner)], [size, *inner])
        part.set_shape([size if isinstance(size, int) else None, *x.shape[1:]])
        return part

    return tree.map_structure(cut, batch)


def sum_over_micro_batches(
    gradients_of: Callable, batch, count: int, variables: Sequence[tf.Variable]
) -> list[tf.Tensor]:
    """Sums the gradients of `count` parts of a batch, with the activations of only one part in memory.

    Args:
        gradients_of: maps a part of the batch to one gradient a variable, dense or `tf.IndexedSlices`.
        batch: a nest of tensors `[B, ...]`.
        count: number of parts.
        variables: what the gradients belong to.

    Returns:
        Dense gradients, in which the rows of repeated ids are added up.
    """
    if count == 1:
        return [tf.convert_to_tensor(gradient) for gradient in gradients_of(batch)]

    def add_part(number, sums):
        gradients = gradients_of(part_of_batch(batch, number, count))
        return number + 1, [_add(*pair) for pair in zip(sums, gradients, strict=True)]

    _, sums = tf.while_loop(
        lambda number, _: number < count,
        add_part,
        (0, [tf.zeros(variable.shape, variable.dtype) for variable in variables]),
        parallel_iterations=1,
        maximum_iterations=count,
    )
    return sums


def _add(total: tf.Tensor, gradient) -> tf.Tensor:
    """Adds a gradient to a dense sum; of a table only the rows that occur are touched."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.tensor_scatter_nd_add(
            total, gradient.indices[:, tf.newaxis], tf.cast(gradient.values, total.dtype)
        )
    return total + gradient
