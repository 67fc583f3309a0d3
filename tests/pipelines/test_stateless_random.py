import numpy as np
import tensorflow as tf

from rembert_tf.pipelines.stateless_random import (
    Stream,
    below,
    hash_uint32,
    hash_uint32_numpy,
    permutation,
    uniform,
)

NUMBERS = np.array([0, 1, 2, 2**31, 2**32 - 1, 2**32, 2**40 + 7], np.int64)


def test_tensorflow_and_numpy_give_the_same_bits():
    for seed in (0, 17, 2**62 + 5):
        key = (seed, Stream.LANGUAGE, NUMBERS[:, np.newaxis], np.arange(9))
        expected = hash_uint32_numpy(*key)
        assert expected.dtype == np.uint32 and expected.shape == (7, 9)
        np.testing.assert_array_equal(hash_uint32(*key), expected)
        in_graph = tf.function(
            lambda numbers, seed=seed: hash_uint32(seed, Stream.LANGUAGE, numbers, 3)
        )
        np.testing.assert_array_equal(in_graph(tf.constant(NUMBERS)), expected[:, 3])


def test_the_bits_never_change():
    # Runs that are resumed by a later version must go on with the same batches.
    np.testing.assert_array_equal(
        hash_uint32_numpy(1, 2, np.arange(3)),
        np.array([236991665, 3827687735, 1632707569], np.uint32),
    )


def test_every_word_of_the_key_counts():
    base = (5, 6, 7, 8)
    assert (
        len({int(hash_uint32_numpy(*base[:i], base[i] + 1, *base[i + 1 :])) for i in range(4)}) == 4
    )
    assert int(hash_uint32_numpy(1, 2)) != int(hash_uint32_numpy(2, 1))
    assert int(hash_uint32_numpy(2**32)) != int(hash_uint32_numpy(0))


def test_numbers_are_uniform_and_independent():
    bits = hash_uint32(3, tf.range(1 << 18))
    assert np.bincount(below(bits, 10), minlength=10).min() > 0.98 * (1 << 18) / 10
    values = uniform(bits).numpy()
    assert values.dtype == np.float32 and 0 <= values.min() and values.max() < 1
    assert abs(values.mean() - 0.5) < 0.002
    other = uniform(hash_uint32(4, tf.range(1 << 18))).numpy()
    for first, second in ((values, other), (values[1:], values[:-1])):
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.01


def test_below_reaches_both_ends():
    assert below(tf.constant([0, 2**32 - 1], tf.uint32), 250_300).numpy().tolist() == [0, 250_299]


def test_permutations_hold_every_number_once_and_differ_by_key():
    first, second = (permutation(tf.constant(1000), seed, 9).numpy() for seed in (0, 1))
    assert sorted(first) == sorted(second) == list(range(1000))
    assert (first != second).mean() > 0.9
