"""Makes a model and fills it from stored weights, whatever file they come from."""

import math

import keras
import numpy as np
from absl import logging

from rembert_tf.checkpoints.load_report import LoadReport
from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

# Tensors of a CPU begin at multiples of this many bytes, or TensorFlow copies them.
_ALIGNMENT = 64


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
        if misfit:
            _give_zeros(model)
        else:
            _fill(model, weights, found)
    if misfit:
        raise ValueError(f"{weights.path}: {misfit}")

    used = {weights.tensors[path].key for path in found}
    skipped = [tensor.key for tensor in weights.tensors.values() if tensor.key not in used]
    report = LoadReport(
        file=weights.path,
        loaded=tuple(found),
        skipped=(*skipped, *weights.unknown),
        newly_made=tuple((path, tuple(variable.shape)) for path, variable in missing.items()),
        notes=weights.notes,
    )
    (logging.warning if missing else logging.info)("%s", report)
    model.newly_made = (*missing, *(path for path in weights.untrained if path in found))
    return model, report


def _fill(model, weights, found):
    """Makes waiting variables take their values from the weights.

    So no random values are drawn only to be overwritten, and only the tensor that is just read is
    held twice. The largest comes first, when the others are not there yet: the output table of the
    published size is two fifths of the model. Keras has no public way; `_initializer` is what it
    calls at the end of the scope.
    """
    try:
        for path in sorted(found, key=lambda path: -math.prod(found[path].shape)):
            value = to_tensor(weights.read(path), found[path].dtype)
            found[path]._initializer = lambda shape, dtype, value=value: value
    except BaseException:
        _give_zeros(model)
        raise


def _give_zeros(model):
    """Makes waiting variables become zeros, which is quick, before an error ends them all."""
    for variable in model.weights:
        variable._initializer = keras.initializers.Zeros()


def to_tensor(array, dtype):
    """Returns an array as a tensor of the backend.

    TensorFlow makes two copies of an array. It makes none of aligned memory that DLPack hands over.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.ops.convert_to_tensor(array.astype(dtype), dtype)
    import tensorflow as tf

    dtype = np.dtype(dtype)
    memory = np.empty(array.size * dtype.itemsize + _ALIGNMENT, "uint8")
    start = -memory.ctypes.data % _ALIGNMENT
    aligned = memory[start : start + array.size * dtype.itemsize].view(dtype).reshape(array.shape)
    aligned[...] = array
    bits = aligned.view(f"uint{8 * dtype.itemsize}")  # DLPack of numpy knows no bfloat16
    return tf.bitcast(tf.experimental.dlpack.from_dlpack(bits.__dlpack__()), dtype)


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
