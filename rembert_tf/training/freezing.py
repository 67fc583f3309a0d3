"""What of a model fine-tuning trains: all of it, the upper part, the head, or LoRA's additions."""

import math

from absl import logging

from rembert_tf.training.config import FinetuningConfig


def freeze(model, config: FinetuningConfig) -> None:
    """Freezes the parts of `model` that `config` names, and adds LoRA's matrices if it asks for them.

    LoRA (Hu et al. 2022) is Keras' own, on the query and value kernels of every layer, as in its paper; all else in the
    encoder is frozen, and saving adds the products to the kernels. The number of trained parameters goes to the log.

    Args:
        model: a model with our encoder in its attribute `encoder`, before its optimizer is made.
        config: what to freeze.

    Raises:
        ValueError: the encoder has fewer than `config.freeze_layers` layers.
    """
    encoder = model.encoder
    layers = encoder.transformer_layers
    if config.freeze_layers > len(layers):
        raise ValueError(
            f"`freeze_layers` must not exceed the {len(layers)} layers of the encoder. "
            f"Received: freeze_layers={config.freeze_layers}"
        )
    if config.freeze_input_embedding:
        encoder.embeddings.word_embeddings.trainable = False
    if config.freeze_layers:
        below = [encoder.embeddings, *layers[: config.freeze_layers]]
        for part in [*below, encoder.input_projection] if encoder.input_projection else below:
            part.trainable = False
    if config.freeze_encoder:
        encoder.trainable = False
    if config.lora_rank:
        _train_low_rank(encoder, config.lora_rank)
    trained = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    logging.info("%s of %s parameters are trained", f"{trained:,}", f"{model.count_params():,}")


def _train_low_rank(encoder, rank):
    for variable in encoder.weights:  # not the layers: the new variables are to be trainable
        variable.trainable = False
    for layer in encoder.transformer_layers:
        layer.attention.query.enable_lora(rank)
        layer.attention.value.enable_lora(rank)
