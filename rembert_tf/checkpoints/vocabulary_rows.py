"""The rows of a variable under another vocabulary: those that stay, and how the new ones start."""

import numpy as np

from rembert_tf.pipelines.piece_matching import PieceMatch


def changed_values(old, axis, match: PieceMatch, fresh=None) -> np.ndarray:
    """Returns the values of a variable with the rows of another vocabulary.

    Args:
        old: The variable.
        axis: Its axis for the pieces, or None if it has none; then nothing changes.
        match: Which rows are kept, and which ones the new rows start from.
        fresh: A variable of the new shape that gives the new rows; default: a new row is the mean
            of those that it starts from.
    """
    if axis is None:
        return old.numpy()
    rows = np.moveaxis(old.numpy(), axis, 0)
    changed = np.take(rows, match.kept, axis=0, mode="clip")
    new_ids = np.flatnonzero(match.kept < 0)
    if fresh is not None:
        changed[new_ids] = np.moveaxis(fresh.numpy(), axis, 0)[new_ids]
    elif len(new_ids):
        ordinary = np.zeros((len(rows), *[1] * (rows.ndim - 1)), bool)
        ordinary[match.ordinary] = True
        mean = np.mean(rows, axis=0, dtype="float64", where=ordinary)  # copies no table
        for index in new_ids.tolist():
            parts = match.parts.get(index)
            changed[index] = (
                mean if parts is None else np.mean(rows[parts], axis=0, dtype="float64")
            )
    return np.moveaxis(changed, 0, axis)


def changed_shape(old, axis, vocab_size) -> list[int]:
    """Returns the shape that a variable has with another number of pieces."""
    return [vocab_size if n == axis else size for n, size in enumerate(old.shape)]
