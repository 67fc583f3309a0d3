"""Opens what the TensorFlow classes of Hugging Face transformers 4 saved.

They wrote `tf_model.h5` by default and `model.safetensors` on request, both also in shards with an
index. The name of a tensor is the path of its TensorFlow variable,
`rembert/encoder/layer_._0/output/dense/kernel:0`; the h5 file says the layer and the model before
it. Kernels are [inputs, outputs], as ours are. transformers' PyTorch classes write
`model.safetensors` too, so only the names inside tell the two apart: its metadata
(`{"format": "tf"}`) is lost or wrong in files that went through another tool.
"""

import contextlib
import functools
import os
import re

import h5py
import numpy as np

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.hugging_face_weights import FileTensor, open_weights, read_index
from rembert_tf.checkpoints.safetensors_file import list_tensors
from rembert_tf.checkpoints.stored_weights import StoredWeights

# The layers of a model, and the last part of a variable's name, with their names in PyTorch.
_LAYERS = {
    "rembert": "rembert",
    "mlm___cls": "cls",
    "classifier": "classifier",
    "qa_outputs": "qa_outputs",
}
_ENDS = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}
# Holds a second copy of the tables that `resize_token_embeddings` made.
_COPIES = "top_level_model_weights/"
_KERAS_PATH = re.compile(r"(^|/)vars/\d+$")


def open_tensorflow_h5(path: str | os.PathLike) -> StoredWeights:
    """Opens `tf_model.h5`, or the index of its shards.

    Args:
        path: The file, or the `.index.json` beside its shards.

    Raises:
        FileNotFoundError: If it, or a shard of it, is missing.
        ValueError: If it is damaged or no file of weights, does not fit its index, holds two
            tensors for one variable, or is what Keras' `save_weights` wrote.
    """
    weights = open_weights(path, _list_h5_tensors, _find)
    if not weights.tensors and any(map(_KERAS_PATH.search, weights.unknown)):
        raise ValueError(
            f"{weights.path}: written by Keras' `save_weights`, which numbers variables and does "
            "not name them. Make the model from its configuration, call "
            "`model.load_weights(path)`, then `model.save_pretrained(folder)`"
        )
    return weights


def open_tensorflow_safetensors(path: str | os.PathLike) -> StoredWeights:
    """Opens `model.safetensors` with the names of TensorFlow variables, or the index of its shards.

    Args:
        path: The file, or the `.index.json` beside its shards.

    Raises:
        FileNotFoundError: If it, or a shard of it, is missing.
        ValueError: If it is damaged or no safetensors file, does not fit its index, or holds two
            tensors for one variable.
    """
    return open_weights(path, list_tensors, _find)


def is_tensorflow_safetensors(path: str | os.PathLike) -> bool:
    """Says whether the tensors of a safetensors file have the names of TensorFlow variables.

    Args:
        path: The file, or the `.index.json` beside its shards.

    Raises:
        FileNotFoundError: If it is missing.
        ValueError: If it is damaged or no safetensors file.
    """
    if os.fspath(path).endswith(".index.json"):
        return any("/" in key for keys in read_index(path).values() for key in keys)
    return any("/" in key for key in list_tensors(path))


def _find(key):
    """Returns the path of our variable and False, or None: `.../layer_._0/output/dense/kernel:0` is a name."""
    levels = key.removesuffix(":0").split("/")
    starts = [n for n, level in enumerate(levels) if level in _LAYERS]
    if not starts:
        return None
    layer, *inner, end = levels[starts[-1] :]
    pytorch_name = ".".join([_LAYERS[layer], *inner, _ENDS.get(end, end)]).replace("_._", ".")
    try:
        return names.by_hugging_face_key(pytorch_name).ours, False
    except KeyError:
        return None


def _list_h5_tensors(path):
    tensors = {}

    def visit(key, item):
        if isinstance(item, h5py.Dataset) and not key.startswith(_COPIES):
            read = functools.partial(_read_h5, path, key)
            tensors[key] = FileTensor(tuple(item.shape), str(item.dtype), read)

    with _opened_h5(path) as file:
        file.visititems(visit)
    return tensors


def _read_h5(path, key) -> np.ndarray:
    with _opened_h5(path) as file:
        return file[key][()]


@contextlib.contextmanager
def _opened_h5(path):
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"{path}: damaged, half written, or no file of weights ({error})"
        ) from None
