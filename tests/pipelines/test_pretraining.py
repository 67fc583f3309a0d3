import collections
import dataclasses
import re
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from rembert_tf.pipelines import mask_units, pretraining, record_reader, sampling, sequences
from rembert_tf.pipelines.config import PretrainingDataConfig, RecordsConfig
from rembert_tf.pipelines.manifest import Manifest
from rembert_tf.pipelines.masked_batches import check_rows, rows_of_worker
from rembert_tf.pipelines.record_builder import build_records
from rembert_tf.pipelines.record_index import RecordIndex
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.unigram_baseline import unigram_baseline

B, T = 6, 24


@pytest.fixture(scope="module")
def config(records_folder):
    return PretrainingDataConfig(
        records_dir=str(records_folder),
        batch_size=B,
        max_seq_length=T,
        shuffle_buffer=16,
        languages=("en", "hi", "zh"),
        seed=3,
    )


@pytest.fixture(scope="module")
def batches(config, tokenizer):
    """Makes a list of batches."""

    def make(count, start_batch=0, **changes):
        dataset = pretraining.make_pretraining_dataset(
            dataclasses.replace(config, **changes), tokenizer, start_batch=start_batch
        )
        return list(dataset.take(count).as_numpy_iterator())

    return make


@pytest.fixture(scope="module")
def stream(batches):
    """The first 200 batches: many epochs of each language."""
    return batches(200)


def assert_equal(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, a, b)


def unmasked(batch):
    """Puts the original pieces back; int32 [B, T]."""
    features, labels, weights = batch
    ids = features["input_ids"].copy()
    rows, slots = np.nonzero(weights)
    ids[rows, features["masked_lm_positions"][rows, slots]] = labels[rows, slots]
    return ids


def sequences_of(made):
    return [tuple(row) for batch in made for row in unmasked(batch).tolist()]


def expected_sequences(config, tokenizer, language, split="train", without=()):
    """Cuts the documents of the small world with plain Python, without some (path, number)."""
    manifest = Manifest.read(config.records_dir)
    expected = []
    for path, _ in manifest.shards(language, split):
        records = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
        for number, record in enumerate(records):
            if (path, number) in without:
                continue
            feature = tf.train.Example.FromString(record).features.feature
            ids = list(feature["input_ids"].int64_list.value)
            for start in range(0, len(ids), T - 2):
                row = [tokenizer.cls_id, *ids[start : start + T - 2], tokenizer.sep_id]
                expected.append(tuple(row + [tokenizer.pad_id] * (T - len(row))))
    return expected


def test_batches_are_what_training_expects(config, tokenizer, stream):
    dataset = pretraining.make_pretraining_dataset(config, tokenizer)
    predictions = 3  # 0.15 of 22 pieces
    assert config.predictions_per_seq == predictions
    policy = dataset.options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF  # case C14: no warnings
    features, labels, weights = dataset.element_spec
    expected = {
        "input_ids": ([B, T], tf.int32),
        "attention_mask": ([B, T], tf.int32),
        "token_type_ids": ([B, T], tf.int32),
        "masked_lm_positions": ([B, predictions], tf.int32),
        "dropout_keys": ([B], tf.uint32),
    }
    assert {name: (spec.shape, spec.dtype) for name, spec in features.items()} == expected
    assert (labels.shape, labels.dtype) == ([B, predictions], tf.int32)
    assert (weights.shape, weights.dtype) == ([B, predictions], tf.float32)

    for batch in stream[:20]:
        features, _, weights = batch
        ids = unmasked(batch)
        assert (features["attention_mask"] == (ids != tokenizer.pad_id)).all()
        assert (ids[:, 0] == tokenizer.cls_id).all()
        assert ((ids == tokenizer.sep_id).sum(axis=1) == 1).all()
        assert tokenizer.mask_id not in ids and tokenizer.mask_id in features["input_ids"]
        assert not features["token_type_ids"].any()
        assert (weights.sum(axis=1) >= 1).all()
    keys = np.concatenate([features["dropout_keys"] for features, _, _ in stream[:20]])
    assert len(set(keys.tolist())) == 20 * B


def test_batches_from_a_later_start_are_those_of_the_unbroken_stream(batches, stream):
    for start in (1, 120):
        assert_equal(batches(7, start_batch=start), stream[start : start + 7])


@pytest.mark.parametrize(
    "packing, masking, documents_per_block",
    [("document", "whole_word", 3), ("sentences", "piece", 1), ("contiguous", "ngram", 2)],
)
def test_every_start_finds_its_place(batches, monkeypatch, packing, masking, documents_per_block):
    for module in (sequences, record_reader):
        monkeypatch.setattr(module, "DOCUMENTS_PER_BLOCK", documents_per_block)
    settings = dict(packing=packing, masking=masking, languages=("en", "zh"), shuffle_buffer=7)
    unbroken = batches(51, **settings)
    for start in (3, 29, 47):
        assert_equal(batches(4, start_batch=start, **settings), unbroken[start : start + 4])


@pytest.mark.parametrize("workers", [2, 4])
def test_the_rows_of_all_workers_are_the_batch(config, tokenizer, stream, workers):
    # 6 rows over 4 workers: 1, 2, 1, 2.
    parts = []
    for worker in range(workers):
        dataset = pretraining.make_pretraining_dataset(
            config, tokenizer, start_batch=9, worker=worker, workers=workers
        )
        assert dataset.element_spec[1].shape[0] == len(rows_of_worker(B, worker, workers))
        parts.append(list(dataset.take(4).as_numpy_iterator()))
    for batch, *of_workers in zip(stream[9:13], *parts, strict=True):
        joined = tf.nest.map_structure(lambda *rows: np.concatenate(rows), *of_workers)
        assert_equal([joined], [batch])


def test_workers_rows_are_disjoint_and_cover_the_batch():
    for size, workers in ((8, 1), (8, 3), (64, 7), (5, 5)):
        check_rows(size, [rows_of_worker(size, worker, workers) for worker in range(workers)])
    for rows, problem in (
        ([range(0, 3), range(2, 4)], "row 2 is made by 2"),
        ([range(0, 2), range(3, 4)], "row 2 is made by 0"),
        ([range(0, 2), range(0, 2)], "row 0 is made by 2"),  # the same worker twice
        ([range(0, 5)], "Row 4 is none of a batch of 4"),
    ):
        with pytest.raises(ValueError, match=problem):
            check_rows(4, rows)
    for worker, workers in ((2, 2), (-1, 2)):
        with pytest.raises(ValueError, match="`worker` must be from 0 to workers - 1. Received"):
            rows_of_worker(4, worker, workers)
    with pytest.raises(ValueError, match="`workers` must not exceed .* 4. Received: workers=5"):
        rows_of_worker(4, 0, 5)


def test_any_keras_model_with_these_features_trains_on_it(config, tokenizer):
    ids = keras.Input((T,), dtype="int32", name="input_ids")
    positions = keras.Input((3,), dtype="int32", name="masked_lm_positions")
    hidden = keras.layers.Embedding(tokenizer.vocab_size, 16)(ids)
    gathered = keras.ops.take_along_axis(hidden, positions[..., None], axis=1)
    logits = keras.layers.Dense(tokenizer.vocab_size)(gathered)
    model = keras.Model({"input_ids": ids, "masked_lm_positions": positions}, logits)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss, weighted_metrics=["accuracy"])

    def needed(features, labels, weights):
        return {name: features[name] for name in model.input}, labels, weights

    dataset = pretraining.make_pretraining_dataset(config, tokenizer).map(needed)
    history = model.fit(dataset, steps_per_epoch=40, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0] - 0.3


def test_the_stream_depends_on_the_seed_alone(config, tokenizer, batches, stream):  # case F8
    tf.random.set_seed(99)  # as keras.utils.set_random_seed does
    for calls, threads in ((1, 1), (8, 2)):
        dataset = pretraining.make_pretraining_dataset(
            dataclasses.replace(config, num_parallel_calls=calls), tokenizer
        )
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        made = dataset.with_options(options).take(60).as_numpy_iterator()
        assert_equal(list(made), stream[:60])
    assert sequences_of(batches(10, seed=4)) != sequences_of(stream[:10])


@pytest.mark.parametrize("shuffle_buffer", [5, 1000])
def test_an_epoch_holds_every_sequence_once_in_another_order(
    config, tokenizer, batches, shuffle_buffer
):
    expected = collections.Counter(expected_sequences(config, tokenizer, "zh"))
    size = sum(expected.values())
    epochs = 6
    rows = sequences_of(
        batches(size * epochs, languages=("zh",), batch_size=1, shuffle_buffer=shuffle_buffer)
    )
    orders = [tuple(rows[i * size : (i + 1) * size]) for i in range(epochs)]
    for order in orders:
        assert collections.Counter(order) == expected
    assert len(set(orders)) == epochs


@pytest.mark.parametrize("packing", ["document", "sentences", "contiguous"])
def test_an_epoch_loses_and_doubles_no_piece(config, tokenizer, batches, packing):
    manifest = Manifest.read(config.records_dir)
    runs = [record_reader.Run(path, 0, count) for path, count in manifest.shards("zh", "train")]
    changed = dataclasses.replace(config, packing=packing)
    packer = pretraining._packer(changed, tokenizer)
    size = sequences.Epochs(packer, manifest.index("zh", "train"), runs).sequences
    specials = tokenizer.special_ids[tokenizer.special_ids != tokenizer.unk_id]

    def pieces(rows):
        return collections.Counter(i for row in rows for i in row if i not in specials)

    expected = pieces(expected_sequences(config, tokenizer, "zh"))
    made = batches(2 * size, languages=("zh",), batch_size=1, packing=packing)
    for epoch in (made[:size], made[size:]):
        assert pieces(sequences_of(epoch)) == expected


def test_masks_differ_between_epochs(config, tokenizer, batches):  # case F9
    size = len(expected_sequences(config, tokenizer, "zh"))
    masks = collections.defaultdict(list)
    for batch in batches(3 * size, languages=("zh",), batch_size=1):
        masks[sequences_of([batch])[0]].append(tuple(batch[0]["input_ids"][0].tolist()))
    different = [len(set(seen)) > 1 for seen in masks.values()]
    assert min(map(len, masks.values())) >= 3
    assert np.mean(different) > 0.9


def test_languages_come_as_planned_and_none_runs_dry(config, tokenizer, stream):  # case F13
    manifest = Manifest.read(config.records_dir).select(config.languages)
    rows = {}
    for language in config.languages:
        rows.update(dict.fromkeys(expected_sequences(config, tokenizer, language), language))
    drawn = [rows[row] for row in sequences_of(stream)]
    planned = sampling.shares(manifest.sentences(), config.language_alpha)
    assert collections.Counter(drawn) == sampling.counts(config.seed, 200 * B, planned)
    assert set(drawn[-30:]) == set(planned)


def test_a_language_keeps_its_order_when_others_come_and_go(config, tokenizer, batches, stream):
    rows = set(expected_sequences(config, tokenizer, "hi"))
    three = [row for row in sequences_of(stream) if row in rows]
    two = [row for row in sequences_of(batches(100, languages=("hi", "zh"))) if row in rows]
    shared = min(len(three), len(two))
    assert shared > 80 and three[:shared] == two[:shared]


def test_evaluation_holds_the_heldout_sequences_with_fixed_masks(config, tokenizer, stream):
    datasets = pretraining.make_evaluation_datasets(config, tokenizer, max_sequences=1000)
    assert list(datasets) == ["en", "hi", "zh"]
    for language, dataset in datasets.items():
        expected = expected_sequences(config, tokenizer, language, "heldout")
        made = list(dataset.as_numpy_iterator())
        assert tf.nest.map_structure(np.shape, made[0]) == tf.nest.map_structure(
            np.shape, stream[0]
        )
        assert len(made) == int(dataset.cardinality()) == -(-len(expected) // B)
        rows = sequences_of(made)
        assert rows[: len(expected)] == expected
        weights = np.concatenate([weights for _, _, weights in made])
        assert (weights[: len(expected)].sum(axis=1) >= 1).all()
        assert not weights[len(expected) :].any()
        filler = [tokenizer.cls_id, tokenizer.sep_id, *[tokenizer.pad_id] * (T - 2)]
        assert set(rows[len(expected) :]) <= {tuple(filler)}
    other_seed = dataclasses.replace(config, seed=77)
    again = pretraining.make_evaluation_datasets(other_seed, tokenizer, max_sequences=1000)
    for language, dataset in datasets.items():
        assert_equal(list(again[language].as_numpy_iterator()), list(dataset.as_numpy_iterator()))


def test_the_share_of_masked_pieces_is_logged_and_never_nothing(  # case F3
    config, tokenizer, monkeypatch
):
    lines = []
    monkeypatch.setattr(logging, "info", lambda text, *values: lines.append(text % values))
    settings = dataclasses.replace(config, max_seq_length=128)
    pretraining.make_evaluation_datasets(settings, tokenizer, max_sequences=1000)
    pieces = sum(
        Manifest.read(config.records_dir).languages[language].heldout.tokens
        for language in config.languages
    )
    share, of = re.fullmatch(r"(\S+) % of (\d+) held-out pieces are masked.", lines[-1]).groups()
    assert int(of) == pieces and abs(float(share) - 15) < 1.5
    monkeypatch.setattr(mask_units, "choose", lambda _, candidates, *__: candidates & False)
    words = dataclasses.replace(config, masking="whole_word")
    with pytest.raises(ValueError, match=f"none of {pieces} held-out pieces is masked"):
        pretraining.make_evaluation_datasets(words, tokenizer, max_sequences=1000)


def test_the_share_is_measured_without_held_out_documents_too(  # case F3
    config, tokenizer, vocabulary_file, text_folder, tmp_path, monkeypatch
):
    build_records(
        RecordsConfig(
            input_dir=str(text_folder),
            tokenizer=str(vocabulary_file),
            output_dir=str(tmp_path / "records"),
            heldout_fraction=0,
        )
    )
    config = dataclasses.replace(
        config, records_dir=str(tmp_path / "records"), masking="whole_word", max_seq_length=128
    )
    assert pretraining.make_evaluation_datasets(config, tokenizer, max_sequences=9) == {}
    lines = []
    monkeypatch.setattr(logging, "info", lambda text, *values: lines.append(text % values))
    for worker, workers in ((0, 1), (1, 3)):
        pretraining.make_pretraining_dataset(config, tokenizer, worker=worker, workers=workers)
        share, of = re.fullmatch(
            r"(\S+) % of (\d+) training pieces are masked.", lines.pop()
        ).groups()
        assert abs(float(share) - 15) < 2 and 128 < int(of) < 140 * 126
    monkeypatch.setattr(mask_units, "choose", lambda _, candidates, *__: candidates & False)
    with pytest.raises(ValueError, match="none of [0-9]+ training pieces is masked: .* Received"):
        pretraining.make_pretraining_dataset(config, tokenizer)


def test_few_evaluation_sequences_are_spread_evenly(config, tokenizer):
    expected = expected_sequences(config, tokenizer, "en", "heldout")
    datasets = pretraining.make_evaluation_datasets(config, tokenizer, max_sequences=5)
    rows = sequences_of(datasets["en"].as_numpy_iterator())[:5]
    count = len(expected)
    assert count > 12
    assert rows == [expected[-(-i * count // 5)] for i in range(5)]


def test_the_unigram_baseline_by_hand(config, tokenizer):
    datasets = pretraining.make_evaluation_datasets(config, tokenizer, max_sequences=4)
    scores = unigram_baseline(config, tokenizer, datasets)
    for language, dataset in datasets.items():
        rows = expected_sequences(config, tokenizer, language)
        counts = collections.Counter(i for row in rows for i in row)
        ordinary = set(tokenizer.ordinary_ids.tolist())
        counts = {i: counts[i] + 1 for i in ordinary}
        total = sum(counts.values())
        best = max(sorted(counts), key=counts.get)
        labels = [
            int(i)
            for _, labels, weights in dataset.as_numpy_iterator()
            for i in labels[weights > 0]
        ]
        score = scores[language]
        assert score.predictions == len(labels) > 4
        nats = -np.mean([np.log(counts[i] / total) for i in labels])
        assert score.cross_entropy == pytest.approx(nats)
        assert score.accuracy == pytest.approx(np.mean([i == best for i in labels]))


def test_records_of_another_vocabulary_are_refused(config, tokenizer, batches):
    other = RemBertTokenizer(tokenizer.model_bytes)
    other.fingerprint = "0" * 64
    for make in (
        lambda: pretraining.make_pretraining_dataset(config, other),
        lambda: pretraining.make_evaluation_datasets(config, other, max_sequences=4),
    ):
        with pytest.raises(ValueError, match="built with another vocabulary"):
            make()


def test_records_that_are_damaged_are_named(config, tokenizer, tmp_path):
    shutil.copytree(config.records_dir, tmp_path / "records")
    config = dataclasses.replace(config, records_dir=str(tmp_path / "records"), languages=("zh",))
    path = sorted((tmp_path / "records" / "zh").glob("train-*.tfrecord"))[0]
    content = path.read_bytes()

    path.write_bytes(content[:-3])
    with pytest.raises(ValueError, match=f"{path}: damaged: .* bytes, where the manifest says"):
        pretraining.make_pretraining_dataset(config, tokenizer)

    path.write_bytes(content[:100] + bytes([content[100] ^ 4]) + content[101:])
    message = f"^{path}: record ., at byte [0-9]+: damaged"
    with pytest.raises(ValueError, match=message):  # among the few that are masked before the run
        pretraining.make_pretraining_dataset(config, tokenizer)
    path.write_bytes(content)

    path = max(path.parent.glob("train-*.tfrecord"))
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes([content[100] ^ 4]) + content[101:])
    dataset = pretraining.make_pretraining_dataset(config, tokenizer)
    message = f"^{path}: record ., at byte [0-9]+: damaged"
    with pytest.raises(ValueError, match=message), record_reader.naming_damage():
        list(dataset.take(50))

    path.unlink()
    for skip_damaged in (False, True):
        changed = dataclasses.replace(config, skip_damaged=skip_damaged)
        with pytest.raises(FileNotFoundError, match=str(path)):
            pretraining.make_pretraining_dataset(changed, tokenizer)


def test_an_index_that_does_not_fit_the_manifest_is_named(config, tokenizer, tmp_path):
    shutil.copytree(config.records_dir, tmp_path / "records")
    config = dataclasses.replace(config, records_dir=str(tmp_path / "records"), languages=("zh",))
    folder = tmp_path / "records" / "zh"
    index = RecordIndex.read(folder, "train")
    lengths = np.split(index.sentence_lengths, np.cumsum(index.sentences_per_document())[:-1])
    documents = [length.tolist() for length in lengths]
    longer = [[documents[0][0] + 1, *documents[0][1:]], *documents[1:]]
    joined = [documents[0] + documents[1], *documents[2:]]
    fewer = [[sum(document)] for document in documents]
    for changed in (longer, joined, fewer):
        RecordIndex.of_lengths(changed).write(folder, "train")
        with pytest.raises(
            ValueError, match=f"^{folder}/train-lengths.npy: .* where manifest.json"
        ):
            pretraining.make_pretraining_dataset(config, tokenizer)


def test_damage_in_a_training_run_ends_in_one_line(config, tokenizer, tmp_path):
    shutil.copytree(config.records_dir, tmp_path / "re]cords")
    config = dataclasses.replace(config, records_dir=str(tmp_path / "re]cords"), languages=("zh",))
    path = max((tmp_path / "re]cords" / "zh").glob("train-*.tfrecord"))
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes([content[100] ^ 4]) + content[101:])
    dataset = pretraining.make_pretraining_dataset(config, tokenizer)
    ids = keras.Input((T,), dtype="int32")
    model = keras.Model(ids, keras.layers.Embedding(tokenizer.vocab_size, 1)(ids)[:, :1, 0])
    model.compile("sgd", "mse")
    rows = dataset.map(lambda features, labels, weights: (features["input_ids"], weights[:, :1]))
    with pytest.raises(ValueError) as error, record_reader.naming_damage():
        model.fit(rows, steps_per_epoch=50, verbose=0)
    assert str(error.value).startswith(f"{path}: record ")


def test_damaged_records_are_passed_over_where_asked_for(config, tokenizer, tmp_path, monkeypatch):
    shutil.copytree(config.records_dir, tmp_path / "records")
    config = dataclasses.replace(
        config,
        records_dir=str(tmp_path / "records"),
        languages=("en", "zh"),
        skip_damaged=True,
        max_damaged_share=0.5,
    )
    flipped, cut, *_ = sorted((tmp_path / "records" / "zh").glob("train-*.tfrecord"))
    counts = dict(Manifest.read(config.records_dir).shards("zh", "train"))
    damaged = {(str(flipped), 0), (str(cut), counts[str(cut)] - 1)}
    good = set(expected_sequences(config, tokenizer, "zh", without=damaged))
    content = flipped.read_bytes()
    flipped.write_bytes(content[:20] + bytes([content[20] ^ 4]) + content[21:])
    cut.write_bytes(cut.read_bytes()[:-1])
    warnings = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: warnings.append(text % values))

    def make(start, number):
        dataset = pretraining.make_pretraining_dataset(config, tokenizer, start_batch=start)
        return list(dataset.take(number).as_numpy_iterator())

    made = make(0, 60)
    assert_equal(make(41, 6), made[41:47])  # the place in the run is found as ever
    assert warnings[0] == (
        f"{flipped}: 1 of {counts[str(flipped)]} documents are damaged, the first of them is record 0, at byte 12."
    )
    assert f"{cut}: 1 of " in warnings[1] and " train records: 2 of " in f" {warnings[2]}"
    rows = set(sequences_of(made))
    expected = set(expected_sequences(config, tokenizer, "en"))
    assert rows - expected == good  # 60 batches hold every sequence of the small language

    with pytest.raises(ValueError, match="2 of .* train documents are damaged, more than `max_da"):
        strict = dataclasses.replace(config, max_damaged_share=0.001)
        pretraining.make_pretraining_dataset(strict, tokenizer)
    for path in (tmp_path / "records" / "zh").glob("train-*.tfrecord"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="all train documents of zh are damaged"):
        pretraining.make_pretraining_dataset(
            dataclasses.replace(config, max_damaged_share=0.9), tokenizer
        )


@pytest.mark.parametrize(
    "setting, value",
    [("batch_size", 0), ("max_seq_length", 2), ("max_predictions_per_seq", 0),
     ("masking_rate", 0.0), ("language_alpha", -0.5), ("packing", "paragraphs"),
     ("masking", "word"), ("max_ngram", 0), ("data_service", "localhost:5000"), ("max_damaged_share", 1.0),
     ("seed", -1), ("shuffle_buffer", 0), ("num_parallel_calls", 0)],
)  # fmt: skip
def test_settings_are_checked(config, setting, value):
    with pytest.raises(ValueError, match=f"`{setting}` must .* Received: {setting}={value!r}"):
        dataclasses.replace(config, **{setting: value})


def test_settings_that_would_have_no_effect_are_refused(config):
    for wrong, needed in (
        ({"max_ngram": 2}, {"masking": "ngram"}),
        ({"max_damaged_share": 0.1}, {"skip_damaged": True}),
    ):
        ((name, value),) = wrong.items()
        message = f"`{name}` must be left out without .* Received: {name}={value}"
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(config, **wrong)
        assert getattr(dataclasses.replace(config, **wrong, **needed), name) == value
    with pytest.raises(ValueError, match="`max_seq_length` must .* second .SEP.*length=3"):
        dataclasses.replace(config, packing="contiguous", max_seq_length=3)


def test_the_number_of_predictions(config):
    of = {
        (length, limit): dataclasses.replace(
            config, max_seq_length=length, max_predictions_per_seq=limit
        ).predictions_per_seq
        for length, limit in ((128, None), (512, None), (4, None), (128, 10), (12, 20))
    }
    assert list(of.values()) == [19, 77, 1, 10, 10]
