"""Makes a model and fills it from stored weights, whatever file they come from."""

import functools

import keras
from absl import logging

from rembert_tf.checkpoints.load_report import LoadReport
from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

_PROJECTION = ("rembert/input_projection/kernel", "rembert/input_projection/bias")
_OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
_OUTPUT_BIAS = "masked_lm_head/output_embedding/bias"


def variables_by_path(model) -> dict[str, keras.Variable]:
    """Returns the weights of a model by the paths of the names table.

    They are `variable.path`, except where a user named a model or built it inside another one.
    """
    parts = [model] if isinstance(model, RemBertEncoder) else model.layers
    return {
        ("rembert" if isinstance(part, RemBertEncoder) else part.name)
        + variable.path.removeprefix(part.path): variable
        for part in parts
        for variable in part.weights
    }


def model_from_weights(
    weights: StoredWeights,
    config: RemBertConfig,
    model_class: type[keras.Model],
    *,
    strict: bool = False,
    dtype: str | None = None,
    new_head: bool = False,
):
    """Makes a model whose variables take their values from stored weights.

    The weights may be those of another model: what the model lacks is drawn afresh, what it has no
    use for is skipped, and the report says so.

    Args:
        weights: The weights.
        config: Architecture of the model to make.
        model_class: Its class.
        strict: Whether a variable that the weights lack is an error.
        dtype: Keras dtype policy of the model.
        new_head: Whether the classification head is made anew even if the weights have one.

    Returns:
        The model and a `LoadReport`, which is also logged.

    Raises:
        ValueError: If a tensor has another shape, no tensor is of this architecture, or, with
            `strict`, some are missing.
    """
    found, missing = {}, {}
    with keras.StatelessScope():  # Variables made in it get their values when it ends.
        model = model_class(config, dtype=dtype)
        for path, variable in variables_by_path(model).items():
            is_new = new_head and path.startswith("classifier/")
            if path in weights.tensors and not is_new:
                found[path] = variable
            else:
                missing[path] = variable
        misfit = _describe_misfit(weights, found, missing, strict)
        _fill(weights, {} if misfit else found, model.weights if misfit else ())
    if misfit:
        raise ValueError(f"{weights.path}: {misfit}")

    used = set(found)
    if config.tie_word_embeddings and _OUTPUT_BIAS in found:
        used.add(_OUTPUT_TABLE)
    if not config.input_projection:
        used.update(_PROJECTION)
    skipped = [tensor.key for path, tensor in weights.tensors.items() if path not in used]
    report = LoadReport(
        file=weights.path,
        loaded=tuple(found),
        skipped=(*skipped, *weights.unknown),
        newly_made=tuple((path, tuple(variable.shape)) for path, variable in missing.items()),
        notes=weights.notes,
    )
    (logging.warning if missing else logging.info)("%s", report)
    model.newly_made = tuple(missing)
    return model, report


def _fill(weights, found, others):
    """Makes waiting variables take their values from the weights, the `others` zeros.

    So no random values are drawn only to be overwritten, and no tensor is held twice: for the
    published encoder that is the difference between seconds and half a minute, and between one
    and two times its memory. Keras has no public way; `_initializer` is what it calls at the end.
    """
    for path, variable in found.items():
        variable._initializer = functools.partial(_read, weights, path)
    for variable in others:
        variable._initializer = keras.initializers.Zeros()


def _read(weights, variable_path, shape, dtype):
    return keras.ops.convert_to_tensor(weights.read(variable_path), dtype=dtype)


def _describe_misfit(weights, found, missing, strict):
    """Returns what is wrong between weights and model, or None."""
    if not found:
        keys = [tensor.key for tensor in weights.tensors.values()] or list(weights.unknown)
        return f"no tensor of this architecture. Found: {', '.join(keys[:4]) or 'no tensors'}"
    wrong = [
        f"{weights.tensors[path].key} gives {list(weights.shape(path))}, the configuration asks "
        f"for {path} {list(variable.shape)}"
        for path, variable in found.items()
        if weights.shape(path) != tuple(variable.shape)
    ]
    if wrong:
        rest = f"; and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        return f"wrong shapes: {'; '.join(wrong[:8])}{rest}"
    if strict and missing:
        return (
            f"`strict` asks for every variable, and {len(missing)} are missing: "
            f"{', '.join(list(missing)[:8])}"
        )
    return None
