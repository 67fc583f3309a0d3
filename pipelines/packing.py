"""From documents to sequences `[CLS] ... [SEP]` of a fixed length `T`, which leave room for `T - 2` pieces.

    document    Each document is cut where a sequence is full; its last sequence is shorter and padded.
    sentences   Sequences are filled with whole sentences of one document, as many as fit: fairseq's `complete_doc`, the
                DOC-SENTENCES of RoBERTa (Liu et al. 2019, 4.2). Only a sentence longer than a sequence is cut.
    contiguous  Documents that follow each other are joined, with a `[SEP]` between them, and cut where a sequence is
                full; the last sequence of a block of documents is padded. Where a document ends in the last place but
                one, its `[SEP]` and that of the sequence follow each other.

Only `contiguous` puts two documents into a sequence. None drops or doubles a piece. Documents come in blocks, and no
sequence spans two of them, so that the sequences of a block are known from the lengths of its documents alone.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.chains import reached
from rembert_tf.pipelines.config import Packing
from rembert_tf.pipelines.record_index import RecordIndex


@dataclasses.dataclass(frozen=True, kw_only=True)
class Packer:
    """Cuts documents into sequences.

    Attributes:
        packing: "document", "sentences" or "contiguous".
        max_seq_length: `T`.
        cls_id, sep_id, pad_id: Ids of the special pieces.

    Example:
        >>> packer = Packer(packing="document", max_seq_length=5, cls_id=2, sep_id=3, pad_id=0)
        >>> packer.pack(tf.ragged.constant([[10, 11, 12, 13], [20]])).numpy().tolist()
        [[2, 10, 11, 12, 3], [2, 13, 3, 0, 0], [2, 20, 3, 0, 0]]
    """

    packing: Packing
    max_seq_length: int
    cls_id: int
    sep_id: int
    pad_id: int

    @property
    def room(self) -> int:
        """Pieces in a sequence beside `[CLS]` and `[SEP]`."""
        return self.max_seq_length - 2

    def counts(self, index: RecordIndex, blocks: np.ndarray) -> np.ndarray:
        """Counts the sequences that blocks of documents give.

        Args:
            index: Lengths of documents and sentences.
            blocks: Documents in each block, one block after the other, integers [blocks].

        Returns:
            Sequences of each block, int64 [blocks].
        """
        lengths = index.lengths.astype(np.int64)
        first = np.cumsum(blocks) - blocks
        if not len(blocks):
            return np.zeros(0, np.int64)
        if self.packing == "contiguous":
            return -(-(np.add.reduceat(lengths + 1, first) - 1) // self.room)
        if self.packing == "document":
            sequences = -(-lengths // self.room)
        else:
            sentences = index.sentences_per_document()
            sequences = _count_whole_sentences(index.sentence_lengths, sentences, self.room)
        return np.add.reduceat(sequences, first)

    def pack(
        self, documents: tf.RaggedTensor, sentence_lengths: tf.RaggedTensor | None = None
    ) -> tf.Tensor:
        """Cuts one block of documents.

        Args:
            documents: Ragged int32 [documents, (pieces)].
            sentence_lengths: Pieces of each sentence, ragged int32 [documents, (sentences)]; only `sentences` needs it.

        Returns:
            int32 [sequences, T].
        """
        if self.packing == "contiguous":
            ends = tf.RaggedTensor.from_row_lengths(
                tf.fill([documents.nrows(out_type=tf.int32)], self.sep_id),
                tf.ones_like(documents.row_lengths()),
            )
            pieces = tf.concat([documents, ends], axis=1).values[:-1]
            return self._rows(pieces, _cut(tf.size(pieces)[tf.newaxis], self.room)[0])
        lengths = tf.cast(documents.row_lengths(), tf.int32)
        if self.packing == "document":
            return self._rows(documents.values, _cut(lengths, self.room)[0])
        return self._rows(
            documents.values, _whole_sentences(sentence_lengths.values, lengths, self.room)
        )

    def _rows(self, pieces: tf.Tensor, taken: tf.Tensor) -> tf.Tensor:
        """Puts runs of `taken` pieces, int32 [sequences], between `[CLS]` and `[SEP]`."""
        rows = tf.RaggedTensor.from_row_lengths(pieces, taken, validate=False)
        body = rows.to_tensor(default_value=self.pad_id, shape=[None, self.room])
        rows = tf.pad(body, [[0, 0], [1, 0]], constant_values=self.cls_id)
        rows = tf.pad(rows, [[0, 0], [0, 1]], constant_values=self.pad_id)
        at_end = tf.range(self.max_seq_length) == (taken + 1)[:, tf.newaxis]
        return tf.where(at_end, self.sep_id, rows)


def _cut(lengths: tf.Tensor, room: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Cuts each of some lengths, int32 [n], into `room, room, ..., rest`; returns these, and how many each gave."""
    parts = (lengths + room - 1) // room
    owner = tf.repeat(tf.range(tf.size(lengths)), parts)
    number = tf.range(tf.size(owner)) - tf.gather(tf.cumsum(parts, exclusive=True), owner)
    return tf.minimum(room, tf.gather(lengths, owner) - number * room), parts


def _whole_sentences(sentences: tf.Tensor, documents: tf.Tensor, room: int) -> tf.Tensor:
    """Fills sequences with whole sentences.

    Args:
        sentences: Pieces of each sentence, int32 [sentences].
        documents: Pieces of each document, int32 [documents].
        room: Pieces in a sequence.

    Returns:
        Pieces of each sequence, int32 [sequences].
    """
    parts, _ = _cut(sentences, room)
    ends = tf.cumsum(parts)
    begins = ends - parts
    count = tf.size(parts)
    document_ends = tf.cumsum(documents)
    after_document = tf.gather(
        tf.searchsorted(ends, document_ends) + 1,
        tf.searchsorted(document_ends, begins, side="right"),
    )
    after_full = tf.searchsorted(ends, begins + room, side="right")
    # From each part, where the next sequence would begin; the end leads to itself.
    following = tf.concat([tf.minimum(after_full, after_document), [count]], axis=0)
    first = tf.scatter_nd(
        tf.searchsorted(begins, document_ends - documents)[:, tf.newaxis],
        tf.ones_like(documents, tf.bool),
        [count + 1],
    )
    starts = tf.boolean_mask(begins, reached(first, following)[:-1])
    return tf.concat([starts[1:], ends[-1:]], axis=0) - starts


def _count_whole_sentences(sentences: np.ndarray, documents: np.ndarray, room: int) -> np.ndarray:
    """Counts the sequences of each document as `_whole_sentences` fills them.

    Args:
        sentences: Pieces of each sentence, integers [sentences].
        documents: Sentences of each document, integers [documents].
        room: Pieces in a sequence.

    Returns:
        int64 [documents].
    """
    counts = np.zeros(len(documents), np.int64)
    filled = np.zeros(len(documents), np.int64)
    begins = np.cumsum(documents) - documents
    lengths = np.asarray(sentences, np.int64)
    # The first sentences of all documents, then the second ones, ...
    live = np.arange(len(documents))
    for number in range(int(documents.max(initial=0))):
        live = live[documents[live] > number]
        length = lengths[begins[live] + number]
        for part in ((length - 1) // room * room, (length - 1) % room + 1):
            total = filled[live] + part
            new = (part > 0) & ((filled[live] == 0) | (total > room))
            counts[live] += np.where(new, -(-part // room), 0)
            filled[live] = np.where(new, np.minimum(part, room), total)
    return counts
