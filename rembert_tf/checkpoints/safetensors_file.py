"""Opens a safetensors file with the keys of Hugging Face's PyTorch models."""

import functools

import numpy as np
import safetensors

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights

# An encoder that transformers saved alone has keys without this prefix.
_PREFIX = "rembert."
_HEADS = ("cls.", "classifier.", "qa_outputs.")
# Constants that old files carry.
_BUFFERS = ("embeddings.position_ids",)


def open_safetensors(path: str) -> StoredWeights:
    """Opens a file.

    The file is opened anew for every tensor: pages of an open file stay in memory, and the file is
    as large as the model.

    Args:
        path: The file.

    Raises:
        ValueError: If it is damaged or no safetensors file.
    """
    try:
        with safetensors.safe_open(path, framework="np") as file:
            shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path}: damaged, half written, or no safetensors file ({error})"
        ) from None
    tensors, unknown = {}, []
    for key, shape in shapes.items():
        full_key = key if key.startswith((_PREFIX, *_HEADS)) else _PREFIX + key
        if full_key.endswith(_BUFFERS):
            continue
        try:
            tensor_names = names.by_hugging_face_key(full_key)
        except KeyError:
            unknown.append(key)
            continue
        transposed = tensor_names.hugging_face_transposed
        tensors[tensor_names.ours] = StoredTensor(
            key=key,
            shape=shape[::-1] if transposed else shape,
            read=functools.partial(_read, path, key, transposed),
        )
    return StoredWeights(path, tensors, tuple(unknown))


def _read(path, key, transposed) -> np.ndarray:
    with safetensors.safe_open(path, framework="np") as file:
        array = file.get_tensor(key)
    return array.T if transposed else array
