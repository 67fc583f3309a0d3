import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.masking import DynamicMasking, predictions_by_length
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32_numpy
from rembert_tf.pipelines.word_pieces import WordPieces

V, T = 200, 64
WORDS = WordPieces(continues=np.arange(V) % 3 == 0, continuable=np.ones(V, bool))
MODES = {
    "piece": {},
    "whole_word": {"words": WORDS},
    "ngram": {"words": WORDS, "max_ngram": 3},
}
SPECIALS = {  # [PAD] [UNK] [CLS] [SEP] [MASK]: in front, in between, at the end
    "front": (0, 1, 2, 3, 4),
    "between": (0, 7, 2, 3, 4),
    "end": (199, 198, 197, 196, 195),
}


def make(specials=SPECIALS["front"], **changes):
    ordinary = np.setdiff1d(np.arange(V), specials).astype(np.int32)
    fields = dict(
        ordinary_ids=ordinary,
        drawn_ids=ordinary,
        vocab_size=V,
        mask_id=specials[4],
        masking_rate=0.15,
        max_predictions_per_seq=9,
        seed=5,
    )
    return DynamicMasking(**{**fields, **changes})


def sequences(rows, specials=SPECIALS["front"], pieces=T - 2):
    """Rows of [CLS], ordinary and some unknown pieces, [SEP]; int32 [rows, T]."""
    pad, unk, cls, sep, _ = specials
    random = np.random.default_rng(0)
    ids = random.choice(np.setdiff1d(np.arange(V), specials), (rows, T))
    ids[random.random((rows, T)) < 0.02] = unk
    ids[:, pieces + 1] = sep
    ids[:, pieces + 2 :] = pad
    ids[:, 0] = cls
    return ids.astype(np.int32)


def apply(masking, ids, first=0):
    masked = masking(tf.constant(ids), first + tf.range(len(ids), dtype=tf.int64))
    return {name: value.numpy() for name, value in masked.items()}


def test_the_number_of_predictions_by_hand():
    # 0.15 n, rounded to nearest with halves up: 1.5 -> 2, 2.85 -> 3; at least 1, at most 3.
    expected = {0: 0, 1: 1, 2: 1, 9: 1, 10: 2, 16: 2, 17: 3, 19: 3, 20: 3, 40: 3}
    table = predictions_by_length(40, 0.15, 3)
    assert {n: int(table[n]) for n in expected} == expected


def words_of(row, specials):
    """Number of the word of each position, -1 outside of words, in plain Python."""
    numbers, word = [], -1
    for position, piece in enumerate(row):
        if piece in specials:
            numbers.append(-1)
            continue
        goes_on = WORDS.continues[piece] and row[position - 1] not in specials
        word += 0 if goes_on else 1
        numbers.append(word)
    return np.array(numbers)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("specials", SPECIALS.values(), ids=SPECIALS)
def test_statistics_over_a_million_pieces(specials, mode):  # cases F1, F2, F3, F5
    ids = sequences(17_000, specials)
    masking = make(specials, max_predictions_per_seq=T, **MODES[mode])
    masked = apply(masking, ids)
    weights = masked["masked_lm_weights"] > 0
    rows = np.nonzero(weights)[0]
    positions = masked["masked_lm_positions"][weights]
    original = ids[rows, positions]
    assert not np.isin(original, specials).any()  # never chosen
    np.testing.assert_array_equal(masked["masked_lm_ids"][weights], original)
    ordinary = (~np.isin(ids, specials)).sum()
    assert ordinary > 1_000_000
    assert abs(weights.sum() / ordinary - 0.15) < 0.005

    written = masked["input_ids"][rows, positions]
    to_mask = written == specials[4]
    drawn = written[~to_mask & (written != original)]
    assert abs(to_mask.mean() - 0.8) < 0.01
    assert abs(len(drawn) / len(written) - 0.1 * (1 - 1 / len(masking.drawn_ids))) < 0.01
    assert abs((written == original).mean() - 0.1) < 0.01
    assert not np.isin(drawn, specials).any()  # never drawn
    histogram = np.bincount(drawn, minlength=V)[masking.drawn_ids]
    assert histogram.min() > 0.4 * histogram.mean() and histogram.max() < 1.8 * histogram.mean()

    untouched = np.ones_like(ids, bool)
    untouched[rows, positions] = False
    np.testing.assert_array_equal(masked["input_ids"][untouched], ids[untouched])


@pytest.mark.parametrize("mode", MODES)
def test_positions_are_ascending_distinct_and_evenly_spread(mode):
    masked = apply(make(**MODES[mode]), sequences(4000))
    weights, positions = masked["masked_lm_weights"], masked["masked_lm_positions"]
    assert (np.diff(positions, axis=1)[weights[:, 1:] > 0] > 0).all()
    assert (np.diff(weights, axis=1) <= 0).all()  # the filled slots come first
    histogram = np.bincount(positions[weights > 0], minlength=T)[1 : T - 1]
    assert histogram.min() > 0.75 * histogram.mean()


def test_empty_slots_are_zero_and_shapes_are_static():
    ids = sequences(8, pieces=10)
    masked = apply(make(max_predictions_per_seq=20), ids)
    empty = masked["masked_lm_weights"] == 0
    assert empty[:, 2:].all()
    assert (
        not masked["masked_lm_positions"][empty].any() and not masked["masked_lm_ids"][empty].any()
    )
    assert masked["masked_lm_positions"].shape == (8, 20)
    for mode in MODES.values():
        in_graph = tf.function(make(**mode)).get_concrete_function(
            tf.TensorSpec([8, T], tf.int32), tf.TensorSpec([8], tf.int64)
        )
        assert in_graph.structured_outputs["masked_lm_positions"].shape == (8, 9)
        assert in_graph.structured_outputs["input_ids"].shape == (8, T)


def test_rows_of_no_one_and_two_pieces():  # case F7
    pad, unk, cls, sep, mask = SPECIALS["front"]
    ids = np.full([4, T], pad, np.int32)
    ids[0, :2] = cls, sep
    ids[1, :3] = cls, 50, sep
    ids[2, :4] = cls, 50, 60, sep
    ids[3, :4] = cls, unk, unk, sep
    masked = apply(make(), ids)
    assert masked["masked_lm_weights"].sum(axis=1).tolist() == [0, 1, 1, 0]
    np.testing.assert_array_equal(masked["input_ids"][[0, 3]], ids[[0, 3]])
    assert masked["masked_lm_positions"][1, 0] == 1


@pytest.mark.parametrize("mode", MODES)
def test_the_limit_cuts_the_number_of_predictions(mode):
    limit = {"masking_rate": 1.0, "max_predictions_per_seq": 4}
    masked = apply(make(**limit, **MODES[mode]), sequences(50))
    assert (masked["masked_lm_weights"].sum(axis=1) == 4).all()
    histogram = np.bincount(masked["masked_lm_positions"].ravel(), minlength=T)
    assert np.count_nonzero(histogram) > 50  # not always the first four


@pytest.mark.parametrize("mode", ["whole_word", "ngram"])
def test_words_are_chosen_whole_and_the_budget_is_used(mode):
    specials = SPECIALS["front"]
    ids = sequences(600)
    masked = apply(make(**MODES[mode]), ids)
    asked = predictions_by_length(T, 0.15, 9)[(~np.isin(ids, specials)).sum(axis=1)]
    used = masked["masked_lm_weights"].sum(axis=1)
    assert (used <= asked).all() and (used == asked).mean() > 0.95
    for row, positions, weights in zip(
        ids, masked["masked_lm_positions"], masked["masked_lm_weights"], strict=True
    ):
        words = words_of(row, specials)
        chosen = np.zeros(T, bool)
        chosen[positions[weights > 0]] = True
        assert set(words[chosen]).isdisjoint(words[~chosen])


def test_the_choice_of_words_is_that_of_a_plain_loop():
    # BERT: words in random order; one that would exceed the number asked for is passed over.
    ids, specials = sequences(60), SPECIALS["front"]
    masked = apply(make(**MODES["whole_word"]), ids, first=100)
    for number, row in enumerate(ids):
        words = words_of(row, specials)
        wanted = predictions_by_length(T, 0.15, 9)[(words >= 0).sum()]
        bits = hash_uint32_numpy(5, Stream.MASK_POSITION, 100 + number, np.arange(T))
        chosen = []
        for word in np.argsort(bits[: words.max() + 1], kind="stable"):
            pieces = np.flatnonzero(words == word).tolist()
            if len(chosen) + len(pieces) <= wanted:
                chosen += pieces
        weights = masked["masked_lm_weights"][number] > 0
        assert masked["masked_lm_positions"][number][weights].tolist() == sorted(chosen)


def test_a_row_whose_words_do_not_fit_has_no_prediction():
    long = np.full([1, T], 0, np.int32)
    long[0, :8] = 2, 61, 60, 63, 66, 69, 72, 3  # one word of six pieces, and one piece is asked for
    two = long.copy()
    two[0, 2] = 62  # a word of one piece, then one of five
    for mode in ("whole_word", "ngram"):
        masked = apply(make(**MODES[mode]), long)
        assert not masked["masked_lm_weights"].any()
        np.testing.assert_array_equal(masked["input_ids"], long)
        masked = apply(make(**MODES[mode]), two)
        assert masked["masked_lm_weights"].sum() == 1 and masked["masked_lm_positions"][0, 0] == 1


def test_spelled_bytes_are_never_drawn():
    bytes_at = np.arange(100, 200)
    drawn = np.setdiff1d(make().ordinary_ids, bytes_at)
    ids = sequences(2000)
    masked = apply(make(drawn_ids=drawn), ids)
    written = np.take_along_axis(masked["input_ids"], masked["masked_lm_positions"], axis=1)
    changed = (written != masked["masked_lm_ids"]) & (masked["masked_lm_weights"] > 0)
    assert changed.sum() > 10_000 and not np.isin(written[changed], bytes_at).any()
    assert np.isin(masked["masked_lm_ids"], bytes_at).any()  # but they are predicted


@pytest.mark.parametrize("mode", MODES)
def test_masks_depend_on_seed_and_example_number_alone(mode):
    ids = sequences(64)
    whole = apply(make(**MODES[mode]), ids)
    halves = [apply(make(**MODES[mode]), ids[:32]), apply(make(**MODES[mode]), ids[32:], first=32)]
    for name, value in whole.items():
        np.testing.assert_array_equal(np.concatenate([half[name] for half in halves]), value)
    in_graph = tf.function(make(**MODES[mode]))(ids, tf.range(64, dtype=tf.int64))
    for name, value in whole.items():
        np.testing.assert_array_equal(in_graph[name], value)
    next_epoch = apply(make(**MODES[mode]), ids, first=64)  # case F9
    other_seed = apply(dataclasses.replace(make(**MODES[mode]), seed=6), ids)
    for other in (next_epoch, other_seed):
        same = (other["masked_lm_positions"] == whole["masked_lm_positions"]).all(axis=1)
        assert same.mean() < 0.05
