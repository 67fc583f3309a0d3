"""Reads `pytorch_model.bin`: PyTorch's pickles, with the keys of Hugging Face's models.

A pickle may hold any program. torch unpickles with `weights_only`: tensors and containers, nothing
that is run.
"""

import functools
import os
import pickle

import ml_dtypes
import numpy as np

from rembert_tf.checkpoints.hugging_face_weights import FileTensor, open_weights
from rembert_tf.checkpoints.stored_weights import StoredWeights

# Pages of a mapped file stay in memory. Mapping it anew costs some tenths of a second, so it is
# done now and then, not for every tensor.
_MAPPED_BYTES = 2**29


def open_pytorch(path: str | os.PathLike) -> StoredWeights:
    """Opens `pytorch_model.bin`, or the `pytorch_model.bin.index.json` of several files.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: If it, or a file that the index names, is missing.
        ImportError: If torch is not installed.
        ValueError: If it is damaged, holds anything but tensors, or does not fit its index.
    """
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError(
            f"{os.fspath(path)}: PyTorch is needed to read it: `pip install torch`; or turn it into "
            "model.safetensors where transformers is installed, with `from_pretrained` and "
            "`save_pretrained`"
        ) from None
    return open_weights(path, lambda file: _PyTorchFile(file).list_tensors())


class _PyTorchFile:
    """One file, mapped into memory where it can be."""

    def __init__(self, path):
        self._path = path
        self._load()

    def list_tensors(self):
        return {
            key: FileTensor(
                shape=tuple(tensor.shape),
                dtype=str(tensor.dtype).removeprefix("torch."),
                read=functools.partial(self._read, key),
            )
            for key, tensor in self._tensors.items()
        }

    def _read(self, key) -> np.ndarray:
        if self._is_mapped and self._bytes_read > _MAPPED_BYTES:
            self._tensors = None  # first, so that no two mappings exist
            self._load()
        tensor = self._tensors[key].detach()
        self._bytes_read += tensor.numel() * tensor.element_size()
        return _to_numpy(tensor)

    def _load(self):
        self._bytes_read = 0
        try:
            try:
                content, self._is_mapped = _unpickle(self._path, mmap=True), True
            except RuntimeError:  # PyTorch before 1.6 wrote a form that cannot be mapped
                content, self._is_mapped = _unpickle(self._path), False
        except pickle.UnpicklingError as error:
            raise ValueError(
                f"{self._path}: refused, since it holds more than tensors, or is no file of "
                f"PyTorch ({_telling_line(error)}): unpickling could run any program in it"
            ) from None
        except Exception as error:  # of many classes
            if getattr(error, "filename", None):  # the system's own: missing, no permission
                raise
            raise ValueError(
                f"{self._path}: damaged or half written ({_telling_line(error)})"
            ) from None
        if not isinstance(content, dict) or not all(map(_is_tensor, content.values())):
            raise ValueError(
                f"{self._path}: expected tensors by name, as `state_dict()` gives them"
            )
        self._tensors = content


def _unpickle(path, **how):
    import torch

    return torch.load(path, map_location="cpu", weights_only=True, **how)


def _is_tensor(value):
    import torch

    return torch.is_tensor(value)


def _to_numpy(tensor) -> np.ndarray:
    import torch

    if tensor.dtype == torch.bfloat16:  # numpy has none of its own
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _telling_line(error):
    """Returns the part of one of torch's long messages that says what was wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "unsupported" in line.lower()]
    return (telling or lines or [type(error).__name__])[0]
