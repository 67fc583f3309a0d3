import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import mask_units
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32

# The 99.9th percentiles of chi-square with 1, 2 and 4 degrees of freedom.
CHI_SQUARE_LIMITS = {2: 10.8, 3: 13.8, 5: 18.5}


def rows(count, length=64):
    """Rows of words of 1 to 3 pieces, with a gap now and then, and one at both ends."""
    random = np.random.default_rng(0)
    candidates = random.random((count, length)) > 0.02
    candidates[:, [0, -2, -1]] = False
    goes_on = random.random((count, length)) < 0.3
    before = np.pad(candidates[:, :-1], [[0, 0], [1, 0]])
    return candidates & ~(goes_on & before), candidates


def spans_of(starts, candidates, max_ngram):
    bits = hash_uint32(1, Stream.MASK_SPAN, tf.range(len(starts))[:, tf.newaxis], tf.range(64))
    arguments = (tf.constant(starts), tf.constant(candidates), max_ngram, bits)
    return mask_units.number_spans(*arguments).numpy()


def test_words_are_numbered():
    starts = tf.constant([[False, True, False, True, True, False]])
    assert mask_units.number_words(starts).numpy().tolist() == [[-1, 0, 0, 1, 2, 2]]


@pytest.mark.parametrize("max_ngram", [2, 3, 5])
def test_spans_are_whole_words_without_gaps(max_ngram):
    starts, candidates = rows(500)
    spans = spans_of(starts, candidates, max_ngram)
    sizes = set()
    for row, start, candidate in zip(spans, starts, candidates, strict=True):
        assert (np.diff(row) >= 0).all() and (np.diff(row) <= 1).all()
        begins = np.diff(row, prepend=-1) > 0
        assert not (begins & ~start).any()  # in front of words only
        for gap in np.flatnonzero(~candidate[1:-2]) + 1:
            after = np.flatnonzero(candidate[gap:])
            assert not after.size or begins[gap + after[0]]
        sizes.update(np.bincount(row[start]).tolist())
    assert sizes == set(range(1, max_ngram + 1))


@pytest.mark.parametrize("max_ngram", [2, 3, 5])
def test_spans_have_n_words_one_nth_as_often(max_ngram):  # Lan et al. 2020, 3.1
    # The first span of a row without gaps is never cut.
    starts = np.zeros((20_000, 64), bool)
    starts[:, 1:62] = True
    spans = spans_of(starts, starts, max_ngram)
    lengths = np.bincount((spans == 0).sum(axis=1), minlength=max_ngram + 1)
    weights = 1 / np.arange(1, max_ngram + 1)
    expected = 20_000 * weights / weights.sum()
    assert lengths[0] == 0 and lengths.sum() == 20_000
    assert (((lengths[1:] - expected) ** 2) / expected).sum() < CHI_SQUARE_LIMITS[max_ngram]


def test_units_are_chosen_in_random_order_as_long_as_they_fit():
    unit = tf.constant([[0, 0, 0, 1, 2, 2], [0, 1, 2, 3, 4, 5]])
    candidates = tf.constant([[True] * 6, [True] * 5 + [False]])
    bits = tf.constant([[1, 2, 3, 9, 9, 9], [9, 1, 2, 8, 7, 0]], tf.uint32)
    chosen = mask_units.choose(unit, candidates, tf.constant([3, 2]), bits)
    assert chosen.numpy().astype(int).tolist() == [[1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]
    # Two are asked for: unit 0 has three and is passed over, unit 1 fits, unit 2 no longer.
    chosen = mask_units.choose(unit, candidates, tf.constant([2, 0]), bits)
    assert chosen.numpy().astype(int).tolist() == [[0, 0, 0, 1, 0, 0], [0] * 6]
