"""Reads and writes safetensors files with the keys of Hugging Face's PyTorch models."""

import functools
import os

import ml_dtypes  # noqa: F401  (numpy learns bfloat16 by it)
import numpy as np
import safetensors.numpy

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.hugging_face_weights import FileTensor, open_weights
from rembert_tf.checkpoints.model_from_weights import check_names, values_by_path
from rembert_tf.checkpoints.stand_ins import add_stand_ins
from rembert_tf.checkpoints.stored_weights import StoredWeights

DTYPES = ("float32", "bfloat16", "float16")
# Under this key of a file's metadata stand the variables that were random when they were saved.
_UNTRAINED = "untrained"
_NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}


def open_safetensors(path: str | os.PathLike) -> StoredWeights:
    """Opens `model.safetensors`, or the `model.safetensors.index.json` of several files.

    A file is opened anew for every tensor: pages of an open file stay in memory, and the file is
    as large as the model.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If it, or a file that the index names, is missing.
        ValueError: If it is damaged or no safetensors file, or does not fit its index.
    """
    return open_weights(path, list_tensors).replace(untrained=_read_untrained(path))


def _read_untrained(path):
    if os.fspath(path).endswith(".json"):  # an index: nothing of ours
        return ()
    with safetensors.safe_open(path, framework="np") as file:
        paths = (file.metadata() or {}).get(_UNTRAINED, "")
    return tuple(paths.split())


def list_tensors(path: str | os.PathLike) -> dict[str, FileTensor]:
    """Lists the tensors of one file by their keys.

    Raises:
        FileNotFoundError: If it is missing.
        ValueError: If it is damaged or no safetensors file.
    """
    try:
        with safetensors.safe_open(path, framework="np") as file:
            slices = {key: file.get_slice(key) for key in file.keys()}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path}: damaged, half written, or no safetensors file ({error})"
        ) from None
    return {
        key: FileTensor(
            shape=tuple(part.get_shape()),
            dtype=_NAMES.get(part.get_dtype(), part.get_dtype()),
            read=functools.partial(_read, path, key),
        )
        for key, part in slices.items()
    }


def _read(path, key) -> np.ndarray:
    with safetensors.safe_open(path, framework="np") as file:
        return file.get_tensor(key)


def write_safetensors(model, path: str | os.PathLike, dtype: str | None = None) -> None:
    """Writes the weights of a model under Hugging Face's keys.

    Args:
        model: One of our models.
        path: The file.
        dtype: Type of the tensors, one of `DTYPES`; default: that of the variables. Values are
            rounded to the nearest, ties to even.

    Raises:
        safetensors.SafetensorError: If the file cannot be written, the disk being full or the like.
        ValueError: If a value is too large for `dtype`, there is no such type, or a subclass of
            the user's has a variable without a name there.
    """
    check_dtype(dtype)
    check_names(model)
    arrays = {
        variable_path: _in_dtype(value, dtype, variable_path)
        for variable_path, value in values_by_path(model)
    }
    arrays = add_stand_ins(arrays, model.config)
    tensors = {}
    for variable_path in list(arrays):
        array, tensor_names = arrays.pop(variable_path), names.by_variable_path(variable_path)
        if tensor_names.hugging_face_transposed:
            array = np.ascontiguousarray(array.T)
        tensors[tensor_names.hugging_face] = array
    metadata = {"format": "pt"}
    if model.newly_made:
        metadata[_UNTRAINED] = " ".join(model.newly_made)
    safetensors.numpy.save_file(tensors, path, metadata=metadata)


def check_dtype(dtype: str | None) -> None:
    """Raises `ValueError` unless weights can be written in this type."""
    if dtype is not None and dtype not in DTYPES:
        raise ValueError(
            f"`dtype` must be one of {', '.join(DTYPES)}, or None. Received: dtype={dtype!r}"
        )


def _in_dtype(array, dtype, variable_path):
    if dtype is None or array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):
        cast = array.astype(dtype)
    overflows = np.isinf(cast)
    if np.any(overflows):
        lost = [value for value in array[overflows] if np.isfinite(value)]
        if lost:
            raise ValueError(
                f"`dtype` must hold every value, and {variable_path} has {lost[0]:g}. "
                f"Received: dtype={dtype!r}"
            )
    return cast
