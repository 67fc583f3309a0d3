import pathlib

import numpy as np
import pytest
import tensorflow as tf

from rembert_tf.pipelines import finetuning, readers, stateless_random, tagging, xtreme
from rembert_tf.pipelines.features import Features
from rembert_tf.pipelines.finetuning_config import FinetuningDataConfig

DOWNLOAD = pathlib.Path(__file__).parents[3] / "shared" / "data" / "xtreme" / "download"
PAD_ID = 9


def config(**changes):
    settings = {
        "task": "xnli",
        "data_dir": "data",
        "batch_size": 4,
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
    )


def take(features, count, start_batch=0, **changes):
    dataset = finetuning.make_training_dataset(features, config(**changes), start_batch=start_batch)
    return list(dataset.take(count).as_numpy_iterator())


def rows_of(batches):
    return [int(row) for inputs, _, _ in batches for row in inputs["input_ids"][:, 0] // 100]


def assert_equal(first, second):
    tf.nest.map_structure(np.testing.assert_array_equal, first, second)


# Training


def test_each_epoch_is_another_permutation_of_all_rows():
    features = make_features([3, 9, 5, 4, 7, 2, 6])
    rows = rows_of(take(features, 14))
    epochs = [tuple(rows[start : start + 7]) for start in range(0, 56, 7)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len(set(epochs)) == 8
    assert rows != rows_of(take(features, 14, seed=4))
    assert rows_of(take(make_features([3]), 2)) == [0] * 8


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
    batches = take(make_features([3, 4, 5]), 3, start_batch=2)
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


# From files


def write_pairs(path, count):
    path.write_text("".join(f"{'a ' * n}end\tother\tneutral\n" for n in range(count)))
    return path


def test_a_limited_number_of_examples_is_drawn_by_the_seed(tmp_path, tokenizer):
    task = xtreme.get_task("xnli")
    path = write_pairs(tmp_path / "train-en.tsv", 50)

    def draw(**settings):
        features = readers.load_features(task, path, tokenizer, 256, **settings)
        return [row.tolist() for row in np.split(features.input_ids, features.row_splits[1:-1])]

    everything = draw()
    assert len(everything) == 50 and draw(max_examples=60) == everything
    some = draw(max_examples=10, seed=1)
    assert some == draw(max_examples=10, seed=1) != draw(max_examples=10, seed=2)
    numbers = [everything.index(row) for row in some]
    assert numbers == sorted(set(numbers)) and len(numbers) == 10
    assert numbers != list(range(10)), "not just the start of the file"


def test_from_a_file_to_predictions_of_each_kind(tmp_path, tokenizer):
    tagging_file = tmp_path / "udpos.tsv"
    tagging_file.write_text("One\tNUM\n\tX\nword\tNOUN\n\n" + "many\tADJ\nwords\tNOUN\n" * 40)
    files = {"udpos": tagging_file, "xnli": write_pairs(tmp_path / "xnli.tsv", 7)}
    for name, task in xtreme.TASKS.items():
        reader = readers.READERS[task.kind]
        features = readers.load_features(task, files[name], tokenizer, 24)
        batches = finetuning.make_inference_dataset(features, 3)
        outputs = [labels for _, labels, _ in batches.dataset.as_numpy_iterator()]
        predictions = reader.predictions(features, batches.restore(outputs))
        reader.write_predictions(tmp_path / "out" / f"{name}.tsv", predictions)
        written = (tmp_path / "out" / f"{name}.tsv").read_text().split("\n")
        labels_in_file = [line.split("\t")[-1] for line in files[name].read_text().split("\n")]
        assert written == labels_in_file


@pytest.mark.skipif(not (DOWNLOAD / "udpos").is_dir(), reason="needs XTREME's files")
def test_real_files_through_batches_and_back(tokenizer):
    for name, languages in (("udpos", ("af", "mr", "zh")), ("xnli", ("sw",))):
        task = xtreme.get_task(name)
        for language in languages:
            path = xtreme.find_split(task, DOWNLOAD, "dev", language)
            features = readers.load_features(task, path, tokenizer, 64)
            batches = finetuning.make_inference_dataset(features, 64)
            outputs = [labels for _, labels, _ in batches.dataset.as_numpy_iterator()]
            np.testing.assert_array_equal(batches.restore(outputs), features.labels)


# Configuration


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "xnil"}, "`task` must be one of udpos, xnli. Received: task='xnil'"),
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
