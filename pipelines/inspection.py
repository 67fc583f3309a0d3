"""Records in readable form: the sentences of documents, and examples with their masks as the model gets them."""

from collections.abc import Iterator

import numpy as np
import sentencepiece
import tensorflow as tf

from rembert_tf.pipelines import record_reader, sampling
from rembert_tf.pipelines.config import InspectionConfig, PretrainingDataConfig
from rembert_tf.pipelines.manifest import Manifest
from rembert_tf.pipelines.pretraining import make_pretraining_dataset
from rembert_tf.pipelines.record_reader import Run
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def inspect_records(config: PretrainingDataConfig, which: InspectionConfig) -> Iterator[str]:
    """Yields lines to print.

    Args:
        config: Where the records are, and how the training run makes examples of them.
        which: What to print.

    Raises:
        OSError: There are no complete records, or a file is absent or cannot be read.
        ValueError: They are damaged, or a language is absent.
    """
    tokenizer = RemBertTokenizer.from_file(config.records_dir)
    with record_reader.naming_damage():
        if which.masks:
            yield from _examples(config, which, tokenizer)
        else:
            yield from _documents(config, which, tokenizer)


def _documents(
    config: PretrainingDataConfig, which: InspectionConfig, tokenizer: RemBertTokenizer
) -> Iterator[str]:
    manifest = Manifest.read(config.records_dir).select(config.languages)
    manifest.check_vocabulary(tokenizer.fingerprint)
    pieces = np.array(tokenizer.pieces(), object)
    text = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    split = "heldout" if which.heldout else "train"
    for language in manifest.languages:
        record_reader.check_files(path for path, _ in manifest.shards(language, split))
        first = 0
        for path, documents in manifest.shards(language, split):
            start = max(which.first, first)
            end = min(which.first + which.count, first + documents)
            for number, (ids, lengths) in enumerate(_read(path, start - first, end - start), start):
                yield (
                    f"{language}, {split} document {number}: {len(lengths)} sentences, {len(ids)} pieces "
                    f"({path}, record {number - first})"
                )
                for sentence in np.split(ids, np.cumsum(lengths)[:-1]):
                    yield f"  text    {text.decode(sentence.tolist())}"
                    yield f"  pieces  {' '.join(pieces[sentence])}"
            first += documents


def _read(path: str, first: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Reads the ids, int32 [pieces], and sentence lengths, int32 [sentences], of some documents of a file."""
    if count <= 0:
        return
    run = Run(path, first, count)
    numbers = (tf.constant(number, tf.int64) for number in run[1:])
    for block in record_reader.read_run(tf.constant(path), *numbers):
        for ids, lengths in zip(block.input_ids, block.sentence_lengths, strict=True):
            yield ids.numpy(), lengths.numpy()


def _examples(
    config: PretrainingDataConfig, which: InspectionConfig, tokenizer: RemBertTokenizer
) -> Iterator[str]:
    pieces = np.array(tokenizer.pieces(), object)
    manifest = Manifest.read(config.records_dir).select(config.languages)
    planned = sampling.shares(manifest.sentences(), config.language_alpha)
    numbers = range(which.first, which.first + which.count)
    drawn = sampling.language_of_example(config.seed, tf.constant(numbers, tf.int64), planned)
    languages = [list(planned)[index] for index in drawn.numpy()]
    start_batch = which.first // config.batch_size
    batches = make_pretraining_dataset(config, tokenizer, start_batch=start_batch)
    rows = batches.unbatch().skip(which.first - start_batch * config.batch_size).take(which.count)
    for number, language, row in zip(numbers, languages, rows.as_numpy_iterator(), strict=True):
        features, labels, weights = row
        ids = features["input_ids"][features["attention_mask"] == 1]
        positions = features["masked_lm_positions"][weights > 0]
        yield f"example {number}, {language}: {len(ids)} pieces, {len(positions)} to predict"
        yield f"  input   {' '.join(pieces[ids])}"
        for position, original in zip(positions, labels[weights > 0], strict=True):
            put = ids[position]
            yield (
                f"  {position:6d}  {pieces[original]} -> {pieces[put]}  "
                f"({kind_of_replacement(original, put, tokenizer.mask_id)})"
            )


def kind_of_replacement(original: int, put: int, mask_id: int) -> str:
    """Says what was put in place of a piece: "mask", "random" (another piece) or "kept".

    A random piece that happens to be the original one is "kept".
    """
    if put == mask_id:
        return "mask"
    return "kept" if put == original else "random"
