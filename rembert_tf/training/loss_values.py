"""A loss before it is reduced: one value and one weight for each slot that counts.

A slot is what one sample weight belongs to: a masked position, a word, or without weights a whole example. The trainer
sums `weight * value` over all slots of all replicas, and divides by the sum of the weights.
"""

from collections.abc import Callable

import keras
import tensorflow as tf
from keras import tree


def unreduced(loss) -> Callable:
    """Returns the function `(labels, outputs) -> values` behind a loss, without its reduction.

    Args:
        loss: a `keras.losses.Loss`, the name of one, or a function of that kind.

    Raises:
        ValueError: the loss asks for reduction "sum", which has no meaning independent of the batch.
    """
    if getattr(loss, "reduction", None) == "sum":
        raise ValueError(
            "`loss` must not have reduction 'sum': the trainer divides by the global weight. "
            f"Received: loss={loss!r}"
        )
    loss = keras.losses.get(loss)
    return loss.call if isinstance(loss, keras.losses.Loss) else loss


def slot_weights(features, sample_weight) -> tf.Tensor:
    """Returns the weights of the slots, float32: `sample_weight`, or one for each example, `[B]`."""
    if sample_weight is not None:
        return tf.cast(sample_weight, tf.float32)
    return tf.ones([tf.shape(tree.flatten(features)[0])[0]], tf.float32)


def one_for_each_slot(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Averages the trailing axes of `values` that `weights` does not have.

    Args:
        values: what the loss gave, of any floating type.
        weights: float32, of the shape of the slots.

    Returns:
        The values in float32, of the shape of `weights`.

    Raises:
        ValueError: the loss gave fewer axes than there are weights (a scalar, for example).
    """
    if values.shape.rank < weights.shape.rank:
        raise ValueError(
            "A loss must give one value for each weight (or example), and the trainer reduces. "
            f"Received: values.shape={values.shape}, weights.shape={weights.shape}"
        )
    extra = list(range(weights.shape.rank, values.shape.rank))
    values = tf.cast(values, tf.float32)
    return tf.reduce_mean(values, axis=extra) if extra else values


def in_float32(outputs):
    """Casts the floating tensors of a nest of outputs to float32: losses and metrics are computed there."""
    return tree.map_structure(
        lambda x: tf.cast(x, tf.float32) if x.dtype.is_floating else x, outputs
    )
