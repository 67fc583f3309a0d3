import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines.masking import DynamicMasking, predictions_by_length

V, T = 200, 64
SPECIALS = {  # [PAD] [UNK] [CLS] [SEP] [MASK]: in front, in between, at the end
    "front": (0, 1, 2, 3, 4),
    "between": (0, 7, 2, 3, 4),
    "end": (199, 198, 197, 196, 195),
}


def make(specials=SPECIALS["front"], **changes):
    fields = dict(
        ordinary_ids=np.setdiff1d(np.arange(V), specials).astype(np.int32),
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


@pytest.mark.parametrize("specials", SPECIALS.values(), ids=SPECIALS)
def test_statistics(specials):
    ids = sequences(12_000, specials)
    masked = apply(make(specials, max_predictions_per_seq=T), ids)
    weights = masked["masked_lm_weights"] > 0
    rows = np.nonzero(weights)[0]
    positions = masked["masked_lm_positions"][weights]
    original = ids[rows, positions]
    assert not np.isin(original, specials).any()  # cases F1 and F5: never chosen
    np.testing.assert_array_equal(masked["masked_lm_ids"][weights], original)
    ordinary = (~np.isin(ids, specials)).sum()
    assert ordinary > 700_000
    assert abs(weights.sum() / ordinary - 0.15) < 0.002

    written = masked["input_ids"][rows, positions]
    to_mask = written == specials[4]
    drawn = written[~to_mask & (written != original)]
    assert abs(to_mask.mean() - 0.8) < 0.01
    assert abs(len(drawn) / len(written) - 0.1 * (1 - 1 / len(make(specials).ordinary_ids))) < 0.01
    assert not np.isin(drawn, specials).any()  # case F2: never drawn
    histogram = np.bincount(drawn, minlength=V)[make(specials).ordinary_ids]
    assert histogram.min() > 0.4 * histogram.mean() and histogram.max() < 1.8 * histogram.mean()

    untouched = np.ones_like(ids, bool)
    untouched[rows, positions] = False
    np.testing.assert_array_equal(masked["input_ids"][untouched], ids[untouched])


def test_positions_are_ascending_distinct_and_evenly_spread():
    masked = apply(make(), sequences(4000))
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
    in_graph = tf.function(make()).get_concrete_function(
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


def test_the_limit_cuts_the_number_of_predictions():
    masked = apply(make(masking_rate=1.0, max_predictions_per_seq=4), sequences(50))
    assert (masked["masked_lm_weights"].sum(axis=1) == 4).all()
    histogram = np.bincount(masked["masked_lm_positions"].ravel(), minlength=T)
    assert np.count_nonzero(histogram) > 50  # not always the first four


def test_masks_depend_on_seed_and_example_number_alone():
    ids = sequences(64)
    whole = apply(make(), ids)
    halves = [apply(make(), ids[:32]), apply(make(), ids[32:], first=32)]
    for name, value in whole.items():
        np.testing.assert_array_equal(np.concatenate([half[name] for half in halves]), value)
    in_graph = tf.function(make())(ids, tf.range(64, dtype=tf.int64))
    for name, value in whole.items():
        np.testing.assert_array_equal(in_graph[name], value)
    next_epoch = apply(make(), ids, first=64)  # case F9
    other_seed = apply(dataclasses.replace(make(), seed=6), ids)
    for other in (next_epoch, other_seed):
        same = (other["masked_lm_positions"] == whole["masked_lm_positions"]).all(axis=1)
        assert same.mean() < 0.05
