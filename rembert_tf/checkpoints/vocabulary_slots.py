"""The slots of an optimizer, under another vocabulary."""

from rembert_tf.checkpoints.model_from_weights import to_tensor
from rembert_tf.checkpoints.vocabulary_rows import changed_shape, changed_values
from rembert_tf.pipelines.piece_matching import PieceMatch


def change_optimizer(optimizer, counterparts, axes, match: PieceMatch):
    """Returns an optimizer of the new variables that goes on where the old one is.

    Args:
        optimizer: The old one; it may be a `LossScaleOptimizer`.
        counterparts: The new variables, by the ids of the old ones.
        axes: The axes for the pieces of the old variables, None if they have none, by their ids.
        match: Which rows are kept.

    Raises:
        ValueError: If it was not built on the old variables, or has slots of other shapes.
    """
    variables = optimizer._trainable_variables
    if not optimizer.built or any(id(variable) not in counterparts for variable in variables):
        raise ValueError(
            "`optimizer` must be the one that is built on the variables of `model`. Received: "
            f"a {type(optimizer).__name__} of {len(variables)} other variables"
        )
    changed = type(optimizer).from_config(optimizer.get_config())
    slot_axes, averages = {}, set()
    for old, new in zip(_with_inner(optimizer), _with_inner(changed), strict=True):
        slot_axes |= _slot_axes(old, variables, axes)
        averages |= {id(slot) for slot in getattr(old, "_model_variables_moving_average", ())}
        undecayed = [v for v in variables if not old._use_weight_decay(v)]
        new.exclude_from_weight_decay(var_list=[counterparts[id(v)] for v in undecayed])
    changed.build([counterparts[id(variable)] for variable in variables])
    for old, new in zip(optimizer.variables, changed.variables, strict=True):
        axis = slot_axes.get(id(old))
        is_known = id(old) in slot_axes or not len(old.shape)
        if not is_known or list(new.shape) != changed_shape(old, axis, len(match.kept)):
            raise ValueError(
                "`optimizer` must hold numbers and slots of the shape of their variables: what "
                "else changes with the vocabulary is not known. Received: a "
                f"{type(optimizer).__name__} with {old.path} {list(old.shape)}"
            )
        fresh = None if id(old) in averages else new
        new.assign(to_tensor(changed_values(old, axis, match, fresh), new.dtype))
    return changed


def _with_inner(optimizer):
    """Returns the optimizer, and the one inside it if it is a `LossScaleOptimizer`."""
    inner = getattr(optimizer, "inner_optimizer", None)
    return [optimizer] if inner is None else [optimizer, inner]


def _slot_axes(optimizer, variables, axes):
    """Returns the axis for the pieces of each slot, None if it has none, by the slot's id.

    Slots stand in lists beside the variables, whatever the optimizer calls them.
    """
    return {
        id(slot): axes[id(variable)]
        for slots in vars(optimizer).values()
        if isinstance(slots, list) and len(slots) == len(variables)
        for slot, variable in zip(slots, variables, strict=True)
        if getattr(slot, "shape", None) == variable.shape
    }
