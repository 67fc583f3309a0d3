"""How fresh weights are drawn."""

import keras


def truncated_normal(initializer_range: float) -> keras.initializers.Initializer:
    """Returns a new initializer: normal, cut at two standard deviations, as in BERT's own code.

    Each call returns an object with a seed of its own: a Keras initializer that is used twice
    draws the same numbers twice.
    """
    return keras.initializers.TruncatedNormal(stddev=initializer_range)
