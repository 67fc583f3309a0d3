"""From documents to sequences `[CLS] ... [SEP]` of a fixed length.

`document` cuts each document into sequences of `T - 2` pieces; its last sequence is shorter and padded, and no sequence
holds two documents. `contiguous` first joins the documents of a language, in the order in which they come, with a
`[SEP]` after each, and cuts the whole; only the last sequence of an epoch is padded. Neither drops a piece.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.config import Packing

_SEQUENCES_PER_BLOCK = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Packer:
    """Cuts documents into sequences.

    Attributes:
        packing: "document" or "contiguous".
        max_seq_length: `T`.
        cls_id, sep_id, pad_id: Ids of the special pieces.

    Example:
        >>> packer = Packer(packing="document", max_seq_length=5, cls_id=2, sep_id=3, pad_id=0)
        >>> packer.cut(tf.ragged.constant([[10, 11, 12, 13], [20]])).numpy().tolist()
        [[2, 10, 11, 12, 3], [2, 13, 3, 0, 0], [2, 20, 3, 0, 0]]
    """

    packing: Packing
    max_seq_length: int
    cls_id: int
    sep_id: int
    pad_id: int

    def count(self, document_lengths: np.ndarray) -> int:
        """Counts the sequences that documents give.

        Args:
            document_lengths: Pieces of each document, integers [documents].

        Returns:
            Number of sequences.
        """
        room = self.max_seq_length - 2
        lengths = np.asarray(document_lengths, np.int64)
        if self.packing == "contiguous":
            lengths = np.sum(lengths + 1, keepdims=True) * (lengths.size > 0)
        return int(np.sum(-(-lengths // room)))

    def pack(self, documents: tf.data.Dataset) -> tf.data.Dataset:
        """Turns batches of documents into blocks of sequences.

        Args:
            documents: Dataset of ragged int32 [documents, (pieces)].

        Returns:
            Dataset of int32 [sequences, T].
        """
        if self.packing == "document":
            return documents.map(self.cut)
        joined = documents.map(
            lambda batch: tf.concat([batch, self._separators(batch)], axis=1).values
        )
        blocks = joined.rebatch((self.max_seq_length - 2) * _SEQUENCES_PER_BLOCK)
        return blocks.map(
            lambda pieces: self.cut(tf.RaggedTensor.from_row_lengths(pieces, [tf.size(pieces)]))
        )

    def cut(self, documents: tf.RaggedTensor) -> tf.Tensor:
        """Cuts each row by itself.

        Args:
            documents: Ragged int32 [documents, (pieces)].

        Returns:
            int32 [sequences, T].
        """
        room = self.max_seq_length - 2
        lengths = tf.cast(documents.row_lengths(), tf.int32)
        sequences = (lengths + room - 1) // room
        document = tf.repeat(tf.range(tf.size(lengths)), sequences)
        index = tf.range(tf.size(document)) - tf.gather(
            tf.cumsum(sequences, exclusive=True), document
        )
        taken = tf.minimum(room, tf.gather(lengths, document) - index * room)
        rows = tf.RaggedTensor.from_row_lengths(documents.values, taken, validate=False)
        body = rows.to_tensor(default_value=self.pad_id, shape=[None, room])
        rows = tf.pad(body, [[0, 0], [1, 0]], constant_values=self.cls_id)
        rows = tf.pad(rows, [[0, 0], [0, 1]], constant_values=self.pad_id)
        at_end = tf.range(self.max_seq_length) == (taken + 1)[:, tf.newaxis]
        return tf.where(at_end, self.sep_id, rows)

    def _separators(self, batch: tf.RaggedTensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_row_lengths(
            tf.fill([batch.nrows(out_type=tf.int32)], self.sep_id),
            tf.ones_like(batch.row_lengths()),
        )
