"""Makes a model and fills it from stored weights, whatever file they come from."""

import math
from collections.abc import Iterator

import keras
import numpy as np
from absl import logging

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.load_report import LoadReport
from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

# Tensors of a CPU begin at multiples of this many bytes, or TensorFlow copies them.
_ALIGNMENT = 64


def variables_by_path(model) -> dict[str, keras.Variable]:
    """Returns the weights of a model by the paths of the names table.

    They are `variable.path`, except where a user named a model or built it inside another one. The
    matrices that LoRA adds have no name of their own: `values_by_path` merges them.
    """
    parts = [model] if isinstance(model, RemBertEncoder) else model.layers
    return {
        ("rembert" if isinstance(part, RemBertEncoder) else part.name)
        + variable.path.removeprefix(part.path): variable
        for part in parts
        for variable in part.weights
        if not variable.name.startswith("lora_kernel_")
    }


def check_names(model) -> None:
    """Raises `ValueError` if a variable has no name in the files that others read."""
    for path in variables_by_path(model):
        if not names.is_variable_path(path):
            raise ValueError(
                f"{type(model).__name__} has {path}, for which the published form has no name. Write "
                "`model.encoder`, which leaves the head out; `model.save` (.keras) writes all"
            )


def values_by_path(model) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the path and the value of each weight as it is published: kernels with LoRA's product.

    The model stays as it is, so that its training can go on.
    """
    low_rank = low_rank_layers(model)
    for path, variable in variables_by_path(model).items():
        yield path, published_value(variable, low_rank)


def published_value(variable: keras.Variable, low_rank: dict[int, keras.layers.Layer]):
    """Returns the value of one weight; `low_rank` is what `low_rank_layers` gives."""
    value = variable.numpy()
    if id(variable) in low_rank:
        layer = low_rank[id(variable)]
        product = layer.lora_kernel_a.numpy() @ layer.lora_kernel_b.numpy()
        value = value + (layer.lora_alpha / layer.lora_rank * product).astype(value.dtype)
    return value


def low_rank_layers(model) -> dict[int, keras.layers.Layer]:
    """Returns the layers to which LoRA was added, by the ids of their kernels."""
    return {
        id(variable): layer
        for layer in model._flatten_layers()
        if getattr(layer, "lora_enabled", False)
        for variable in layer.weights
        if variable.name == "kernel"
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
        strict: Whether a variable is an error that the weights lack, or hold untrained.
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
        untrained = [path for path in weights.untrained if path in found]
        misfit = _describe_misfit(weights, found, [*missing, *untrained] if strict else [])
        if misfit:
            _leave_empty(model)
        else:
            _fill(model, weights, found)
    if misfit:
        raise ValueError(f"{weights.path}: {misfit}")

    used = {weights.tensors[path].key for path in found}
    skipped = {tensor.key: tensor.shape for tensor in weights.tensors.values()}
    skipped = {key: shape for key, shape in skipped.items() if key not in used}
    report = LoadReport(
        file=weights.path,
        loaded=tuple((path, weights.shape(path)) for path in found),
        skipped=tuple({**skipped, **weights.left_out, **weights.unknown}.items()),
        newly_made=tuple((path, tuple(variable.shape)) for path, variable in missing.items()),
        untrained=tuple(untrained),
        notes=weights.notes,
    )
    is_loud = missing or untrained or weights.unknown
    (logging.warning if is_loud else logging.info)("%s", report)
    model.newly_made = (*missing, *untrained)
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
        _leave_empty(model)
        raise


def _leave_empty(model):
    """Makes waiting variables take no memory, before an error ends them all.

    They may be larger than the machine: a configuration can say anything.
    """
    for variable in model.weights:
        variable._initializer = lambda shape, dtype: keras.ops.zeros([0], dtype)


def to_tensor(array, dtype):
    """Returns an array as a tensor of the backend.

    TensorFlow makes two copies of an array. It makes none of aligned memory that DLPack hands over,
    and it transposes several times faster than NumPy copies a transposed kernel.
    """
    if keras.backend.backend() != "tensorflow":
        return keras.ops.convert_to_tensor(array.astype(dtype), dtype)
    import tensorflow as tf

    transposed = array.ndim == 2 and not array.flags.c_contiguous
    aligned = _aligned_copy(array.T if transposed else array, np.dtype(dtype))
    bits = aligned.view(f"uint{8 * aligned.dtype.itemsize}")  # DLPack of numpy knows no bfloat16
    tensor = tf.experimental.dlpack.from_dlpack(bits.__dlpack__())
    return tf.bitcast(tf.transpose(tensor) if transposed else tensor, dtype)


def _aligned_copy(array, dtype):
    memory = np.empty(array.size * dtype.itemsize + _ALIGNMENT, "uint8")
    start = -memory.ctypes.data % _ALIGNMENT
    aligned = memory[start : start + array.size * dtype.itemsize].view(dtype).reshape(array.shape)
    aligned[...] = array
    return aligned


def _describe_misfit(weights, found, wanted):
    """Returns what is wrong between weights and model, or None; `wanted` are variables not to do without."""
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
    if wanted:
        untrained = [path for path in wanted if path in found]
        how = f" ({len(untrained)} as saved before they were trained)" if untrained else ""
        return (
            f"`strict` asks for every variable, and {len(wanted)} are missing{how}: "
            f"{', '.join(wanted[:8])}"
        )
    return None
