"""Finding translations among sentence vectors, in NumPy: nearest neighbours and margin mining.

Tatoeba asks for the nearest neighbour of each English sentence; BUCC for the pairs among two large
sets of sentences that are translations of each other. Similarities are computed block by block, so
memory stays bounded however many sentences there are. A bare cosine is no good for mining: some
vectors are near to everything. The margin of Artetxe & Schwenk (2019) divides the cosine of a pair
by what both sentences have with their nearest neighbours.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

_BLOCK = 4096  # rows and columns at a time: 64 MiB of similarities
Margin = Literal["ratio", "distance", "absolute"]


class Neighbours(NamedTuple):
    """The k nearest of each vector, best first; of equally near ones the first.

    Attributes:
        similarity: float32 [N, k].
        index: int64 [N, k].
    """

    similarity: np.ndarray
    index: np.ndarray


class MinedPairs(NamedTuple):
    """Pairs, best first; no vector of either side is in two of them.

    Attributes:
        source: int64 [P], rows of the source vectors.
        target: int64 [P], rows of the target vectors.
        score: float32 [P].
    """

    source: np.ndarray
    target: np.ndarray
    score: np.ndarray


def nearest(
    queries: np.ndarray, keys: np.ndarray, *, distance: Literal["cosine", "euclidean"] = "cosine"
) -> np.ndarray:
    """Returns for each query the row of the nearest key, as Tatoeba is scored.

    Args:
        queries: float32 [N, D].
        keys: float32 [M, D].
        distance: cosine (XTREME's Tatoeba) or Euclidean (Chung et al. 2021, A.9).

    Returns:
        int64 [N]; of equally near keys the first.

    Raises:
        ValueError: the arrays are no vectors of one width, or hold values that are not finite.

    Example:
        >>> keys = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
        >>> nearest(np.array([[0.2, 0.9], [3.0, 1.0]], np.float32), keys).tolist()
        [1, 0]
    """
    _require_vectors(queries=queries, keys=keys)
    if distance == "cosine":
        queries, keys, penalty = unit_length(queries), unit_length(keys), np.float32(0)
    else:  # |q - k|² = |q|² - 2 (q·k - |k|² / 2)
        center = keys.mean(axis=0, dtype=np.float64).astype(np.float32)  # for float32's sake
        queries, keys = queries - center, keys - center
        penalty = np.square(keys).sum(axis=1) / 2
    best = _Best(len(queries), 1)
    for rows in _blocks(len(queries)):
        for columns in _blocks(len(keys)):
            similarity = queries[rows] @ keys[columns].T
            best.update(
                rows, columns, similarity - penalty[..., columns] if penalty.ndim else similarity
            )
    return best.index[:, 0]


def shifted(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Returns the queries moved by the mean of the keys minus the mean of the queries.

    So the offset between two languages no longer hides what is near. Over parallel rows it is the
    mean of key minus query (Chung et al. 2021, A.9, over the very pairs that are scored), in
    whatever order they are: no pair need be known.

    Args:
        queries: float32 [N, D].
        keys: float32 [M, D].

    Returns:
        float32 [N, D].
    """
    _require_vectors(queries=queries, keys=keys)
    offset = keys.mean(axis=0, dtype=np.float64) - queries.mean(axis=0, dtype=np.float64)
    return queries + offset.astype(np.float32)


def neighbours(source: np.ndarray, target: np.ndarray, k: int) -> tuple[Neighbours, Neighbours]:
    """Returns the k nearest targets of each source by cosine, and the k nearest sources of each target.

    Both come out of one product of the two arrays.

    Args:
        source: float32 [N, D].
        target: float32 [M, D].
        k: how many; at most M for the sources, and N for the targets.
    """
    _require_vectors(source=source, target=target)
    if k < 1:
        raise ValueError(f"`k` must be at least 1. Received: k={k}")
    source, target = unit_length(source), unit_length(target)
    forward = _Best(len(source), min(k, len(target)))
    backward = _Best(len(target), min(k, len(source)))
    for rows in _blocks(len(source)):
        for columns in _blocks(len(target)):
            similarity = source[rows] @ target[columns].T
            forward.update(rows, columns, similarity)
            backward.update(columns, rows, similarity.T)
    return (
        Neighbours(forward.similarity, forward.index),
        Neighbours(backward.similarity, backward.index),
    )


def mine(
    source: np.ndarray, target: np.ndarray, *, k: int = 4, margin: Margin = "ratio"
) -> MinedPairs:
    """Returns the likely translations among two sets of sentences, the likeliest first.

    Each vector proposes the neighbour with the best margin; of all proposals the best are taken
    first, and none that uses a vector again (XTREME's settings for BUCC: 4 neighbours, ratio, both
    directions). What remains is to cut the list at a threshold: `best_threshold`.

    Args:
        source: float32 [N, D].
        target: float32 [M, D].
        k: neighbours that a margin is taken over, in each direction.
        margin: the cosine divided by its neighbourhoods' mean (`ratio`), less it (`distance`), or
            the cosine alone (`absolute`).
    """
    forward, backward = neighbours(source, target, k)
    source_mean, target_mean = forward.similarity.mean(axis=1), backward.similarity.mean(axis=1)
    proposals = []
    for near, own_mean, other_mean in (
        (forward, source_mean, target_mean),
        (backward, target_mean, source_mean),
    ):
        context = (own_mean[:, None] + other_mean[near.index]) / 2
        scores = _margin(near.similarity, context, margin)
        best = scores.argmax(axis=1)
        rows = np.arange(len(best))
        proposals.append((rows, near.index[rows, best], scores[rows, best]))
    (sources, chosen, scores), (targets, chosen_back, scores_back) = proposals
    pairs = MinedPairs(
        np.concatenate([sources, chosen_back]),
        np.concatenate([chosen, targets]),
        np.concatenate([scores, scores_back]),
    )
    kept = _one_to_one(pairs, len(source), len(target))
    return MinedPairs(*(column[kept] for column in pairs))


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Returns float32 rows of length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32, copy=False)


class _Best:
    """The k best columns of each row so far, of a matrix that comes in blocks, first columns first."""

    def __init__(self, rows: int, k: int):
        self.similarity = np.full((rows, k), -np.inf, np.float32)
        self.index = np.zeros((rows, k), np.int64)

    def update(self, rows: slice, columns: slice, block: np.ndarray) -> None:
        """Takes a block in. After the first one few entries are better than what is known."""
        known, k = self.similarity[rows], self.similarity.shape[1]
        if columns.start == 0:
            kth = max(block.shape[1] - k, 0)
            row, column = np.nonzero(block >= np.partition(block, kth, axis=1)[:, kth, None])
        else:
            row, column = np.nonzero(block > known[:, -1:])
        places = np.concatenate([np.repeat(np.arange(len(known)), k), row])
        similarity = np.concatenate([known.ravel(), block[row, column]])
        index = np.concatenate([self.index[rows].ravel(), columns.start + column])
        order = np.lexsort((index, -similarity, places))
        first = np.searchsorted(places[order], np.arange(len(known)))
        best = order[first[:, None] + np.arange(k)]
        self.similarity[rows], self.index[rows] = similarity[best], index[best]


def _blocks(length: int) -> Iterator[slice]:
    return (slice(start, min(start + _BLOCK, length)) for start in range(0, length, _BLOCK))


def _margin(similarity: np.ndarray, context: np.ndarray, margin: Margin) -> np.ndarray:
    if margin == "ratio":
        return similarity / context
    return similarity - context if margin == "distance" else similarity


def _one_to_one(pairs: MinedPairs, sources: int, targets: int) -> np.ndarray:
    """Returns which pairs are left when the best are taken first and no vector twice."""
    free_source, free_target = np.ones(sources, bool), np.ones(targets, bool)
    kept = []
    for pair in np.argsort(-pairs.score, kind="stable").tolist():
        source, target = pairs.source[pair], pairs.target[pair]
        if free_source[source] and free_target[target]:
            free_source[source] = free_target[target] = False
            kept.append(pair)
    return np.array(kept, np.int64)


def _require_vectors(**arrays: np.ndarray) -> None:
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    if any(len(shape) != 2 or 0 in shape for shape in shapes.values()) or (
        len({shape[1] for shape in shapes.values()}) > 1
    ):
        raise ValueError(
            f"`{'` and `'.join(arrays)}` must be arrays [N, D] and [M, D] of at least one vector. "
            f"Received: {', '.join(f'{name}.shape={shape}' for name, shape in shapes.items())}"
        )
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise ValueError(
                f"`{name}` must hold finite numbers. Received: {name}[{row}]={array[row]}"
            )
