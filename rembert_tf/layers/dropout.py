"""Dropout without state: what is dropped is a hash of the example's key, the layer and the place.

Keras' own dropout draws from a counter. Under a distribution strategy every replica draws the same
mask, XLA draws another one than the graph, and the counter is in no training checkpoint. A hash has
none of these problems: the same key gives the same mask on any device, in any batch, on any day.
"""

import keras
from keras import ops


def _mix(x):
    """Scrambles 32 bits so that each bit of the input changes half of the output's.

    A bijection: two rounds of "shift, xor, multiply by an odd number", with constants from a search
    for low bias (C. Wellons 2018, "hash prospector").

    Args:
        x: Any bits, uint32 of any shape.

    Returns:
        Scrambled bits, uint32 of the same shape.
    """
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ops.bitwise_xor(x, ops.right_shift(x, _uint32(shift)))
        x = ops.multiply(x, _uint32(factor))
    return ops.bitwise_xor(x, ops.right_shift(x, _uint32(16)))


def _uint32(value):
    return ops.convert_to_tensor(value, dtype="uint32")


def random_bits(dropout_keys, layer_number, shape):
    """Hashes keys, layer number and place to bits.

    The place is hashed axis by axis, so that the bits of a place do not depend on how large the
    other axes are: padding a batch to more tokens leaves the masks of the old ones as they were.

    Args:
        dropout_keys: One key an example, uint32 [B].
        layer_number: Number of the dropout layer in its model, int.
        shape: Shape of the activations, `B` first.

    Returns:
        Bits that look random, uint32 [*shape].
    """
    bits = _mix(ops.bitwise_xor(dropout_keys, _mix(_uint32(layer_number + 1))))
    for size in shape[1:]:
        places = ops.cast(ops.arange(size), "uint32")
        bits = _mix(ops.bitwise_xor(ops.expand_dims(bits, -1), places))
    return bits


@keras.saving.register_keras_serializable(package="rembert_tf")
class StatelessDropout(keras.layers.Layer):
    """Sets a share of the activations to zero in training, and scales the others up.

    At rate 0 it is the identity and adds nothing to the graph.

    Args:
        rate: Share of activations to drop, at least 0 and below 1.
        layer_number: Number of this dropout layer in its model. Layers with one number drop the
            same places.

    Example:
        >>> dropout = StatelessDropout(0.5, layer_number=3)
        >>> keys = ops.convert_to_tensor([17, 4], dtype="uint32")
        >>> dropped = dropout(ops.ones((2, 1000)), keys, training=True)
        >>> bool(ops.all((dropped == 0) | (dropped == 2)))
        True
    """

    def __init__(self, rate, layer_number, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be at least 0 and below 1. Received: rate={rate}")
        self.rate = rate
        self.layer_number = layer_number

    def call(self, inputs, dropout_keys=None, training=None):
        """Drops.

        Args:
            inputs: Activations, float [B, ...].
            dropout_keys: One key an example, uint32 [B].
            training: Whether to drop at all.

        Returns:
            Activations, of the type and shape of `inputs`.

        Raises:
            ValueError: If there is something to drop and `dropout_keys` is missing.
        """
        if not training or self.rate == 0:
            return inputs
        if dropout_keys is None:
            raise ValueError(
                f"`dropout_keys` must be given in training. Received: dropout_keys=None, "
                f"rate={self.rate}"
            )
        dropout_keys = ops.cast(dropout_keys, "uint32")
        bits = random_bits(dropout_keys, self.layer_number, ops.shape(inputs))
        keep = ops.greater_equal(bits, _uint32(round(self.rate * 2**32)))
        return ops.where(keep, inputs * (1 / (1 - self.rate)), ops.zeros_like(inputs))

    def compute_output_shape(self, input_shape):
        """Returns the shape of the input."""
        return input_shape

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), "rate": self.rate, "layer_number": self.layer_number}
