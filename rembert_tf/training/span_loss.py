"""The loss of answers that are spans of a text (Devlin et al. 2019, 4.2)."""

from collections.abc import Mapping

import tensorflow as tf


def span_loss(labels: tf.Tensor, outputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the mean of the cross-entropies of the answer's first and last position.

    Positions past the end of a row take no part, so that the loss does not depend on the padding.

    Args:
        labels: first position, last position and length of each row, int32 `[B, 3]`.
        outputs: `start_logits` and `end_logits`, float32 `[B, T]`.

    Returns:
        float32 `[B]`.
    """
    start, end, length = tf.unstack(labels, num=3, axis=-1)
    logits = outputs["start_logits"]
    is_real = tf.range(tf.shape(logits)[1]) < length[:, tf.newaxis]

    def cross_entropy(position, logits):
        logits = tf.where(is_real, logits, logits.dtype.min)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(position, logits)

    return 0.5 * (cross_entropy(start, logits) + cross_entropy(end, outputs["end_logits"]))
