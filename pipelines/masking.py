"""Dynamic masking of whole batches, keyed by example number.

Of the `n` ordinary pieces of a sequence, `rate * n` rounded to the nearest integer are chosen (BERT's own rule: halves
up, at least one, at most `max_predictions_per_seq`); a sequence without ordinary pieces gets none. A chosen piece
becomes `[MASK]` in 80 % of the cases, a random ordinary piece in 10 %, and stays as it is in 10 % (Devlin et al. 2019,
3.1). Special pieces, the unknown piece among them, are never chosen and never drawn. Every choice is a hash of (seed,
example number, position), so it depends neither on the batch size nor on what was masked before.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.stateless_random import Stream, below, hash_uint32, uniform

_MASK_SHARE = 0.8
_RANDOM_SHARE = 0.1


def predictions_by_length(max_length: int, masking_rate: float, max_predictions: int) -> np.ndarray:
    """Lists how many of n ordinary pieces are predicted.

    Args:
        max_length: Largest n.
        masking_rate: Share to predict.
        max_predictions: Upper limit.

    Returns:
        int32 [max_length + 1], indexed by n.
    """
    lengths = np.arange(max_length + 1)
    wanted = np.floor(lengths * masking_rate + 0.5).astype(np.int32)
    return np.where(lengths == 0, 0, np.clip(wanted, 1, max_predictions)).astype(np.int32)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class DynamicMasking:
    """Masks batches of sequences.

    Attributes:
        ordinary_ids: Ids that may be chosen and drawn, int32 [ordinary].
        vocab_size: `V`.
        mask_id: Id of `[MASK]`.
        masking_rate: Share of the ordinary pieces to predict.
        max_predictions_per_seq: `P`.
        seed: Seed of all choices.

    Example:
        >>> masking = DynamicMasking(
        ...     ordinary_ids=np.arange(5, 100), vocab_size=100, mask_id=4,
        ...     masking_rate=0.5, max_predictions_per_seq=2, seed=0)
        >>> masked = masking(tf.constant([[2, 50, 60, 3, 0]]), tf.constant([7], tf.int64))
        >>> masked["masked_lm_weights"].numpy().tolist()
        [[1.0, 0.0]]
    """

    ordinary_ids: np.ndarray
    vocab_size: int
    mask_id: int
    masking_rate: float
    max_predictions_per_seq: int
    seed: int

    def __call__(self, input_ids: tf.Tensor, example_numbers: tf.Tensor) -> dict[str, tf.Tensor]:
        """Chooses and replaces pieces.

        Args:
            input_ids: int32 [B, T].
            example_numbers: Number of each sequence in the run, int64 [B].

        Returns:
            input_ids: With the replacements, int32 [B, T].
            masked_lm_positions: Ascending, 0 where the weight is 0, int32 [B, P].
            masked_lm_ids: The original pieces, 0 where the weight is 0, int32 [B, P].
            masked_lm_weights: 1 or 0, float32 [B, P].
        """
        positions, chosen = self._choose(input_ids, example_numbers)
        original = tf.gather(input_ids, positions, batch_dims=1)
        replaced = tf.where(chosen, self._replace(original, positions, example_numbers), original)
        rows = tf.broadcast_to(tf.range(tf.shape(input_ids)[0])[:, tf.newaxis], tf.shape(positions))
        # Slots without a prediction write the piece at position 0 back to its place.
        masked = tf.tensor_scatter_nd_update(
            input_ids, tf.stack([rows, positions], axis=-1), replaced
        )
        return {
            "input_ids": masked,
            "masked_lm_positions": positions,
            "masked_lm_ids": tf.where(chosen, original, 0),
            "masked_lm_weights": tf.cast(chosen, tf.float32),
        }

    def _choose(self, input_ids, example_numbers):
        length, slots = input_ids.shape[1], self.max_predictions_per_seq
        is_ordinary = np.zeros(self.vocab_size, bool)
        is_ordinary[self.ordinary_ids] = True
        candidates = tf.gather(is_ordinary, input_ids)
        wanted = tf.gather(
            predictions_by_length(length, self.masking_rate, slots),
            tf.reduce_sum(tf.cast(candidates, tf.int32), axis=1),
        )
        # The candidates with the largest hashes are chosen; everything else ranks below them.
        bits = hash_uint32(
            self.seed, Stream.MASK_POSITION, example_numbers[:, tf.newaxis], tf.range(length)
        )
        ranked = tf.math.top_k(tf.where(candidates, tf.cast(bits, tf.int64), -1), slots).indices
        chosen = tf.range(slots) < wanted[:, tf.newaxis]
        positions = tf.sort(tf.where(chosen, ranked, length), axis=1)
        return tf.where(chosen, positions, 0), chosen

    def _replace(self, original, positions, example_numbers):
        numbers = example_numbers[:, tf.newaxis]
        kind = uniform(hash_uint32(self.seed, Stream.MASK_KIND, numbers, positions))
        drawn = below(
            hash_uint32(self.seed, Stream.MASK_PIECE, numbers, positions), len(self.ordinary_ids)
        )
        random_piece = tf.gather(tf.constant(self.ordinary_ids, tf.int32), drawn)
        kept = tf.where(kind < _MASK_SHARE + _RANDOM_SHARE, random_piece, original)
        return tf.where(kind < _MASK_SHARE, self.mask_id, kept)
