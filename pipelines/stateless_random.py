"""Random numbers that are a pure function of their key, the same bits in TensorFlow and in NumPy.

The key is a few integers (seed, stream, example number, position, ...), the number a 32-bit hash of them: the
finaliser of MurmurHash3 after each word. Nothing is remembered between calls, so a batch does not depend on what was
drawn before it, on the number of threads, or on TensorFlow's global seed. No other randomness is used in the pipeline.
"""

import enum
import itertools
import zlib

import numpy as np
import tensorflow as tf


class Stream(enum.IntEnum):
    """What a number is drawn for; equal keys in different streams give unrelated numbers."""

    LANGUAGE = 1
    SHARD_ORDER = 2
    SEQUENCE_ORDER = 3
    MASK_POSITION = 4
    MASK_KIND = 5
    MASK_PIECE = 6
    DROPOUT = 7
    VOCABULARY_SENTENCE = 8
    BATCH_ORDER = 9
    DEV_FRACTION = 10
    MASK_SPAN = 11
    MASK_WORD = 12


def hash_uint32(*words) -> tf.Tensor:
    """Hashes integers to one uint32, in TensorFlow.

    Args:
        *words: Python integers below 2**64 or integer tensors; their shapes are broadcast.

    Returns:
        uint32, the broadcast shape.
    """
    constant = list(itertools.takewhile(lambda word: isinstance(word, int), words))
    state = tf.constant(hash_uint32_numpy(*constant))  # not in the graph
    for word in words[len(constant) :]:
        state = _mix(
            tf.bitwise.bitwise_xor(state, _fold_tensor(word)), tf.bitwise.bitwise_xor, _shift_tensor
        )
    return state


def hash_uint32_numpy(*words) -> np.ndarray:
    """Hashes integers to one uint32, in NumPy: the same bits as `hash_uint32`.

    Args:
        *words: Python integers below 2**64 or integer arrays; their shapes are broadcast.

    Returns:
        uint32, the broadcast shape.
    """
    state = np.uint32(0)
    with np.errstate(over="ignore"):
        for word in words:
            state = _mix(state ^ _fold_array(word), np.bitwise_xor, np.right_shift)
    return state


def word_of(name: str) -> int:
    """Turns a name into a word of a key, the same in every process."""
    return zlib.crc32(name.encode())


def below(bits: tf.Tensor, limit: int) -> tf.Tensor:
    """Turns hashes into integers that are uniform from 0 to limit - 1.

    Args:
        bits: uint32, any shape.
        limit: Number of different results.

    Returns:
        int32, the shape of `bits`.
    """
    product = tf.cast(bits, tf.uint64) * tf.constant(limit, tf.uint64)
    return tf.cast(tf.bitwise.right_shift(product, tf.constant(32, tf.uint64)), tf.int32)


def uniform(bits: tf.Tensor) -> tf.Tensor:
    """Turns hashes into floats that are uniform in [0, 1).

    Args:
        bits: uint32, any shape.

    Returns:
        float32, the shape of `bits`.
    """
    return tf.cast(_shift_tensor(bits, 8), tf.float32) * 2.0**-24


def permutation(length: tf.Tensor, *words) -> tf.Tensor:
    """Orders 0 to length - 1 at random.

    Args:
        length: int32 scalar.
        *words: The key.

    Returns:
        int32 [length].
    """
    return tf.argsort(tf.cast(hash_uint32(*words, tf.range(length)), tf.int64), stable=True)


def _mix(state, xor, shift):
    state = state + 0x9E3779B9
    state = xor(state, shift(state, 16)) * 0x85EBCA6B
    state = xor(state, shift(state, 13)) * 0xC2B2AE35
    return xor(state, shift(state, 16))


def _shift_tensor(bits: tf.Tensor, by: int) -> tf.Tensor:
    return tf.bitwise.right_shift(bits, tf.constant(by, bits.dtype))


def _fold_int(word: int) -> int:
    return (word ^ (word >> 32)) & 0xFFFFFFFF


def _fold_tensor(word) -> tf.Tensor:
    if isinstance(word, int):
        return tf.constant(_fold_int(int(word)), tf.uint32)
    word = tf.cast(word, tf.uint64)
    return tf.cast(tf.bitwise.bitwise_xor(word, _shift_tensor(word, 32)) & 0xFFFFFFFF, tf.uint32)


def _fold_array(word) -> np.ndarray:
    if isinstance(word, int):
        return np.uint32(_fold_int(int(word)))
    word = np.asarray(word).astype(np.uint64)
    return ((word ^ (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
