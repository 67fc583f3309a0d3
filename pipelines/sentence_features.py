"""Single sentences as rows: [CLS] sentence [SEP]."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import logging

from rembert_tf.pipelines import features as features_lib

if TYPE_CHECKING:
    from rembert_tf.pipelines.tokenization import RemBertTokenizer


def make_features(
    sentences: Sequence[str], tokenizer: "RemBertTokenizer", max_seq_length: int
) -> features_lib.Features:
    """Makes a row of at most `max_seq_length` positions of each sentence, without labels.

    A sentence that is too long loses its last pieces; an empty one becomes [CLS] [SEP].

    Args:
        sentences: the sentences.
        tokenizer: the tokenizer.
        max_seq_length: longest row, `[CLS]` and `[SEP]` included; at least 3.

    Raises:
        ValueError: `max_seq_length` below 3.
    """
    if max_seq_length < 3:
        raise ValueError(
            "`max_seq_length` must be at least 3: [CLS], a piece, [SEP]. "
            f"Received: max_seq_length={max_seq_length}"
        )
    pieces = features_lib.RaggedPieces(tokenizer, sentences)
    lengths = np.minimum(pieces.lengths, max_seq_length - 2)
    row_splits = features_lib.row_splits(lengths + 2)
    input_ids = np.empty(row_splits[-1], np.int32)
    input_ids[row_splits[:-1]] = tokenizer.cls_id
    input_ids[row_splits[1:] - 1] = tokenizer.sep_id
    input_ids[features_lib.ranges(row_splits[:-1] + 1, lengths)] = pieces.cut(lengths)
    logging.info(
        "%d sentences, %d positions; %d truncated to %d",
        len(sentences), len(input_ids), np.sum(pieces.lengths > lengths), max_seq_length,
    )  # fmt: skip
    return features_lib.Features(
        input_ids=input_ids,
        token_type_ids=np.zeros_like(input_ids),
        row_splits=row_splits,
        labels=np.zeros(len(sentences), np.int32),
        sample_weights=np.zeros(len(sentences), np.float32),
        pad_id=tokenizer.pad_id,
        label_names=(),
        labels_belong_to="rows",
        outputs_belong_to="rows",
    )
