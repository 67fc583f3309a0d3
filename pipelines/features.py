"""Sequences that a model can take, for all fine-tuning tasks: flat arrays and row boundaries.

A reader makes `Features` once, in memory; `finetuning.py` draws batches from it. All rows lie end
to end, so that building, truncating and labelling are a few array operations and never a loop
over pieces.
"""

import dataclasses
import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class Features:
    """`R` rows with `S` positions in all, labelled or not.

    Attributes:
        input_ids: piece ids, special pieces included, int32 `[S]`.
        token_type_ids: 0 or 1, int32 `[S]`.
        row_splits: row `r` is `row_splits[r]:row_splits[r + 1]`, int64 `[R + 1]`.
        labels: label ids, 0 where the weight is 0, int32 `[S]` or `[R]`; a row may have several
            (`[R, ...]`).
        sample_weights: 1 where the label counts, 0 elsewhere (everywhere if the data has no
            labels), float32 `[S]` or `[R]`.
        pad_id: the piece id that fills rows up in a batch.
        label_names: names in the order of their ids.
        labels_belong_to: whether `labels` has one element a position or one a row.
        outputs_belong_to: the same for what a model returns.
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    row_splits: np.ndarray
    labels: np.ndarray
    sample_weights: np.ndarray
    pad_id: int
    label_names: tuple[str, ...]
    labels_belong_to: Literal["positions", "rows"]
    outputs_belong_to: Literal["positions", "rows"]

    @property
    def num_rows(self) -> int:
        """The number of rows, `R`."""
        return len(self.row_splits) - 1

    @property
    def row_lengths(self) -> np.ndarray:
        """The length of each row, int64 `[R]`."""
        return np.diff(self.row_splits)


class RaggedPieces:
    """The pieces of `N` strings, end to end.

    Each different string is tokenised once, all of them in one call: words and premises repeat.

    Args:
        tokenizer: the tokenizer.
        strings: `N` strings.
        if_empty: the piece that a string without any piece gets; `None` leaves it empty.

    Attributes:
        lengths: how many pieces each string has, int64 `[N]`.
        num_empty: how many strings got `if_empty`.
    """

    def __init__(
        self, tokenizer: "RemBertTokenizer", strings: Sequence[str], if_empty: int | None = None
    ):
        numbers: dict[str, int] = {}
        which = np.fromiter(
            (numbers.setdefault(string, len(numbers)) for string in strings), np.int64, len(strings)
        )
        pieces = tokenizer.encode(list(numbers))
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        empty = lengths == 0
        self.num_empty = 0
        if if_empty is not None and empty.any():
            pieces = [ids if len(ids) else np.array([if_empty], np.int32) for ids in pieces]
            lengths = np.maximum(lengths, 1)
            self.num_empty = int(np.sum(empty[which]))
        self._values = np.concatenate([np.zeros(0, np.int32), *pieces])
        self._starts = row_splits(lengths)[:-1][which]
        self.lengths = lengths[which]

    def cut(self, lengths: np.ndarray) -> np.ndarray:
        """Returns the first `lengths[n]` pieces of each string `n`, end to end, int32."""
        return self._values[ranges(self._starts, lengths)]


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns `starts[n], starts[n] + 1, ...` (`lengths[n]` of them) for each `n`, end to end.

    Args:
        starts: first number of each range, int64 `[N]`.
        lengths: how many numbers each has, int64 `[N]`.

    Returns:
        int64 `[sum(lengths)]`.
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(np.sum(lengths))


def row_splits(lengths: np.ndarray) -> np.ndarray:
    """Returns the boundaries of rows with these lengths, int64 `[R + 1]`."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def predicted_ids(predictions: np.ndarray, count: int) -> np.ndarray:
    """Returns label ids from ids or from logits.

    Args:
        predictions: ids, int `[count]`, or logits, float `[count, C]`.
        count: how many there must be.

    Raises:
        ValueError: another shape.
    """
    predictions = np.asarray(predictions)
    is_ids = np.issubdtype(predictions.dtype, np.integer)
    if predictions.ndim != (1 if is_ids else 2) or len(predictions) != count:
        raise ValueError(
            f"`predictions` must be ids [{count}] or logits [{count}, C]. "
            f"Received: shape {list(predictions.shape)}, {predictions.dtype}"
        )
    return predictions if is_ids else np.argmax(predictions, axis=-1)


def label_ids(names: Sequence[str], label_names: Sequence[str]) -> np.ndarray:
    """Returns the id of each label name, int32 `[N]`.

    Raises:
        ValueError: a name is no label; the message names the nearest one.
    """
    ids = {name: index for index, name in enumerate(label_names)}
    for name in names:
        if name not in ids:
            raise ValueError(unknown_label(name, label_names))
    return np.fromiter(map(ids.__getitem__, names), np.int32, len(names))


def unknown_label(name: str, label_names: Sequence[str]) -> str:
    """Returns the message for a label that is not in the label set."""
    by_capitals = {label.upper(): label for label in label_names}
    nearest = difflib.get_close_matches(name.upper(), by_capitals, n=1)
    return f"a label must be one of {', '.join(label_names)}. Received: {name!r}" + (
        f" (did you mean {by_capitals[nearest[0]]!r}?)" if nearest else ""
    )
