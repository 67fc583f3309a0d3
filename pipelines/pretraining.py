"""Batches for the masked language model, drawn from the records of many languages for ever.

    a stream a language:  runs of records (order by epoch) -> documents -> sequences -> shuffled in blocks -> next epoch
    the choice:           example number -> language
    the batch:            sequences -> masks

Each step is a pure function of the seed and of numbers (example, epoch, block), so batch s can be reached without
making the batches before it: the languages of all earlier examples are counted, and each stream starts in the epoch and
at the block of documents where it would stand.
"""

import tensorflow as tf

from rembert_tf.pipelines import data_service, masked_share, record_reader, sampling, sequences
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.masked_batches import batch_function, batches_at_once, rows_of_worker
from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.readable_records import open_records, records_by_language
from rembert_tf.pipelines.stateless_random import word_of
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_CHOICES_AT_ONCE = 1024
_EVALUATION_SEED = 0


def make_pretraining_dataset(
    config: PretrainingDataConfig,
    tokenizer: RemBertTokenizer,
    *,
    start_batch: int = 0,
    worker: int = 0,
    workers: int = 1,
) -> tf.data.Dataset:
    """Makes an endless dataset of masked batches.

    Batch s is the same for every `start_batch` up to s, at any parallelism, with or without a tf.data service, and on
    any number of devices. The rows of all workers together are those of the batch that one would make.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        start_batch: Number of the first batch.
        worker: Which of `workers` asks. It gets its rows of every batch; all others are read, but not masked.
        workers: How many share the rows of each batch.

    Returns:
        Dataset of (features, labels, sample weights). Features: `input_ids`, `attention_mask`, `token_type_ids` int32
        [B, T], `masked_lm_positions` int32 [B, P], `dropout_keys` uint32 [B]; labels: the original pieces int32 [B, P];
        weights: float32 [B, P], 0 where there is nothing to predict. With several workers, `B` is the worker's part.

    Raises:
        OSError: There are no complete records, or a file is absent or cannot be read.
        ValueError: A file has another size than the manifest says, or the records belong to another vocabulary; with
            `skip_damaged`, too many are damaged. Without it, a damaged record shows when it is read, and
            `record_reader.naming_damage` turns that into a ValueError. Or nothing is masked.

    Example:
        >>> config = PretrainingDataConfig(records_dir=records_folder, batch_size=8)
        >>> dataset = make_pretraining_dataset(config, tokenizer)  # for model.fit(dataset, ...)
        >>> features, labels, weights = next(iter(dataset))
        >>> features["input_ids"].shape, labels.shape
        (TensorShape([8, 128]), TensorShape([8, 19]))
    """
    rows = rows_of_worker(config.batch_size, worker, workers)
    manifest = open_records(config, tokenizer)
    planned = sampling.shares(manifest.sentences(), config.language_alpha)
    start_example = start_batch * config.batch_size
    drawn = sampling.counts(config.seed, start_example, planned)
    packer = _packer(config, tokenizer)
    stream = sequences.training_stream(packer, config.shuffle_buffer, config.seed)
    streams = []
    records = records_by_language(config, manifest, "train")
    to_batches = batch_function(config, tokenizer, seed=config.seed, rows=rows)
    begins = [runs[0] for runs, _ in records.values()]
    masked_share.check_training(config, packer, begins, to_batches, len(rows))
    for language, (runs, index) in records.items():
        epochs = sequences.Epochs(packer, index, runs)
        # The name, not the place in the list: a language keeps its order when others come and go.
        streams.append(stream(word_of(language), runs, epochs, drawn[language]))

    def choose(first):
        return sampling.language_of_example(
            config.seed, first + tf.range(_CHOICES_AT_ONCE, dtype=tf.int64), planned
        )

    choices = (
        tf.data.Dataset.range(start_example, tf.int64.max, _CHOICES_AT_ONCE).map(choose).unbatch()
    )
    chosen = tf.data.Dataset.choose_from_datasets(streams, choices, stop_on_empty_dataset=True)
    batches = chosen.batch(config.batch_size, drop_remainder=True).enumerate(start_batch)
    if config.data_service:
        batches = data_service.of_this_worker(batches)

    def mask(numbers, several):
        several = tf.ensure_shape(several, [None, config.batch_size, config.max_seq_length])
        return numbers, to_batches(numbers, several[:, rows.start : rows.stop])

    masked = (
        batches.batch(batches_at_once(config))
        .map(mask, num_parallel_calls=config.num_parallel_calls or tf.data.AUTOTUNE)
        .unbatch()
    )
    # Workers need not ask each other in every step whether there is one more batch.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    masked = _with_options(masked.apply(endless))
    if config.data_service:
        made = data_service.through_service(masked, config.data_service, start_batch).apply(endless)
    else:
        made = masked.map(lambda _, batch: batch)
    return _with_options(made.prefetch(tf.data.AUTOTUNE))


def make_evaluation_datasets(
    config: PretrainingDataConfig, tokenizer: RemBertTokenizer, *, max_sequences: int
) -> dict[str, tf.data.Dataset]:
    """Makes a finite dataset of masked held-out sequences for each language that has some.

    The batches are made once and held in memory (16 bytes a piece of a sequence): an evaluation starts at once, however
    many languages there are. The masks are the same in every run, whatever `config.seed` is. The last batch is filled
    up with empty sequences of weight 0.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        max_sequences: Sequences of a language, at most, spread evenly over its held-out documents.

    Returns:
        By language, a dataset of batches as `make_pretraining_dataset` gives them.

    Raises:
        FileNotFoundError: There are no complete records.
        ValueError: The records are damaged or belong to another vocabulary; or nothing is masked.
    """
    manifest = open_records(config, tokenizer)
    packer = _packer(config, tokenizer)
    heldout = sequences.heldout_batches(packer, config.batch_size)
    to_batches = batch_function(
        config, tokenizer, seed=_EVALUATION_SEED, rows=range(config.batch_size)
    )
    datasets, share = {}, masked_share.MaskedShare()
    for language, (runs, index) in records_by_language(config, manifest, "heldout").items():
        available = sequences.Epochs(packer, index, runs).sequences
        wanted = min(available, max_sequences)
        if wanted:
            numbers = tf.constant([available, wanted], tf.int64)
            with record_reader.naming_damage():
                packed = heldout(*record_reader.as_tensors(runs), numbers)
            stacked = to_batches(tf.range(len(packed), dtype=tf.int64), packed)
            datasets[language] = _with_options(tf.data.Dataset.from_tensor_slices(stacked))
            features, _, weights = stacked
            share.add(features["attention_mask"], weights)
    if datasets:
        share.check(config, "held-out")
    return datasets


def _packer(config: PretrainingDataConfig, tokenizer: RemBertTokenizer) -> Packer:
    return Packer(
        packing=config.packing,
        max_seq_length=config.max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
    )


def _with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # The rewriter gives each language functions of its own again: 10 s to the first batch, not 1 s.
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)
