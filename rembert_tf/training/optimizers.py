"""The factory of optimizers: which one, its schedule, and which variable is decayed and how fast it learns."""

import re

import keras
from absl import logging

from rembert_tf.training.adamw import AdamW
from rembert_tf.training.config import OptimizerConfig
from rembert_tf.training.lamb import Lamb
from rembert_tf.training.layer_decay import layer_rate_factors
from rembert_tf.training.schedules import WarmupPolynomialDecay

OPTIMIZERS = {"adamw": AdamW, "lamb": Lamb}


def make_optimizer(
    config: OptimizerConfig, model: keras.Model, total_steps: int, *, layer_decay: float = 1.0
) -> keras.optimizers.Optimizer:
    """Returns the optimizer of `model`, with warm-up, decay, clipping and exclusions, already built.

    What is decayed and what is not goes to the log. For a model of dtype policy mixed_float16 the optimizer is wrapped
    in a `keras.optimizers.LossScaleOptimizer`, which leaves out an update whose gradients are not finite; such a step
    does not count in `iterations`, which the schedule follows.

    Args:
        config: which optimizer, learning rate, weight decay and the names of variables that are not decayed.
        model: the model that will be trained; its variables exist, and the frozen ones are not trainable.
        total_steps: updates until the learning rate reaches its end.
        layer_decay: see `rembert_tf.training.layer_decay`; 1 gives all variables one learning rate.

    Raises:
        ValueError: a name in `config.exclude_from_weight_decay` matches no variable.
    """
    variables = model.trainable_variables
    optimizer = OPTIMIZERS[config.optimizer](
        learning_rate=WarmupPolynomialDecay(
            config.learning_rate,
            config.resolved_warmup_steps(total_steps),
            total_steps,
            config.end_learning_rate,
            config.decay_power,
        ),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        global_clipnorm=config.global_clip_norm or None,
        rate_factors=None if layer_decay == 1 else layer_rate_factors(model, layer_decay),
    )
    excluded = excluded_variables(model, config.exclude_from_weight_decay)
    optimizer.exclude_from_weight_decay(var_list=excluded)
    excluded_ids = {id(variable) for variable in excluded}
    decayed = [variable for variable in variables if id(variable) not in excluded_ids]
    logging.info("%s, weight decay %g on %s", config.optimizer, config.weight_decay, _list(decayed))
    logging.info("no weight decay on %s", _list(excluded))
    if model.dtype_policy.compute_dtype == "float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(variables)
    return optimizer


def excluded_variables(model: keras.Model, names: tuple[str, ...]) -> list[keras.Variable]:
    """Returns the trainable variables whose own name (`bias`, `gamma`, ...) is one of `names`.

    Raises:
        ValueError: a name matches no variable of the model.
    """
    present = {variable.name for variable in model.weights}  # frozen ones, too
    if not present.issuperset(names):
        raise ValueError(
            "Each name in `exclude_from_weight_decay` must match a variable; the model has "
            f"{sorted(present)}. Received: exclude_from_weight_decay={list(names)}"
        )
    return [variable for variable in model.trainable_variables if variable.name in names]


def _list(variables: list[keras.Variable]) -> str:
    """Returns the paths of variables, those of all Transformer layers as one."""
    paths = dict.fromkeys(re.sub(r"\blayer_\d+/", "layer_*/", v.path) for v in variables)
    return f"{len(variables)} variables: {', '.join(paths)}"
