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
import safetensors

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.hugging_face_weights import read_index
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights

_INDEX_END = ".index.json"
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
        ValueError: If it is damaged or no file of weights, holds two tensors for one variable, or
            is what Keras' `save_weights` wrote.
    """
    weights = _open(path, _h5_shapes, _read_h5)
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
        ValueError: If it is damaged or no safetensors file, or holds two tensors for one variable.
    """
    return _open(path, _safetensors_shapes, _read_safetensors)


def is_tensorflow_safetensors(path: str | os.PathLike) -> bool:
    """Says whether the tensors of a safetensors file have the names of TensorFlow variables.

    Args:
        path: The file, or the `.index.json` beside its shards.

    Raises:
        FileNotFoundError: If it, or a shard of it, is missing.
        ValueError: If it is damaged or no safetensors file.
    """
    return any("/" in key for file in _files(path) for key in _safetensors_shapes(file))


def _open(path, shapes_of, read):
    path = os.fspath(path)
    tensors, unknown = {}, []
    for file in _files(path):
        for key, shape in shapes_of(file).items():
            variable = _variable_path(key)
            if variable is None:
                unknown.append(key)
                continue
            if variable in tensors:
                raise ValueError(
                    f"{path}: holds two tensors for {variable}: {tensors[variable].key} and {key}. "
                    "Save the model you want alone, with its `save_pretrained`"
                )
            tensors[variable] = StoredTensor(key, shape, functools.partial(read, file, key))
    return StoredWeights(path, tensors, tuple(unknown))


def _variable_path(key):
    """Returns the path of our variable, or None: `.../layer_._0/output/dense/kernel:0` is a name."""
    levels = key.removesuffix(":0").split("/")
    starts = [n for n, level in enumerate(levels) if level in _LAYERS]
    if not starts:
        return None
    layer, *inner, end = levels[starts[-1] :]
    pytorch_name = ".".join([_LAYERS[layer], *inner, _ENDS.get(end, end)]).replace("_._", ".")
    try:
        return names.by_hugging_face_key(pytorch_name).ours
    except KeyError:
        return None


def _files(path):
    """Returns the file itself, or the shards that an index names; all of them exist."""
    path = os.fspath(path)
    if not path.endswith(_INDEX_END):
        files = [path]
    else:  # it has the keys with the model's name, the shards without
        files = [os.path.join(os.path.dirname(path), name) for name in read_index(path)]
    for file in files:
        if not os.path.isfile(file):
            where = f"{path}: names a shard that is missing" if file != path else "no such file"
            raise FileNotFoundError(f"{where}: {file}")
    return files


def _h5_shapes(path):
    shapes = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and not name.startswith(_COPIES):
            shapes[name] = tuple(item.shape)

    with _naming_damage(path), h5py.File(path, "r") as file:
        file.visititems(visit)
    return shapes


def _safetensors_shapes(path):
    with _naming_damage(path), safetensors.safe_open(path, framework="np") as file:
        return {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}


def _read_h5(path, key) -> np.ndarray:
    with _naming_damage(path), h5py.File(path, "r") as file:
        return file[key][()]


def _read_safetensors(path, key) -> np.ndarray:
    with _naming_damage(path), safetensors.safe_open(path, framework="np") as file:
        return file.get_tensor(key)


@contextlib.contextmanager
def _naming_damage(path):
    """Turns what the readers raise on a damaged file into one error that names it."""
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"{path}: damaged, half written, or no file of weights ({error})"
        ) from None
