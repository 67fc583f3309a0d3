"""The activation functions that `hidden_act` names."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rembert_tf")
def gelu(x):
    """Returns x times the normal distribution function of x, by `erf` (Hendrycks & Gimpel 2016).

    Written out, TensorFlow fuses it with the product and bias before it and exports it to ONNX;
    `keras.activations.gelu` becomes an op that ONNX lacks.
    """
    return 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2.0)))


@keras.saving.register_keras_serializable(package="rembert_tf")
def gelu_new(x):
    """Returns the tanh approximation of `gelu`, the default of BERT's own code."""
    return 0.5 * x * (1.0 + ops.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


_ACTIVATIONS = {"gelu": gelu, "gelu_new": gelu_new}


def get(name: str):
    """Returns the activation function of that name.

    Raises:
        ValueError: If there is none.
    """
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"`hidden_act` must be one of {sorted(_ACTIVATIONS)}. Received: hidden_act={name!r}"
        )
    return _ACTIVATIONS[name]
