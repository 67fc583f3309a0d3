"""Weights as some file holds them, in our names and shapes, read one tensor at a time.

Each layout has a module that opens its files and returns `StoredWeights`; whoever fills a model
from them need not know which layout it was.
"""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file, as our variable would have it.

    Attributes:
        key: Its name in the file.
        shape: Shape of our variable, transposition undone.
        read: Reads it: an array of that shape, in the file's dtype.
    """

    key: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]


@dataclasses.dataclass(frozen=True)
class StoredWeights:
    """All tensors of a file.

    Attributes:
        path: The file, for messages.
        tensors: The tensors by the path of our variable (`checkpoints/names.py`).
        unknown: Shapes of the tensors that belong to no variable of ours, by their names in the file.
        notes: What a reader should know, a sentence each.
        untrained: Paths of variables that were random when they were saved.
        left_out: Shapes of tensors whose variable another one took, by their names in the file.
    """

    path: str
    tensors: Mapping[str, StoredTensor]
    unknown: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    untrained: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)

    def shape(self, variable_path: str) -> tuple[int, ...] | None:
        """Returns the shape of a variable, or None if the file lacks it."""
        tensor = self.tensors.get(variable_path)
        return tensor.shape if tensor else None

    def read(self, variable_path: str) -> np.ndarray:
        """Reads the tensor of a variable."""
        return self.tensors[variable_path].read()

    def replace(self, **changes) -> "StoredWeights":
        """Returns a copy with some attributes changed."""
        return dataclasses.replace(self, **changes)
