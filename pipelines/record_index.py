"""What a reader must know of records without reading them: two small files a language and split.

<language>/train-lengths.npy            pieces of each document in the order of the shards, int32 [documents]
<language>/train-sentence-lengths.npy   pieces of each sentence, in the same order, int32 [sentences]

With them, the sequences of an epoch are counted, and any of them is found, without touching the records.
"""

import dataclasses
import pathlib
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class RecordIndex:
    """The index of one split of a language.

    Attributes:
        lengths: Pieces of each document, int32 [documents].
        sentence_lengths: Pieces of each sentence, int32 [sentences].

    Example:
        >>> index = RecordIndex.of_lengths([[3, 1], [1]])
        >>> index.lengths.tolist(), index.sentences_per_document().tolist()
        ([4, 1], [2, 1])
    """

    lengths: np.ndarray
    sentence_lengths: np.ndarray

    @classmethod
    def of_lengths(cls, documents: Sequence[Sequence[int]]) -> "RecordIndex":
        """Returns the index of documents: of each, the pieces of its sentences."""
        return cls(
            np.array([sum(sentences) for sentences in documents], np.int32),
            np.array([pieces for sentences in documents for pieces in sentences], np.int32),
        )

    @classmethod
    def read(cls, folder: pathlib.Path, split: str) -> "RecordIndex":
        """Reads the files of a language's folder.

        Raises:
            FileNotFoundError: One is absent.
            ValueError: One is damaged, or they do not fit each other.
        """
        arrays = []
        for path in _paths(folder, split):
            try:
                arrays.append(np.load(path, allow_pickle=False))
            except (ValueError, EOFError) as error:
                raise ValueError(f"{path}: damaged: {error}") from error
        index = cls(*arrays)
        if index.lengths.sum() != index.sentence_lengths.sum():
            raise ValueError(f"{path}: does not fit {_paths(folder, split)[0].name} beside it.")
        return index

    def write(self, folder: pathlib.Path, split: str):
        """Writes the files."""
        arrays = (self.lengths, self.sentence_lengths)
        for path, array in zip(_paths(folder, split), arrays, strict=True):
            np.save(path, array)

    def sentences_per_document(self) -> np.ndarray:
        """Returns the number of sentences of each document, int64 [documents]; each sentence must have a piece."""
        pieces = np.cumsum(self.sentence_lengths, dtype=np.int64)
        ends = np.searchsorted(pieces, np.cumsum(self.lengths, dtype=np.int64)) + 1
        return np.diff(ends, prepend=0)

    def keep(self, documents: np.ndarray) -> "RecordIndex":
        """Returns the index of some of the documents, bool [documents]."""
        sentences = np.repeat(documents, self.sentences_per_document())
        return RecordIndex(self.lengths[documents], self.sentence_lengths[sentences])


def _paths(folder: pathlib.Path, split: str) -> list[pathlib.Path]:
    return [folder / f"{split}-{name}.npy" for name in ("lengths", "sentence-lengths")]
