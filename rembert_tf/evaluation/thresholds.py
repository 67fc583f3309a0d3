"""The threshold of mining: found on dev pairs, kept in a file, applied to test."""

import dataclasses
import json
from collections.abc import Mapping

import numpy as np

from rembert_tf.evaluation import files


@dataclasses.dataclass(frozen=True, kw_only=True)
class MiningThreshold:
    """The lowest score of a pair that counts as mined, and how it was found.

    Attributes:
        threshold: pairs with this score or a higher one are kept.
        dev_f1: F1 of the dev pairs at this threshold, from 0 to 1.
        dev_gold: how many gold pairs dev has.
        language: the language beside English.
        settings: what must be the same on test: model, layer, pooling, margin, neighbours.
    """

    threshold: float
    dev_f1: float
    dev_gold: int
    language: str
    settings: Mapping[str, str | int | float | bool]

    def keeps(self, scores: np.ndarray) -> np.ndarray:
        """Returns bool [P]: which pairs count as mined."""
        return np.asarray(scores, np.float64) >= self.threshold

    def save(self, path: str) -> None:
        """Writes JSON to `path`, at once or not at all."""
        files.write_atomically(path, json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def load(
        cls, path: str, *, language: str, settings: Mapping[str, str | int | float | bool]
    ) -> "MiningThreshold":
        """Reads what `save` wrote, for a test run with the same settings.

        Raises:
            FileNotFoundError: no threshold was stored.
            ValueError: the file holds something else, or was made for another language or with
                other settings.
        """
        try:
            value = json.loads("\n".join(files.read_lines(path)))
            stored = cls(**value)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{path}: there is no stored threshold. Mine the dev sentences first: a threshold "
                "comes from dev pairs, never from test."
            ) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: this is no stored threshold ({error}).") from None
        found = {"language": stored.language, **stored.settings}
        for name, wanted in {"language": language, **settings}.items():
            if found.get(name) != wanted:
                raise ValueError(
                    f"{path}: the threshold was found with {name}={found.get(name)!r}, so it does "
                    f"not fit. Received: {name}={wanted!r}"
                )
        return stored


def best_threshold(scores: np.ndarray, right: np.ndarray, num_gold: int) -> tuple[float, float]:
    """Returns the threshold with the highest F1 on dev pairs, and this F1.

    The threshold lies half-way between the last pair that is kept and the next one. Pairs of equal
    score are kept or dropped together.

    Args:
        scores: float [P], of mined pairs in any order.
        right: bool [P], whether a pair is one of the gold pairs.
        num_gold: how many gold pairs there are, mined or not.

    Returns:
        The threshold, infinite if no pair is right; and F1 from 0 to 1.

    Raises:
        ValueError: the arrays differ in length, or there is no gold pair.

    Example:
        >>> scores = np.array([1.4, 1.2, 1.1, 0.9])
        >>> best_threshold(scores, np.array([True, True, False, False]), num_gold=2)
        (1.15, 1.0)
    """
    if np.shape(scores) != np.shape(right) or np.ndim(scores) != 1:
        raise ValueError(
            "`scores` and `right` must be equally long. "
            f"Received: {np.shape(scores)} and {np.shape(right)}"
        )
    if num_gold < 1:
        raise ValueError(f"`num_gold` must be at least 1. Received: num_gold={num_gold}")
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    ordered = np.asarray(scores, np.float64)[order]
    hits = np.cumsum(np.asarray(right, bool)[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + num_gold)  # = 2PR / (P + R)
    last_of_its_score = np.append(ordered[1:] < ordered[:-1], True)[: len(ordered)]
    f1 = np.where(last_of_its_score, f1, 0)
    if not len(f1) or f1.max() == 0:
        return float("inf"), 0.0
    best = int(f1.argmax())
    following = ordered[best + 1] if best + 1 < len(ordered) else ordered[best]
    return float((ordered[best] + following) / 2), float(f1[best])
