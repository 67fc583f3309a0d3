"""Any number of strings of any length through a function inside a graph: a few neighbours at a time.

Before a text is cut to a row, its characters and pieces take a few hundred times its bytes. So only so many strings are
taken apart at once as have `MOST_BYTES` together, or one string that has more: what a request needs beside its answer
grows with its longest string, not with all of them. An ordinary request is one group.
"""

from collections.abc import Callable

import tensorflow as tf

MOST_BYTES = 1 << 18
# A string counts so much beside its bytes: many empty ones are many, too. And a row counts so much more: beside a long
# one, each row of its group has room for as many windows or words.
_EACH, _ROW = 16, 256

Answer = dict[str, tf.Tensor | tf.RaggedTensor]


def in_groups(
    function: Callable[..., Answer], *inputs: tf.Tensor, most_bytes: int = MOST_BYTES
) -> Answer:
    """Calls a function on a few neighbours at a time and puts its answers one after the other.

    Args:
        function: from G strings of each input to tensors by name, [G, ...] or ragged [G, (W), ...]. It is called for no
            strings, too, if there are none.
        *inputs: string [B] or [B, W] each.
        most_bytes: bytes of a group, unless one row has more.

    Returns:
        The tensors for all B.
    """
    costs = tf.add_n([_cost(strings) for strings in inputs])
    ends = tf.cumsum(costs)
    starts = tf.concat([[0], ends], axis=0)
    count = tf.size(costs)
    specs = [tf.TensorSpec([None, *strings.shape[1:]], tf.string) for strings in inputs]

    @tf.function
    def parts_of_group(*strings):
        return {name: _parts(value) for name, value in function(*strings).items()}

    of_group = parts_of_group.get_concrete_function(*specs)
    arrays = [
        tf.TensorArray(part.dtype, 0, True, element_shape=part.shape, infer_shape=False)
        for part in tf.nest.flatten(of_group.structured_outputs)
    ]

    def call(number, start, arrays):
        end = tf.searchsorted(ends, starts[start, tf.newaxis] + most_bytes, side="right")[0]
        end = tf.minimum(tf.maximum(end, start + 1), count)
        parts = tf.nest.flatten(of_group(*(strings[start:end] for strings in inputs)))
        return number + 1, end, [a.write(number, p) for a, p in zip(arrays, parts, strict=True)]

    _, _, arrays = tf.while_loop(
        lambda number, start, _: (number == 0) | (start < count),
        call,
        (0, 0, arrays),
        parallel_iterations=1,
    )
    made = tf.nest.pack_sequence_as(of_group.structured_outputs, [a.concat() for a in arrays])
    return {name: _whole(parts) for name, parts in made.items()}


def _cost(strings: tf.Tensor) -> tf.Tensor:
    """Returns what each row counts, int64 [B]."""
    bytes_of_each = tf.cast(tf.strings.length(strings), tf.int64) + _EACH
    if strings.shape.rank == 2:
        bytes_of_each = tf.reduce_sum(bytes_of_each, axis=1)
    return bytes_of_each + _ROW


def _parts(value) -> list:
    """Returns what can be put one after the other: a tensor, or the values and the lengths of ragged rows."""
    return [value.values, value.row_lengths()] if isinstance(value, tf.RaggedTensor) else [value]


def _whole(parts: list[tf.Tensor]):
    if len(parts) == 1:
        return parts[0]
    return tf.RaggedTensor.from_row_lengths(*parts, validate=False)
