"""What is masked together: words, or spans of some words; and which of them are chosen.

Everything is decided for whole batches at once, from hashes that are handed in.
"""

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.chains import reached
from rembert_tf.pipelines.stateless_random import uniform


def number_words(starts: tf.Tensor) -> tf.Tensor:
    """Numbers the words of each row.

    Args:
        starts: Where words begin, bool [B, T].

    Returns:
        For each position the number of its word; -1 before the first one, int32 [B, T].
    """
    return tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1


def number_spans(starts: tf.Tensor, candidates: tf.Tensor, max_ngram: int, bits: tf.Tensor):
    """Cuts each row into spans of n words, n drawn anew for each span, and numbers them.

    p(n) = (1 / n) / (1 + 1/2 + ... + 1/N), N = `max_ngram` (Lan et al. 2020, 3.1: ALBERT, where N = 3). A span ends in
    front of a position that is no candidate.

    Args:
        starts: Where words begin, bool [B, T].
        candidates: Which positions hold text, bool [B, T].
        max_ngram: `N`.
        bits: A hash for each position, uint32 [B, T].

    Returns:
        For each position the number of its span; -1 before the first one, int32 [B, T].
    """
    length = starts.shape[1]
    weights = 1 / np.arange(1, max_ngram + 1)
    limits = (np.cumsum(weights) / weights.sum())[:-1].astype(np.float32)
    words = 1 + tf.reduce_sum(
        tf.cast(uniform(bits)[..., tf.newaxis] >= tf.constant(limits), tf.int32), axis=-1
    )
    position = tf.where(starts, tf.range(length), length)
    # Of each word: its position, how many words its span would have, where the next gap is.
    of_word = tf.sort(position, axis=1)
    exists = of_word < length
    at = tf.minimum(of_word, length - 1)
    number = tf.range(length)
    after_gap = starts & ~tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])
    first = tf.gather(after_gap, at, batch_dims=1) & exists
    gaps = tf.sort(tf.where(first, number, length), axis=1)
    gaps_before = tf.minimum(tf.cumsum(tf.cast(first, tf.int32), axis=1), length - 1)
    next_gap = tf.gather(gaps, gaps_before, batch_dims=1)
    following = tf.minimum(number + tf.gather(words, at, batch_dims=1), next_gap)
    following = tf.where(exists, tf.minimum(following, length - 1), number)
    begins = _reached_in_rows(first, following) & exists
    # Back to positions: a word that begins a span begins it at its first piece.
    word = tf.maximum(number_words(starts), 0)
    return number_words(starts & tf.gather(begins, word, batch_dims=1))


def choose(unit: tf.Tensor, candidates: tf.Tensor, wanted: tf.Tensor, bits: tf.Tensor) -> tf.Tensor:
    """Chooses units in random order as long as they fit; one that is too long is passed over, as in BERT.

    Args:
        unit: Number of the unit of each position, int32 [B, T].
        candidates: Which positions may be chosen, bool [B, T].
        wanted: How many positions to choose, at most, int32 [B].
        bits: A hash for each unit, uint32 [B, T].

    Returns:
        The chosen positions, bool [B, T].
    """
    shape = tf.shape(unit)
    flat = tf.where(candidates, unit, 0) + tf.range(shape[0])[:, tf.newaxis] * shape[1]
    sizes = tf.math.unsorted_segment_sum(tf.cast(candidates, tf.int32), flat, tf.size(unit))
    sizes = tf.reshape(sizes, shape)
    order = tf.argsort(tf.where(sizes > 0, tf.cast(bits, tf.int64), 1 << 32), axis=1)
    ranked = tf.gather(sizes, order, batch_dims=1)

    def take(taken, left, _):
        fitting = tf.where(~taken & (ranked <= left), ranked, 0)
        now = (fitting > 0) & (tf.cumsum(fitting, axis=1) <= left)
        left -= tf.reduce_sum(tf.where(now, ranked, 0), axis=1, keepdims=True)
        return taken | now, left, tf.reduce_any(now)

    taken, _, _ = tf.while_loop(
        lambda taken, left, going: going,
        take,
        (tf.zeros_like(candidates), wanted[:, tf.newaxis], True),
    )
    flat_order = order + tf.range(shape[0])[:, tf.newaxis] * shape[1]
    of_unit = tf.scatter_nd(
        tf.reshape(flat_order, [-1, 1]), tf.reshape(taken, [-1]), [tf.size(unit)]
    )
    return candidates & tf.gather(of_unit, flat)


def _reached_in_rows(first: tf.Tensor, following: tf.Tensor) -> tf.Tensor:
    shape = tf.shape(following)
    flat = following + tf.range(shape[0])[:, tf.newaxis] * shape[1]
    return tf.reshape(reached(tf.reshape(first, [-1]), tf.reshape(flat, [-1])), shape)
