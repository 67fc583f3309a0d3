"""Dynamic masking of whole batches, keyed by example number.

Of the `n` ordinary pieces of a sequence, `rate * n` rounded to the nearest integer are chosen (BERT's own rule: halves
up, at least one, at most `max_predictions_per_seq`); a sequence without ordinary pieces gets none. What is chosen:

    piece        pieces, each by itself
    whole_word   all pieces of a word (`word_pieces.py` says what a word is). A word that no longer fits is passed over,
                 so that a few predictions less than asked for are possible, and none at all where no word fits.
    ngram        spans of 1 to `max_ngram` whole words, short ones more often (`mask_units.py`); what is left in the end
                 is filled with single words.

A chosen piece becomes `[MASK]` in 80 % of the cases, a random ordinary piece in 10 %, and stays as it is in 10 %
(Devlin et al. 2019, 3.1), each piece of a word by itself. Special pieces, reserved ones and the unknown piece among
them, are never chosen and never drawn; spelled bytes are chosen, but never drawn. Every choice is a hash of (seed,
example number, position), so it depends neither on the batch size nor on what was masked before.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import mask_units
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.stateless_random import Stream, below, hash_uint32, uniform
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.word_pieces import WordPieces, byte_pieces

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
        ordinary_ids: Ids that may be chosen, int32 [ordinary].
        drawn_ids: Ids that may stand in for another one, int32 [drawn].
        vocab_size: `V`.
        mask_id: Id of `[MASK]`.
        masking_rate: Share of the ordinary pieces to predict.
        max_predictions_per_seq: `P`.
        seed: Seed of all choices.
        words: What words are made of; without it, each piece is chosen by itself.
        max_ngram: Words in a span, at most.

    Example:
        >>> masking = DynamicMasking(
        ...     ordinary_ids=np.arange(5, 100), drawn_ids=np.arange(5, 100), vocab_size=100, mask_id=4,
        ...     masking_rate=0.5, max_predictions_per_seq=2, seed=0)
        >>> masked = masking(tf.constant([[2, 50, 60, 3, 0]]), tf.constant([7], tf.int64))
        >>> masked["masked_lm_weights"].numpy().tolist()
        [[1.0, 0.0]]
    """

    ordinary_ids: np.ndarray
    drawn_ids: np.ndarray
    vocab_size: int
    mask_id: int
    masking_rate: float
    max_predictions_per_seq: int
    seed: int
    words: WordPieces | None = None
    max_ngram: int = 1

    @classmethod
    def of(
        cls, config: PretrainingDataConfig, tokenizer: RemBertTokenizer, *, seed: int
    ) -> "DynamicMasking":
        """Returns the masking that the settings of the data ask for."""
        return cls(
            ordinary_ids=tokenizer.ordinary_ids,
            drawn_ids=tokenizer.ordinary_ids[~byte_pieces(tokenizer)[tokenizer.ordinary_ids]],
            vocab_size=tokenizer.vocab_size,
            mask_id=tokenizer.mask_id,
            masking_rate=config.masking_rate,
            max_predictions_per_seq=config.predictions_per_seq,
            seed=seed,
            words=None if config.masking == "piece" else WordPieces.of_tokenizer(tokenizer),
            max_ngram=config.max_ngram if config.masking == "ngram" else 1,
        )

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
        positions, chosen = self._positions(input_ids, example_numbers[:, tf.newaxis])
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

    def _positions(self, input_ids, numbers):
        """Returns the chosen positions, 0 in empty slots, int32 [B, P], and which slots are filled, bool [B, P]."""
        length, slots = input_ids.shape[1], self.max_predictions_per_seq
        is_ordinary = np.zeros(self.vocab_size, bool)
        is_ordinary[self.ordinary_ids] = True
        candidates = tf.gather(is_ordinary, input_ids)
        wanted = tf.gather(
            predictions_by_length(length, self.masking_rate, slots),
            tf.reduce_sum(tf.cast(candidates, tf.int32), axis=1),
        )
        if self.words is not None:
            chosen = self._choose_words(input_ids, candidates, wanted, numbers)
            ranked = tf.math.top_k(tf.where(chosen, length - tf.range(length), 0), slots)
            filled = ranked.values > 0
            return tf.where(filled, ranked.indices, 0), filled
        # The candidates with the largest hashes are chosen; everything else ranks below them.
        bits = hash_uint32(self.seed, Stream.MASK_POSITION, numbers, tf.range(length))
        ranked = tf.math.top_k(tf.where(candidates, tf.cast(bits, tf.int64), -1), slots).indices
        filled = tf.range(slots) < wanted[:, tf.newaxis]
        positions = tf.sort(tf.where(filled, ranked, length), axis=1)
        return tf.where(filled, positions, 0), filled

    def _choose_words(self, input_ids, candidates, wanted, numbers):
        def bits(stream):
            return hash_uint32(self.seed, stream, numbers, tf.range(input_ids.shape[1]))

        starts = self.words.starts(input_ids, candidates)
        word = mask_units.number_words(starts)
        if self.max_ngram == 1:
            return mask_units.choose(word, candidates, wanted, bits(Stream.MASK_POSITION))
        span = mask_units.number_spans(starts, candidates, self.max_ngram, bits(Stream.MASK_SPAN))
        chosen = mask_units.choose(span, candidates, wanted, bits(Stream.MASK_POSITION))
        left = wanted - tf.reduce_sum(tf.cast(chosen, tf.int32), axis=1)
        return chosen | mask_units.choose(word, candidates & ~chosen, left, bits(Stream.MASK_WORD))

    def _replace(self, original, positions, example_numbers):
        numbers = example_numbers[:, tf.newaxis]
        kind = uniform(hash_uint32(self.seed, Stream.MASK_KIND, numbers, positions))
        drawn = below(
            hash_uint32(self.seed, Stream.MASK_PIECE, numbers, positions), len(self.drawn_ids)
        )
        random_piece = tf.gather(tf.constant(self.drawn_ids, tf.int32), drawn)
        kept = tf.where(kind < _MASK_SHARE + _RANDOM_SHARE, random_piece, original)
        return tf.where(kind < _MASK_SHARE, self.mask_id, kept)
