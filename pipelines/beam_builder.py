"""The records of a corpus that one machine cannot hold, built with Apache Beam: byte for byte the local builder's.

The steps are those of `record_builder.py`. What that one learns by going through the documents in order, Beam learns
from small tables with an entry a chunk: how many documents come before a chunk (which decides what is held out), and
how many pieces (which decides the shard). Where duplicates drop out, each hash goes to the machine that finds its first
place.

A place is (number of the reading unit in its language, number of the chunk in its unit).
"""

import collections
import contextlib
import itertools
import pathlib
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from rembert_tf.pipelines import chunk_documents, language_folder, manifest, text_chunks
from rembert_tf.pipelines.chunk_documents import Vocabulary
from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.documents import hold_out
from rembert_tf.pipelines.record_index import RecordIndex
from rembert_tf.pipelines.record_writer import PART, ShardWriter, finish_split, shard_number
from rembert_tf.pipelines.tokenization import RemBertTokenizer

Place = tuple[int, int]


def build_languages(
    inputs: Mapping[str, Sequence[pathlib.Path]],
    settings: Mapping[str, dict],
    config: RecordsConfig,
    tokenizer: RemBertTokenizer,
) -> Iterator[tuple[str, manifest.LanguageRecords]]:
    """Builds languages, all in one pipeline.

    Args:
        inputs: Files by language.
        settings: By language, what decides the content of the records.
        config: The settings; `beam_options` are Beam's own.
        tokenizer: The tokenizer.

    Yields:
        Each language and its records, when all are complete.

    Raises:
        OSError: The disk is full or cannot be written, or Beam fails for another reason.
        ValueError: The text is unusable.
    """
    folder = pathlib.Path(config.output_dir).resolve()
    vocabulary = (str(folder), tokenizer.fingerprint)
    options = PipelineOptions(shlex.split(config.beam_options))
    units = [
        (language, number, [str(path.resolve()) for path in unit])
        for language, files in inputs.items()
        for number, unit in enumerate(text_chunks.reading_units(files))
    ]
    with contextlib.ExitStack() as stack:
        folders = {
            language: str(stack.enter_context(language_folder.building(folder, language)))
            for language in inputs
        }
        with beam.Pipeline(options=options) as pipeline:
            built = _built(pipeline, units, config, vocabulary)
            _write(built, folders, dict(settings), config, tokenizer.vocab_size)
    wanted = {language: settings[language] for language in inputs}
    yield from language_folder.read_complete(folder, wanted, overwrite=False).items()


def _built(pipeline, units, config: RecordsConfig, vocabulary: Vocabulary):
    """From files to ((language, place), BuiltChunk)."""
    chunks = (
        pipeline
        | "Files" >> beam.Create(units)
        | "Spread files" >> beam.Reshuffle()
        | "Read" >> beam.FlatMap(_read, config)
        | "Spread chunks" >> beam.Reshuffle()
    )
    if config.drop_duplicates == "none":
        return chunks | "Build" >> beam.MapTuple(
            lambda key, chunk: (key, chunk_documents.build_chunk(chunk, config, vocabulary))
        )
    clean = chunks | "Clean" >> beam.MapTuple(
        lambda key, chunk: (key, chunk_documents.clean_chunk(chunk, config))
    )
    firsts = (
        clean
        | "Hashes" >> beam.FlatMapTuple(_occurrences)
        | "First" >> beam.CombinePerKey(min)
        | "By chunk" >> beam.MapTuple(lambda key, first: ((key[0], first[:2]), first[2]))
    )
    unique = {"clean": clean, "firsts": firsts} | beam.CoGroupByKey()
    return unique | "Keep first" >> beam.Map(_keep_first, config, vocabulary)


def _write(built, folders: dict[str, str], settings: dict, config: RecordsConfig, vocab_size: int):
    """From ((language, place), BuiltChunk) to complete folders."""
    numbers = (
        built
        | "Count documents"
        >> beam.MapTuple(lambda key, chunk: (key[0], (key[1], len(chunk.documents))))
        | "Documents by language" >> beam.GroupByKey()
        | "Number documents" >> beam.MapTuple(_sums_before)
    )
    split = built | "Hold out" >> beam.FlatMap(_hold_out, config, beam.pvalue.AsDict(numbers))
    pieces = (
        split
        | "Count pieces" >> beam.MapTuple(lambda key, chunk: (key[:2], (key[2], _pieces(chunk))))
        | "Pieces by split" >> beam.GroupByKey()
        | "Number pieces" >> beam.MapTuple(_sums_before)
    )
    shards = (
        split
        | "Find shards" >> beam.FlatMap(_to_shards, config, beam.pvalue.AsDict(pieces))
        | "Shards" >> beam.GroupByKey()
        | "Write shards" >> beam.Map(_write_shard, folders)
    )
    unigrams = (
        split
        | "Train" >> beam.Filter(lambda item: item[0][1] == "train")
        | "Count ids" >> beam.MapTuple(lambda key, chunk: (key[0], _count_ids(chunk, vocab_size)))
        | "Sum of ids" >> beam.CombinePerKey(sum)
    )
    lines = (
        built
        | "Count lines" >> beam.MapTuple(_lines)
        | "Sum of lines" >> beam.CombinePerKey(_sum_lines)
    )
    parts = {
        "lines": lines,
        "shards": shards,
        "unigrams": unigrams,
    } | "Parts" >> beam.CoGroupByKey()
    return parts | "Finish" >> beam.Map(_finish, folders, settings, vocab_size)


def _read(item, config: RecordsConfig):
    language, unit, files = item
    paths = map(pathlib.Path, files)
    chunks = text_chunks.read_chunks(paths, config.line_is, config.max_line_bytes)
    for number, chunk in enumerate(itertools.chain([[]], chunks)):  # an empty file is read too
        yield (language, (unit, number)), chunk


def _occurrences(key, chunk):
    language, place = key
    for number, value in enumerate(chunk.hashes.tolist()):
        yield (language, value), (*place, number)


def _keep_first(item, config: RecordsConfig, vocabulary: Vocabulary):
    key, groups = item
    (chunk,) = groups["clean"]
    is_first = np.zeros(len(chunk.hashes), bool)
    is_first[list(groups["firsts"])] = True
    unique = chunk_documents.keep_first(chunk, is_first, config)
    return key, chunk_documents.split_into_pieces(unique, config, vocabulary)


def _sums_before(key, counts: Iterable[tuple[Place, int]]):
    """Returns what comes before each place, and the whole under None."""
    table, total = {}, 0
    for place, count in sorted(counts):
        table[place] = total
        total += count
    return key, {**table, None: total}


def _hold_out(item, config: RecordsConfig, numbers):
    (language, place), chunk = item
    first, total = numbers[language][place], numbers[language][None]
    splits = collections.defaultdict(list)
    for number, document in enumerate(chunk.documents, first):
        for split, part in hold_out(document, number, total, config.heldout_fraction):
            splits[split].append(part)
    for split, documents in splits.items():
        yield (language, split, place), documents


def _pieces(documents) -> int:
    return sum(len(document.input_ids) for document in documents)


def _count_ids(documents, vocab_size: int) -> np.ndarray:
    return np.bincount(np.concatenate([d.input_ids for d in documents]), minlength=vocab_size)


def _to_shards(item, config: RecordsConfig, pieces):
    (language, split, place), documents = item
    before = pieces[language, split][place]
    shards = collections.defaultdict(list)
    for document in documents:
        shards[shard_number(before, config.tokens_per_shard)].append(document)
        before += len(document.input_ids)
    for number, part in shards.items():
        yield (language, split, number), (place, part)


def _write_shard(item, folders: dict[str, str]):
    (language, split, number), groups = item
    documents = [
        document for _, part in sorted(groups, key=lambda group: group[0]) for document in part
    ]
    # A runner may do the same work twice at once, and takes one of the results.
    path = pathlib.Path(folders[language]) / f"{split}-{number:05d}-{uuid.uuid4().hex}{PART}"
    writer = ShardWriter(path)
    for document in documents:
        writer.write(document)
    index = RecordIndex(
        np.array([len(document.input_ids) for document in documents], np.int32),
        np.concatenate([document.sentence_lengths for document in documents]),
    )
    return language, (split, number, writer.close(), index)


def _lines(key, chunk):
    language, place = key
    return language, (chunk.lines, {reason: (place, at) for reason, at in chunk.first.items()})


def _sum_lines(parts):
    lines, first = collections.Counter(), {}
    for counts, places in parts:
        lines.update(counts)
        for reason, place in places.items():
            first[reason] = min(place, first.get(reason, place))
    return lines, first


def _finish(item, folders, settings, vocab_size: int):
    language, groups = item
    folder = pathlib.Path(folders[language])
    ((lines, first),) = groups["lines"]
    found = sorted(groups["shards"], key=lambda shard: shard[:2])
    for path in set(folder.glob(f"*{PART}")) - {folder / shard.file for _, _, shard, _ in found}:
        path.unlink()
    splits = {}
    for split in manifest.SPLITS:
        shards = [shard for name, _, shard, _ in found if name == split]
        indices = [index for name, _, _, index in found if name == split]
        index = RecordIndex(
            *(
                np.concatenate(
                    [np.zeros(0, np.int32), *(getattr(index, name) for index in indices)]
                )
                for name in ("lengths", "sentence_lengths")
            )
        )
        splits[split] = finish_split(folder, split, shards, index)
    unigrams = sum(groups["unigrams"], np.zeros(vocab_size, np.int64))
    places = {reason: place for reason, (_, place) in first.items()}
    language_folder.finish(folder, language, settings[language], lines, places, splits, unigrams)
