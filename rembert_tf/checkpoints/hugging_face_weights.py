"""What the weight files of Hugging Face's models share, whatever wrote them.

A checkpoint is one file, or several ("shards") beside an index that says which file holds which
tensor. Either way it becomes one `StoredWeights`.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights

_INDEX_END = ".index.json"
# An encoder that transformers saved alone has keys without this prefix.
_PREFIX = "rembert."
_HEADS = ("cls.", "classifier.", "qa_outputs.")
# Constants that old files carry.
_BUFFERS = ("embeddings.position_ids",)
_FLOATS = ("float32", "bfloat16", "float16", "float64")


@dataclasses.dataclass(frozen=True)
class FileTensor:
    """One tensor of a file, as Hugging Face has it.

    Attributes:
        shape: Its shape.
        dtype: Name of its type, numpy's if numpy has it.
        read: Reads it.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], np.ndarray]


def find_pytorch_tensor(key: str) -> tuple[str, bool] | None:
    """Looks up a key of Hugging Face's PyTorch models.

    Returns:
        The path of our variable, and whether the tensor is its transpose; None if there is none.
    """
    full_key = key if key.startswith((_PREFIX, *_HEADS)) else _PREFIX + key
    try:
        row = names.by_hugging_face_key(full_key)
    except KeyError:
        return None
    return row.ours, row.hugging_face_transposed


def open_weights(
    path: str | os.PathLike,
    list_tensors: Callable[[str], Mapping[str, FileTensor]],
    find: Callable[[str], tuple[str, bool] | None] = find_pytorch_tensor,
) -> StoredWeights:
    """Opens a checkpoint.

    Args:
        path: The file, or the `.index.json` of several.
        list_tensors: Lists the tensors of one file by their keys.
        find: Looks up a key, as `find_pytorch_tensor` does.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the index is damaged or names what is not there, two tensors are of one
            variable, or one is of a type that is no plain floating-point number.
    """
    path = os.fspath(path)
    tensors, unknown = {}, {}
    for key, tensor in _tensors(path, list_tensors):
        found = find(key)
        if found is None:
            if not key.endswith(_BUFFERS):
                unknown[key] = tensor.shape
            continue
        variable, transposed = found
        if variable in tensors:
            raise ValueError(
                f"{path}: holds two tensors for {variable}: {tensors[variable].key} and {key}. "
                "Save the model you want alone, with its `save_pretrained`"
            )
        if tensor.dtype not in _FLOATS:
            raise ValueError(
                f"{path}: {key} is stored as {tensor.dtype}, and only {', '.join(_FLOATS)} can be "
                "read: take the model as it was before it was quantized"
            )
        tensors[variable] = StoredTensor(
            key=key,
            shape=tensor.shape[::-1] if transposed else tensor.shape,
            read=functools.partial(_read_transposed, tensor.read) if transposed else tensor.read,
        )
    return StoredWeights(path, tensors, unknown)


def _read_transposed(read):
    return read().T


def _tensors(path, list_tensors) -> Iterator[tuple[str, FileTensor]]:
    """Yields the keys and tensors of a file, or of all shards of an index."""
    if not path.endswith(_INDEX_END):
        yield from list_tensors(path).items()
        return
    shards = read_index(path)
    missing = [name for name in shards if not os.path.exists(_beside(path, name))]
    if missing:
        raise FileNotFoundError(
            f"{path}: {len(missing)} of its {len(shards)} files are missing: "
            f"{', '.join(missing[:8])}. Copy or download them to the same folder"
        )
    for name, keys in shards.items():
        present = list_tensors(_beside(path, name))
        # transformers' TensorFlow classes wrote the model's name before the keys of the index alone.
        keys = [key if key in present else key.partition("/")[2] or key for key in keys]
        lacking = [key for key in keys if key not in present]
        if lacking:
            raise ValueError(
                f"{path}: names {len(lacking)} tensors that {name} does not hold: "
                f"{', '.join(lacking[:4])}. Index and files are not of one checkpoint"
            )
        yield from ((key, present[key]) for key in keys)


def read_index(path) -> dict[str, list[str]]:
    """Returns the keys that each file holds, by the name of the file.

    Args:
        path: An index of shards.

    Raises:
        ValueError: If it is damaged, or names anything but files beside it.
    """
    with open(path, encoding="utf-8") as file:
        try:
            files = json.load(file)["weight_map"]
            shards = {}
            for key, name in files.items():
                shards.setdefault(name, []).append(key)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f'{path}: damaged: expected {{"weight_map": {{"name of a tensor": "file"}}}}'
            ) from None
    for name in shards:
        if not isinstance(name, str) or name in ("", ".", "..") or os.path.basename(name) != name:
            raise ValueError(f"{path}: names {name!r}, which is no file in the same folder")
    return shards


def _beside(path, name):
    return os.path.join(os.path.dirname(path), name)
