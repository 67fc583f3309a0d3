"""What the modules of all heads share: the type of what they return, and the tensors that signatures take."""

from collections.abc import Callable

import tensorflow as tf

# Signatures by name, and the tokenizers that they need at run time. Each first makes bytes that are no UTF-8 to U+FFFD;
# offsets count the code points of what is left.
Signatures = tuple[dict[str, Callable[..., dict[str, tf.Tensor]]], list[tf.Module]]


def strings(name: str, axes: int = 1) -> tf.TensorSpec:
    """Returns the type of an input, string [B] or of more axes."""
    return tf.TensorSpec([None] * axes, tf.string, name)


def floats(*shape: int) -> tf.TensorSpec:
    """Returns the type of values, float32 [any number, *shape]."""
    return tf.TensorSpec([None, *shape], tf.float32)
