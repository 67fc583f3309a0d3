"""Layer-wise learning-rate decay: what lies deeper learns slower in fine-tuning."""

import keras
from absl import logging


def layer_rate_factors(model: keras.Model, decay: float) -> list[float]:
    """Returns the factor of the learning rate of each trainable variable of `model`, in their order.

    With L Transformer layers it is `decay ** (L - n)` in layer n (counted from 0), `decay ** (L + 1)` in the embeddings
    and their projection, and 1 in the pooler and the head. Discriminative fine-tuning is Howard & Ruder's (2018); a
    power for each step of depth is ELECTRA's (Clark et al. 2020), whose code has one more power below the head. The
    factors go to the log.

    Args:
        model: a model with our encoder in its attribute `encoder`.
        decay: factor from one layer to the one below it.

    Raises:
        ValueError: `model` has no encoder of ours.
    """
    encoder = getattr(model, "encoder", None)
    if encoder is None:
        raise ValueError(
            "`layer_decay` needs a model with an `encoder`. "
            f"Received: layer_decay={decay}, a {type(model).__name__}"
        )
    layers = encoder.transformer_layers
    depths = {encoder.embeddings: len(layers) + 1}
    if encoder.input_projection is not None:
        depths[encoder.input_projection] = len(layers) + 1
    depths.update({layer: len(layers) - number for number, layer in enumerate(layers)})
    logging.info("learning rates: head 1, %s",
                 ", ".join(f"{part.name} {decay**depth:.3g}" for part, depth in depths.items()))  # fmt: skip
    factors = {
        id(variable): decay**depth for part, depth in depths.items() for variable in part.weights
    }
    return [factors.get(id(variable), 1.0) for variable in model.trainable_variables]
