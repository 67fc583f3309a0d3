"""The variables of a TensorFlow 2 checkpoint, found by the attributes of the objects they belonged to."""

import os

import numpy as np
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from rembert_tf.checkpoints.layouts import checkpoint_prefix
from rembert_tf.checkpoints.tensorflow_checkpoint import OBJECT_GRAPH, CheckpointReader

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class ObjectGraph:
    """A checkpoint that `tf.train.Checkpoint` wrote.

    Beside the variables it holds a graph: a node for each object, and the attributes that lead from
    one object to the next. Nodes are numbers; variables have keys.

    Args:
        path: Prefix of the checkpoint, or a folder that holds it.

    Raises:
        FileNotFoundError: If there is no checkpoint, or not one alone.
        ValueError: If it is damaged, or of TensorFlow 1, whose checkpoints have no such graph.
    """

    def __init__(self, path: str | os.PathLike):
        path = os.fspath(path)
        self.prefix = checkpoint_prefix(path)
        if self.prefix is None:
            raise FileNotFoundError(
                f"{path}: no checkpoint is found. Give its prefix, which is the name of its .index "
                "file without that ending, or a folder that holds a single one"
            )
        self._reader = CheckpointReader(self.prefix)
        if OBJECT_GRAPH not in self._reader.shapes:
            raise ValueError(
                f"{self.prefix}: a TensorFlow 1 checkpoint, which `tf.train.Checkpoint` did not write"
            )
        graph = TrackableObjectGraph.FromString(self._reader.read(OBJECT_GRAPH))
        self._children = [{c.local_name: c.node_id for c in node.children} for node in graph.nodes]
        self._keys = [
            next((value.checkpoint_key for value in node.attributes), None) for node in graph.nodes
        ]

    def variables(self) -> set[str]:
        """Returns the keys of all variables, optimizer slots included."""
        return self._reader.shapes.keys() - {OBJECT_GRAPH}

    def children(self, node: int) -> dict[str, int]:
        """Returns the objects that attributes of an object lead to."""
        return self._children[node]

    def find(self, attributes: set[str]) -> list[int]:
        """Returns the objects that have all these attributes."""
        return [node for node, names in enumerate(self._children) if attributes <= names.keys()]

    def variable(self, node: int, attributes: str) -> str | None:
        """Returns the key of the variable that `a/b/c` leads to from an object, or None."""
        for name in attributes.split("/"):
            node = self._children[node].get(name)
            if node is None:
                return None
        return self._keys[node]

    def variables_below(self, node: int) -> set[str]:
        """Returns the keys of all variables that an object leads to."""
        seen, waiting = set(), [node]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting.extend(self._children[node].values())
        return {self._keys[node] for node in seen} - {None}

    def shape(self, key: str) -> tuple[int, ...]:
        """Returns the shape of a variable."""
        return self._reader.shapes[key]

    def read(self, key: str) -> np.ndarray:
        """Reads a variable.

        Raises:
            ValueError: If it cannot be read.
        """
        return self._reader.read(key)


def short_key(key: str) -> str:
    """Returns a key without the ending that all keys have."""
    return key.removesuffix(_VALUE)
