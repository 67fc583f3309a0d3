"""How large an export becomes: said before anything is written."""

import os
import pathlib
import shutil

import keras
import numpy as np

from rembert_tf.pipelines.tokenization import RemBertTokenizer

# Protocol Buffers, in which a graph and an ONNX model are written, end at 2 GiB.
LARGEST_PROTOBUF = 2**31 - 1
# What a graph takes beside weights and vocabulary, and Protocol Buffers' names.
_GRAPH = 10_000_000


def weight_bytes(model: keras.Model) -> int:
    """Returns the bytes of all weights of a model, each counted once."""
    return sum(
        int(np.prod(variable.shape)) * np.dtype(_size_type(variable)).itemsize
        for variable in model.weights
    )


def _size_type(variable: keras.Variable) -> str:
    return "float16" if variable.dtype == "bfloat16" else variable.dtype  # NumPy lacks bfloat16


def estimate(model: keras.Model, tokenizer: RemBertTokenizer) -> int:
    """Returns about how many bytes both folders take: two times the weights, the vocabulary in graph and assets."""
    return 2 * weight_bytes(model) + 5 * len(tokenizer.model_bytes) + _GRAPH


def check_room(folder: pathlib.Path, needed: int) -> None:
    """Raises `OSError` if the disk under a folder, which need not exist, has less room than `needed` bytes."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise OSError(
            f"{folder}: the export takes about {readable(needed)}, and the disk has {readable(free)} left."
        )


def on_disk(folder: str | os.PathLike) -> int:
    """Returns the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())


def readable(size: int) -> str:
    """Writes a number of bytes with its unit.

    Example:
        >>> readable(1_674_000_000), readable(61_234)
        ('1.67 GB', '0.06 MB')
    """
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.2f} MB"
