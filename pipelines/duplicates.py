"""Which of many hashes were seen before: what exact duplicates are found with.

A hash has 64 bits. Of n different lines, one is taken for a duplicate by mistake with a chance of n^2 / 2^65: 3 % for a
thousand million lines of a language.
"""

import hashlib
from collections.abc import Iterable

import numpy as np


def hashes(texts: Iterable[str]) -> np.ndarray:
    """Returns a hash of each text, uint64 [texts]; the same in every process."""
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), "<u8")


class SeenHashes:
    """A growing set of hashes: 8 bytes each, 24 for the moment in which parts of it are merged.

    The hashes stand in sorted runs. Two runs are merged once the newer one is as large as the older, so there are never
    more than the logarithm of their number.

    Example:
        >>> seen = SeenHashes()
        >>> seen.add(np.array([7, 8, 7], np.uint64)).tolist()
        [True, True, False]
        >>> seen.add(np.array([9, 8], np.uint64)).tolist()
        [True, False]
    """

    def __init__(self):
        """Starts with an empty set."""
        self._runs: list[np.ndarray] = []

    def add(self, new: np.ndarray) -> np.ndarray:
        """Adds hashes.

        Args:
            new: uint64 [hashes].

        Returns:
            Whether each was there for the first time, bool [hashes].
        """
        values, first = np.unique(new, return_index=True)
        unknown = np.ones(len(values), bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, values), len(run) - 1)
            unknown &= run[place] != values
        is_first = np.zeros(len(new), bool)
        is_first[first[unknown]] = True
        if unknown.any():
            self._runs.append(values[unknown])
        while len(self._runs) > 1 and len(self._runs[-1]) >= len(self._runs[-2]):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(np.sort(np.concatenate([older, newer]), kind="stable"))
        return is_first
