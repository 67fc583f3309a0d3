"""Batches for the masked language model, drawn from the records of many languages for ever.

    one stream a language:  shards (order by epoch) -> documents -> sequences -> shuffled in blocks -> next epoch
    the choice:             example number -> language
    the batch:              sequences -> masks

Each step is a pure function of the seed and of numbers (example, epoch, block), so batch s can be reached without
making the batches before it: the languages of all earlier examples are counted, and each stream starts in the epoch and
at the sequence where it would stand.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rembert_tf.pipelines import records, sampling, sequences
from rembert_tf.pipelines.config import PretrainingDataConfig
from rembert_tf.pipelines.manifest import Manifest
from rembert_tf.pipelines.masking import DynamicMasking
from rembert_tf.pipelines.packing import Packer
from rembert_tf.pipelines.stateless_random import Stream, hash_uint32, word_of
from rembert_tf.pipelines.tokenization import RemBertTokenizer

_CHOICES_AT_ONCE = 1024
_EVALUATION_SEED = 0


def make_pretraining_dataset(
    config: PretrainingDataConfig, tokenizer: RemBertTokenizer, *, start_batch: int = 0
) -> tf.data.Dataset:
    """Makes an endless dataset of masked batches.

    Batch s is the same for every `start_batch` up to s, at any parallelism, and on any number of devices.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        start_batch: Number of the first batch.

    Returns:
        Dataset of (features, labels, sample weights). Features: `input_ids`, `attention_mask`, `token_type_ids` int32
        [B, T], `masked_lm_positions` int32 [B, P], `dropout_keys` uint32 [B]; labels: the original pieces int32 [B, P];
        weights: float32 [B, P], 0 where there is nothing to predict.

    Raises:
        FileNotFoundError: There are no complete records.
        ValueError: A file has another size than the manifest says, or the records belong to another vocabulary. A
            damaged record shows when it is read; `records.naming_damage` turns that into a ValueError too.

    Example:
        >>> config = PretrainingDataConfig(records_dir=records_folder, batch_size=8)
        >>> dataset = make_pretraining_dataset(config, tokenizer)  # for model.fit(dataset, ...)
        >>> features, labels, weights = next(iter(dataset))
        >>> features["input_ids"].shape, labels.shape
        (TensorShape([8, 128]), TensorShape([8, 19]))
    """
    manifest = open_records(config, tokenizer)
    planned = sampling.shares(manifest.sentences(), config.language_alpha)
    start_example = start_batch * config.batch_size
    drawn = sampling.counts(config.seed, start_example, planned)
    packer = _packer(config, tokenizer)
    stream = sequences.training_stream(packer, config.shuffle_buffer, config.seed)
    streams = []
    for language in planned:
        per_epoch = packer.count(manifest.document_lengths(language, "train"))
        epoch, sequence = divmod(drawn[language], per_epoch)
        shards = records.as_tensors(manifest.shards(language, "train"))
        # The name, not the place in the list: a language keeps its order when others come and go.
        key = tf.constant(word_of(language), tf.int64)
        streams.append(stream(key, *shards, tf.constant([epoch, sequence], tf.int64)))

    def choose(first):
        return sampling.language_of_example(
            config.seed, first + tf.range(_CHOICES_AT_ONCE, dtype=tf.int64), planned
        )

    choices = (
        tf.data.Dataset.range(start_example, tf.int64.max, _CHOICES_AT_ONCE).map(choose).unbatch()
    )
    chosen = tf.data.Dataset.choose_from_datasets(streams, choices, stop_on_empty_dataset=True)
    batches = chosen.batch(config.batch_size, drop_remainder=True).enumerate(start_batch)
    to_batch = _batch_function(config, tokenizer, config.seed)
    masked = batches.map(
        lambda number, batch: to_batch(
            number, tf.ensure_shape(batch, [config.batch_size, config.max_seq_length])
        ),
        num_parallel_calls=config.num_parallel_calls or tf.data.AUTOTUNE,
    )
    # Workers need not ask each other in every step whether there is one more batch.
    endless = masked.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))
    return _with_options(endless.prefetch(tf.data.AUTOTUNE))


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
        ValueError: The records are damaged or belong to another vocabulary.
    """
    manifest = open_records(config, tokenizer)
    packer = _packer(config, tokenizer)
    heldout = sequences.heldout_batches(packer, config.batch_size)
    to_batch = _batch_function(config, tokenizer, _EVALUATION_SEED)
    datasets = {}
    for language in manifest.languages:
        available = packer.count(manifest.document_lengths(language, "heldout"))
        wanted = min(available, max_sequences)
        if wanted:
            shards = records.as_tensors(manifest.shards(language, "heldout"))
            with records.naming_damage():
                packed = heldout(*shards, tf.constant([available, wanted], tf.int64))
            batches = [to_batch(number, batch) for number, batch in enumerate(packed)]
            stacked = tf.nest.map_structure(lambda *parts: tf.stack(parts), *batches)
            datasets[language] = _with_options(tf.data.Dataset.from_tensor_slices(stacked))
    return datasets


class BaselineScore(NamedTuple):
    """How well a language's own unigrams predict its masked pieces.

    Attributes:
        cross_entropy: Mean of -ln p over the predictions, in nats.
        accuracy: Share of the predictions that are the most frequent piece.
        predictions: Number of predictions.
    """

    cross_entropy: float
    accuracy: float
    predictions: int


def unigram_baseline(
    config: PretrainingDataConfig, tokenizer: RemBertTokenizer, datasets: dict[str, tf.data.Dataset]
) -> dict[str, BaselineScore]:
    """Scores the simplest model at the very positions of the evaluation: how frequent a piece is in its language.

    The counts are those of the training documents, plus one for each ordinary piece.

    Args:
        config: The settings.
        tokenizer: The tokenizer the records were built with.
        datasets: What `make_evaluation_datasets` returned.

    Returns:
        Scores by language.
    """
    manifest = open_records(config, tokenizer)
    scores = {}
    for language, dataset in datasets.items():
        smoothed = np.zeros(tokenizer.vocab_size)
        ordinary = tokenizer.ordinary_ids
        smoothed[ordinary] = manifest.unigram_counts(language)[ordinary] + 1.0
        labels = np.concatenate(
            [labels[weights > 0] for _, labels, weights in dataset.as_numpy_iterator()]
        )
        total = max(1, len(labels))
        scores[language] = BaselineScore(
            cross_entropy=float(np.sum(np.log(smoothed.sum()) - np.log(smoothed[labels])) / total),
            accuracy=float(np.sum(labels == np.argmax(smoothed)) / total),
            predictions=len(labels),
        )
    return scores


def open_records(config: PretrainingDataConfig, tokenizer: RemBertTokenizer) -> Manifest:
    """Reads and checks the manifest of the records, restricted to the languages asked for."""
    manifest = Manifest.read(config.records_dir).select(config.languages)
    manifest.check_vocabulary(tokenizer.fingerprint)
    manifest.check_sizes()
    return manifest


def _packer(config: PretrainingDataConfig, tokenizer: RemBertTokenizer) -> Packer:
    return Packer(
        packing=config.packing,
        max_seq_length=config.max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
    )


def _batch_function(config: PretrainingDataConfig, tokenizer: RemBertTokenizer, seed: int):
    """Makes the function from (batch number, sequences) to a masked batch."""
    masking = DynamicMasking(
        ordinary_ids=tokenizer.ordinary_ids,
        vocab_size=tokenizer.vocab_size,
        mask_id=tokenizer.mask_id,
        masking_rate=config.masking_rate,
        max_predictions_per_seq=config.predictions_per_seq,
        seed=seed,
    )

    @tf.function(
        input_signature=[
            tf.TensorSpec([], tf.int64),
            tf.TensorSpec([config.batch_size, config.max_seq_length], tf.int32),
        ],
        autograph=False,
    )
    def to_batch(number, sequences):
        examples = number * config.batch_size + tf.range(config.batch_size, dtype=tf.int64)
        masked = masking(sequences, examples)
        features = {
            "input_ids": masked["input_ids"],
            "attention_mask": tf.cast(sequences != tokenizer.pad_id, tf.int32),
            "token_type_ids": tf.zeros_like(sequences),
            "masked_lm_positions": masked["masked_lm_positions"],
            "dropout_keys": hash_uint32(seed, Stream.DROPOUT, examples),
        }
        return features, masked["masked_lm_ids"], masked["masked_lm_weights"]

    return to_batch


def _with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # The rewriter gives each language functions of its own again: 10 s to the first batch, not 1 s.
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)
