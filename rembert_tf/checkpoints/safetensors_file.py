"""Reads a safetensors file tensor by tensor, under the keys of Hugging Face's headed models."""

import numpy as np
import safetensors

# An encoder that transformers saved alone has keys without this prefix.
_PREFIX = "rembert."
_HEADS = ("cls.", "classifier.", "qa_outputs.")
# Constants that old files carry.
_BUFFERS = ("embeddings.position_ids",)


class SafetensorsFile:
    """The tensors of one file.

    The file is opened anew for every tensor: pages of an open file stay in memory, and the file is
    as large as the model.

    Args:
        path: The file.

    Raises:
        ValueError: If it is damaged or no safetensors file.
    """

    def __init__(self, path):
        self.path = path
        try:
            with safetensors.safe_open(path, framework="np") as file:
                shapes = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}
        except safetensors.SafetensorError as error:
            raise ValueError(
                f"{path}: damaged, half written, or no safetensors file ({error})"
            ) from None
        self._file_keys = {}
        self.shapes = {}
        for key, shape in shapes.items():
            full_key = key if key.startswith((_PREFIX, *_HEADS)) else _PREFIX + key
            if not full_key.endswith(_BUFFERS):
                self._file_keys[full_key] = key
                self.shapes[full_key] = shape

    def __contains__(self, key):
        return key in self.shapes

    def read(self, key) -> np.ndarray:
        """Returns the tensor of that key."""
        with safetensors.safe_open(self.path, framework="np") as file:
            return file.get_tensor(self._file_keys[key])
