import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import finetuning, stateless_random, tagging, xtreme
from rembert_tf.pipelines.features import Features
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig

PAD_ID = 9


def config(**changes):
    settings = {
        "task": "xnli",
        "data_dir": "data",
        "batch_size": 4,
        "bucket_batches": 3,
        "max_seq_length": 32,
        "seed": 3,
    }
    return FinetuningDataConfig(**settings | changes)


def make_features(lengths, labels_belong_to="rows"):
    """Row r is [100 r, 100 r + 1, ...]; labels are piece ids plus 5, or row numbers plus 5."""
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.concatenate([100 * r + np.arange(length) for r, length in enumerate(lengths)])
    labels = ids if labels_belong_to == "positions" else np.arange(len(lengths))
    return Features(
        input_ids=ids.astype(np.int32),
        token_type_ids=(ids % 2).astype(np.int32),
        row_splits=splits,
        labels=(labels + 5).astype(np.int32),
        sample_weights=np.ones(len(labels), np.float32),
        pad_id=PAD_ID,
        label_names=("a", "b"),
        labels_belong_to=labels_belong_to,
        outputs_belong_to=labels_belong_to,
    )


def take(features, count, start_batch=0, **changes):
    dataset = finetuning.make_training_dataset(features, config(**changes), start_batch=start_batch)
    return list(dataset.take(count).as_numpy_iterator())


def rows_of(batches):
    return [int(row) for inputs, _, _ in batches for row in inputs["input_ids"][:, 0] // 100]


def assert_equal(first, second):
    tf.nest.map_structure(np.testing.assert_array_equal, first, second)


# Training


def rows_in_order_of_examples(batches):
    """The rows of batches in the order of their examples, which the dropout keys tell apart."""
    keys = stateless_random.hash_uint32_numpy(
        3, stateless_random.Stream.DROPOUT, np.arange(4 * len(batches) + 400)
    )
    number = {int(key): n for n, key in enumerate(keys)}
    found = {}
    for inputs, _, _ in batches:
        rows = inputs["input_ids"][:, 0] // 100
        found |= {number[int(k)]: int(r) for k, r in zip(inputs["dropout_keys"], rows, strict=True)}
    assert sorted(found) == list(range(4 * len(batches))), "each example once, none left out"
    return [found[n] for n in range(len(found))]


def test_each_epoch_is_another_permutation_of_all_rows():
    features = make_features([3, 9, 5, 4, 7, 2, 6])
    rows = rows_in_order_of_examples(take(features, 14))
    epochs = [tuple(rows[start : start + 7]) for start in range(0, 56, 7)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len(set(epochs)) == 8
    assert rows_of(take(features, 14)) != rows_of(take(features, 14, seed=4))
    assert rows_of(take(make_features([3]), 2)) == [0] * 8
    assert rows_of(take(features, 14, bucket_batches=1)) == rows


@pytest.mark.parametrize(
    ("num_rows", "window"), [(50, 5), (7, 3), (3, 4), (170, 5), (163, 3), (130, 100)]
)
def test_windows_hold_the_examples_that_they_would_hold_unsorted(num_rows, window):
    lengths = np.random.default_rng(0).integers(1, 30, num_rows)
    features = make_features(lengths)
    epochs, size = 3, 4
    count = finetuning.num_training_batches(num_rows, size, epochs)
    batches = take(features, count, bucket_batches=window)
    rows = rows_in_order_of_examples(batches)
    assert rows == rows_of(take(features, count, bucket_batches=1))
    # After every epoch, and so after the last one, each row has been seen as often as any other.
    seen = rows_of(batches)
    for epoch in range(1, epochs + 1):
        done = -(-epoch * num_rows // size) * size
        counts = np.bincount(seen[:done], minlength=num_rows)
        assert sum(counts) == done and all(counts >= epoch)
        assert sum(counts > epoch) <= min(size, done - epoch * num_rows)


def test_a_small_data_set_is_not_sorted_as_a_whole():
    features = make_features(np.random.default_rng(1).integers(4, 120, 128))
    drawn, bucketed = (take(features, 32, bucket_batches=window) for window in (1, 100))
    widest = {max(features.row_lengths[rows_of([batch])]) for batch in bucketed[:4]}
    assert rows_of(bucketed[:4]) != rows_of(drawn[:4])
    # The first window is an eighth of the epoch: the rows of the first four batches, and no others.
    assert sorted(rows_of(bucketed[:4])) == sorted(rows_of(drawn[:4])) and len(widest) > 1


def test_sequences_of_similar_length_share_a_batch():
    lengths = np.random.default_rng(1).integers(4, 120, 2560)
    features = make_features(lengths)

    def padding(**changes):
        masks = [b[0]["attention_mask"] for b in take(features, 40, batch_size=16, **changes)]
        return 1 - sum(map(np.sum, masks)) / sum(map(np.size, masks))

    assert padding(bucket_batches=1) > 0.4
    assert padding(bucket_batches=20) < 0.12
    widths = [
        b[0]["input_ids"].shape[1] for b in take(features, 40, batch_size=16, bucket_batches=20)
    ]
    assert widths != sorted(widths) and widths[:20] != sorted(widths[:20]), "batches are shuffled"
    first = {frozenset(rows_of([b])) for b in take(features, 40, batch_size=16, bucket_batches=20)}
    later = take(features, 40, 40, batch_size=16, bucket_batches=20)
    assert len(first & {frozenset(rows_of([b])) for b in later}) <= 1, "other companies every epoch"


@pytest.mark.parametrize("labels_belong_to", ["rows", "positions"])
def test_the_batch_of_a_step_does_not_depend_on_where_the_run_began(labels_belong_to):
    features = make_features([3, 9, 5, 4, 7, 2, 6], labels_belong_to)
    whole = take(features, 12)
    assert_equal(whole, take(features, 12))
    for start in (1, 2, 5, 11):
        assert_equal(whole[start:], take(features, 12 - start, start_batch=start))


@pytest.mark.parametrize("pad_to_max", [False, True])
@pytest.mark.parametrize("labels_belong_to", ["rows", "positions"])
def test_batches_hold_the_rows_and_padding(labels_belong_to, pad_to_max):
    lengths = [3, 17, 5, 8, 7, 2, 9]
    features = make_features(lengths, labels_belong_to)
    widths = set()
    for inputs, labels, weights in take(features, 14, pad_to_max=pad_to_max):
        width = inputs["input_ids"].shape[1]
        widths.add(width)
        rows = inputs["input_ids"][:, 0] // 100
        longest = max(lengths[row] for row in rows)
        assert width == (32 if pad_to_max else -(-longest // 8) * 8)
        for slot, row in enumerate(rows):
            padding = width - lengths[row]
            ids = 100 * row + np.arange(lengths[row])
            assert inputs["input_ids"][slot].tolist() == [*ids, *[PAD_ID] * padding]
            assert inputs["attention_mask"][slot].tolist() == [1] * len(ids) + [0] * padding
            assert inputs["token_type_ids"][slot].tolist() == [*(ids % 2), *[0] * padding]
            if labels_belong_to == "positions":
                assert labels[slot].tolist() == [*(ids + 5), *[0] * padding]
                assert weights[slot].tolist() == [1.0] * len(ids) + [0.0] * padding
            else:
                assert (labels[slot], weights[slot]) == (row + 5, 1.0)
    assert widths == ({32} if pad_to_max else {8, 16, 24})


def test_types_and_static_shapes():
    for labels_belong_to, shape in (("rows", []), ("positions", [None])):
        features = make_features([3, 4], labels_belong_to)
        dataset = finetuning.make_training_dataset(features, config())
        inputs, labels, weights = dataset.element_spec
        assert {name: (spec.dtype, spec.shape.as_list()) for name, spec in inputs.items()} == {
            "input_ids": (tf.int32, [4, None]),
            "attention_mask": (tf.int32, [4, None]),
            "token_type_ids": (tf.int32, [4, None]),
            "dropout_keys": (tf.uint32, [4]),
        }
        assert (labels.dtype, labels.shape.as_list()) == (tf.int32, [4, *shape])
        assert (weights.dtype, weights.shape.as_list()) == (tf.float32, [4, *shape])
    fixed = finetuning.make_training_dataset(features, config(pad_to_max=True)).element_spec
    shapes = [spec.shape.as_list() for spec in tf.nest.flatten(fixed)]
    assert sorted(shapes) == [[4], [4, 32], [4, 32], [4, 32], [4, 32], [4, 32]]


def test_dropout_keys_are_a_hash_of_seed_and_example_number():
    batches = take(make_features([3, 4, 5]), 3, start_batch=2, bucket_batches=1)
    keys = np.concatenate([inputs["dropout_keys"] for inputs, _, _ in batches])
    numbers = np.arange(8, 20)
    expected = stateless_random.hash_uint32_numpy(3, stateless_random.Stream.DROPOUT, numbers)
    assert keys.tolist() == expected.tolist()
    assert len(set(keys.tolist())) == 12, "a row draws another mask each time it comes"


def test_the_number_of_batches():
    assert finetuning.num_training_batches(10, 4, 2) == 5
    assert finetuning.num_training_batches(10, 4, 3) == 8
    assert finetuning.num_training_batches(10, 4, 0.5) == 2


def test_features_without_labels_cannot_be_trained_on():
    features = make_features([3, 4])
    features.sample_weights[:] = 0
    with pytest.raises(ValueError, match="`features` must have labels.*2 rows without any label"):
        finetuning.make_training_dataset(features, config())


def test_rows_may_have_several_labels():
    features = dataclasses.replace(
        make_features([3, 9, 5, 4]), labels=np.arange(12, dtype=np.int32).reshape(4, 3),
        outputs_belong_to="positions",
    )  # fmt: skip
    for inputs, labels, weights in take(features, 3):
        rows = inputs["input_ids"][:, 0] // 100
        assert labels.tolist() == [[3 * row, 3 * row + 1, 3 * row + 2] for row in rows]
        assert weights.tolist() == [1.0] * 4
    batches = finetuning.make_inference_dataset(features, 3)
    ids = [inputs["input_ids"] for inputs, _, _ in batches.dataset.as_numpy_iterator()]
    assert batches.restore(ids).tolist() == features.input_ids.tolist()


# Prediction


@pytest.mark.parametrize("pad_to", [None, 40])
@pytest.mark.parametrize("batch_size", [1, 3, 4, 20])
def test_outputs_come_back_in_the_order_of_the_features(batch_size, pad_to):
    lengths = np.random.default_rng(0).integers(1, 30, 11)
    for labels_belong_to in ("rows", "positions"):
        features = make_features(lengths, labels_belong_to)
        batches = finetuning.make_inference_dataset(features, batch_size, pad_to=pad_to)
        ids, labels, logits, weight, widths = [], [], [], 0.0, []
        for inputs, batch_labels, weights in batches.dataset.as_numpy_iterator():
            assert inputs["input_ids"].shape[0] == (batch_size if pad_to else min(batch_size, 11))
            assert "dropout_keys" not in inputs
            widths.append(inputs["input_ids"].shape[1])
            ids.append(inputs["input_ids"])
            labels.append(batch_labels)
            logits.append(np.stack([batch_labels, -batch_labels], -1))
            weight += weights.sum()
        assert len(batches) == len(ids) == -(-11 // batch_size)
        assert widths == sorted(widths, reverse=True)
        assert weight == len(features.labels), "rows that fill up the last batch weigh nothing"
        assert batches.restore(labels).tolist() == features.labels.tolist()
        expected = np.stack([features.labels, -features.labels], -1)
        assert batches.restore(logits).tolist() == expected.tolist()
        if labels_belong_to == "positions":
            assert batches.restore(iter(ids)).tolist() == features.input_ids.tolist()


def test_each_batch_needs_an_output():
    batches = finetuning.make_inference_dataset(make_features([3, 4, 5]), 2)
    outputs = [np.zeros(2), np.zeros(2)]
    for wrong in (outputs[:1], outputs * 2):
        with pytest.raises(
            ValueError, match=r"`outputs` must hold one array.*Received: \d arrays for 2 batches"
        ):
            batches.restore(wrong)
    with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
        finetuning.make_inference_dataset(make_features([3]), 0)


def test_features_without_rows_cannot_be_predicted(tokenizer):
    features = tagging.make_features([], tokenizer, xtreme.UPOS_TAGS, 16)
    assert features.num_rows == 0 and tagging.predicted_tags(features, features.labels) == []
    with pytest.raises(ValueError, match="`features` must have rows to predict"):
        finetuning.make_inference_dataset(features, 4)


# Configuration


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "xnil"}, "`task` must be one of xnli, .* Received: task='xnil'"),
        ({"task": "tatoeba"}, "`task` must be one that is trained, xnli, .*'tatoeba'"),
        ({"bucket_batches": 0}, "`bucket_batches` must be at least 1"),
        ({"doc_stride": 0}, "`doc_stride` must be at least 1"),
        ({"dev_fraction": 1.0}, "`dev_fraction` must be at least 0 and below 1"),
        ({"dev_fraction": 0.1, "dev_file": "x"}, "and 0 with a `dev_file`"),
        ({"data_dir": ""}, "Give `data_dir`, or `train_files` with `dev_file` or"),
        ({"labels": ("a", "a")}, "`labels` must be different names"),
        ({"task": "panx", "labels": ("PER", "O")}, "must be O, B-<type> and I-<type>"),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: batch_size=0"),
        ({"max_seq_length": 4}, "`max_seq_length` must be at least 5. Received: max_seq_length=4"),
        ({"max_train_examples": -1}, "`max_train_examples` must be at least 0"),
        ({"seed": -1}, r"`seed` must be between 0 and 2\*\*63 - 1. Received: seed=-1"),
        ({"seed": 2**63}, r"`seed` must be between 0 and 2\*\*63 - 1. Received: seed=9223"),
        ({"train_language": ""}, "`train_language` must be a language"),
    ],
)
def test_the_configuration_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


def test_every_field_of_the_configuration_says_what_it_is_for():
    fields = FinetuningDataConfig.__dataclass_fields__.values()
    assert all(field.metadata["help"].endswith(".") for field in fields)
