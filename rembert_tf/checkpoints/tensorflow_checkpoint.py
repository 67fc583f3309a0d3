"""Reads TensorFlow checkpoints, and says in one readable line what is wrong with a damaged one."""

import math
import os

import numpy as np
import tensorflow as tf

# The variable of the checkpoints of TensorFlow 2 that says which object each other one belonged to.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class CheckpointReader:
    """TensorFlow's reader of one checkpoint.

    Once it has failed it is not asked again: that would end the process.

    Args:
        prefix: What the names of the checkpoint's files begin with; its `.index` exists.

    Attributes:
        shapes: The shapes of its variables, by their names.

    Raises:
        ValueError: If the index is damaged or cannot be opened.
    """

    def __init__(self, prefix: str):
        self._prefix = prefix
        self._error = None
        try:
            self._reader = tf.train.load_checkpoint(prefix)
        except tf.errors.NotFoundError:  # though the index is there
            raise ValueError(
                f"{prefix}.index: cannot be opened, since TensorFlow takes * ? [ ] in a path for a "
                "pattern: rename the folder"
            ) from None
        except (tf.errors.OpError, IndexError) as error:
            raise ValueError(
                f"{prefix}.index: damaged or half written ({_first_line(error)})"
            ) from None
        shapes = self._reader.get_variable_to_shape_map()
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}

    def check_size(self, shards: list[str]) -> None:
        """Raises `ValueError` if the data files are too small for all that the index lists."""
        dtypes = self._reader.get_variable_to_dtype_map()
        listed = sum(
            math.prod(shape) * dtypes[name].size
            for name, shape in self.shapes.items()
            if dtypes[name] != tf.string  # of no fixed size
        )
        present = sum(os.path.getsize(file) for file in shards)
        if present < listed:
            raise ValueError(
                f"{shards[0]}: half written or cut off: the index lists {listed:,} bytes of tensors, "
                f"and the {len(shards)} data file{'s have' if len(shards) > 1 else ' has'} {present:,}"
            )

    def read(self, name: str, transposed: bool = False) -> np.ndarray:
        """Reads a variable.

        Raises:
            ValueError: If it is damaged or lies in a file that is missing.
        """
        if self._error is None:
            try:
                array = self._reader.get_tensor(name)
                return array.T if transposed else array
            except (tf.errors.OpError, IndexError) as error:
                self._error = (
                    f"{self._prefix}: {name} cannot be read, it is damaged ({_first_line(error)})"
                )
        raise ValueError(self._error)


def _first_line(error):
    return str(error).partition("\n")[0]
