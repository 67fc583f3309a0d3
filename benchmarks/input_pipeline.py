"""Compares text -> records and records -> masked batches with Hugging Face and Model Garden: tokens/s and peak memory.

All sides get the same text, two cores, sequences of 128 pieces, batches of 32 and 19 predictions, and the same
SentencePiece vocabulary (Hugging Face its fast tokenizer; Model Garden's text reader knows BERT's tokenizer alone, with
the same pieces as a vocab.txt). Each measurement is a process of its own, and the sides measure by turns. Peak memory
is that of the process and all that it forks, imports included.

Hugging Face reads plain sequences in random order; its whole-word collator masks only ([MASK] in 100 %). Model Garden's
first reader does not mask at all: that was done when its records were written. Ours draws languages by share, fills
sequences across documents, masks anew in each epoch, and gives the same batches at any parallelism and after every
resume.

    python benchmarks/input_pipeline.py                                   # about ten minutes on an idle machine
    python benchmarks/input_pipeline.py --text ../shared/data/rawtext --rounds 1

Needs the extra [benchmarks].
"""

import argparse
import itertools
import os
import pathlib
import sys
import tempfile

import input_pipeline_sides as sides
import numpy as np
import side_by_side

BUILD = {
    "rembert_tf, 2 processes": "build_rembert_tf",
    "Hugging Face, map with 2 processes": "build_hugging_face",
    "the same, with offsets for whole words": "build_hugging_face_offsets",
    "Hugging Face, 1 process, 2 threads": "build_hugging_face_threads",
}
READ = {
    "rembert_tf, whole words": "read_rembert_tf",
    "rembert_tf, pieces": "read_rembert_tf_pieces",
    "rembert_tf, n-grams": "read_rembert_tf_ngrams",
    "Hugging Face, whole words, 2 workers": "read_hugging_face",
    "Hugging Face, pieces, 2 workers": "read_hugging_face_pieces",
    "Model Garden, masked on disk": "read_model_garden",
    "Model Garden, text, whole words": "read_model_garden_text",
}
MANY_RECORDS = 11_000_000


def main():
    """Prepares the data, measures everything and prints the tables."""
    arguments = parse_arguments()
    print(side_by_side.check_quiet(), flush=True)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        prepare(folder, arguments)
        os.environ["OMP_NUM_THREADS"] = "2"
        print("\n## Text to records\n")
        print(table(by_turns(folder, BUILD, arguments.rounds)), flush=True)
        write_model_garden_records(folder)
        print("\n## Records to masked batches\n")
        rates = by_turns(folder, READ, arguments.rounds)
        print(table(rates), flush=True)
        step = by_turns(folder, {"step": "train"}, 1)["step"]["tokens_per_s"]
        print(
            f"\nA training step of 4 layers of width 256 takes {step:,.0f} tokens/s; the reader alone is"
        )
        print(f"{rates[next(iter(READ))]['tokens_per_s'] / step:.0f} times as fast.")
        prepare_many_records(folder)
        print("\n## Seconds to the first batch\n")
        for name, seconds in by_turns(folder, {"resume": "resume"}, 1)["resume"].items():
            print(f"{seconds:6.2f}  {name}")


def parse_arguments():
    """Returns the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", default="pipelines/sample/text", help="as for rembert-build-data")
    parser.add_argument("--megabytes", type=float, default=48, help="of text, in all")
    parser.add_argument("--vocab_size", type=int, default=5000)
    parser.add_argument("--tokenizer", help="a vocabulary, in place of one that is trained first")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def prepare(folder, arguments):
    """Writes the text, of all languages about the same number of bytes, its vocabulary and our records."""
    from rembert_tf.pipelines import text_files
    from rembert_tf.pipelines.config import RecordsConfig, VocabularyConfig
    from rembert_tf.pipelines.hugging_face_tokenizer import write_hugging_face_tokenizer
    from rembert_tf.pipelines.record_builder import build_records
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.pipelines.vocabulary import train_vocabulary

    (folder / "text").mkdir()
    inputs = text_files.find_inputs(arguments.text)
    size = int(arguments.megabytes * 1e6 / len(inputs))
    for language, files in inputs.items():
        content = bytearray()
        for line in itertools.chain.from_iterable(map(text_files.read_lines, files)):
            content += line.encode() + b"\n"
            if len(content) >= size:
                break
        content += b"\n"
        content *= max(1, size // len(content))  # a short text again and again
        (folder / "text" / f"{language}.txt").write_bytes(content)
    if arguments.tokenizer:
        tokenizer = RemBertTokenizer.from_file(arguments.tokenizer)
        tokenizer.save(folder / "vocabulary")
    else:
        settings = dict(vocab_size=arguments.vocab_size, max_sentences=50_000, report_sentences=0)
        train_vocabulary(
            VocabularyConfig(
                input_dir=str(folder / "text"), output=str(folder / "vocabulary"), **settings
            )
        )
        tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    write_hugging_face_tokenizer(folder / "vocabulary", tokenizer)
    build_records(
        RecordsConfig(
            input_dir=str(folder / "text"),
            tokenizer=str(folder / "vocabulary"),
            output_dir=str(folder / "records"),
        )
    )
    words = [
        piece.removeprefix("▁") if piece[0] in "▁[" else f"##{piece}"
        for piece in tokenizer.pieces()
    ]
    unique = dict.fromkeys(word or f"[unused{i}]" for i, word in enumerate(words))
    (folder / "vocab.txt").write_text("\n".join(unique) + "\n", encoding="utf-8")


def write_model_garden_records(folder):
    """Writes what Model Garden's readers read: 10,000 masked sequences, and the text, a line a record."""
    import tensorflow as tf

    from rembert_tf.pipelines.pretraining import make_pretraining_dataset
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    def example(**features):
        feature = {}
        for name, value in features.items():
            if isinstance(value, bytes):
                of = tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
            elif value.dtype.kind == "f":
                of = tf.train.Feature(float_list=tf.train.FloatList(value=value))
            else:
                of = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            feature[name] = of
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    dataset = make_pretraining_dataset(sides._config(folder), tokenizer)
    with tf.io.TFRecordWriter(str(folder / "masked.tfrecord")) as writer:
        for features, labels, weights in dataset.take(
            10_000 // sides.BATCH_SIZE
        ).as_numpy_iterator():
            for row in range(sides.BATCH_SIZE):
                writer.write(
                    example(
                        input_word_ids=features["input_ids"][row],
                        input_type_ids=features["token_type_ids"][row],
                        input_mask=features["attention_mask"][row],
                        masked_lm_positions=features["masked_lm_positions"][row],
                        masked_lm_ids=labels[row],
                        masked_lm_weights=weights[row],
                    )
                )
    with tf.io.TFRecordWriter(str(folder / "text.tfrecord")) as writer:
        for path in sorted((folder / "text").iterdir()):
            for line in filter(None, path.read_bytes().split(b"\n")):
                writer.write(example(text=line))


def prepare_many_records(folder):
    """Makes one language of eleven million records out of the largest one, by links to its files."""
    import dataclasses
    import shutil

    from rembert_tf.pipelines.manifest import Manifest

    manifest = Manifest.read(folder / "records")
    language = max(manifest.languages, key=lambda name: manifest.languages[name].train.documents)
    records = manifest.languages[language]
    copies = -(-MANY_RECORDS // records.train.documents)
    source, target = folder / "records" / language, folder / "many" / language
    shutil.copytree(source, target)
    shards = []
    for _ in range(copies):
        for shard in records.train.shards:
            name = f"train-{len(shards):05d}-of-many.tfrecord"
            os.link(source / shard.file, target / name)
            shards.append(dataclasses.replace(shard, file=name))
    index = manifest.index(language, "train")
    dataclasses.replace(
        index,
        lengths=np.tile(index.lengths, copies),
        sentence_lengths=np.tile(index.sentence_lengths, copies),
    ).write(target, "train")
    train = dataclasses.replace(
        records.train,
        documents=copies * records.train.documents,
        sentences=copies * records.train.sentences,
        tokens=copies * records.train.tokens,
        shards=tuple(shards),
    )
    languages = {language: dataclasses.replace(records, train=train)}
    dataclasses.replace(manifest, folder=folder / "many", languages=languages).write()


def by_turns(folder, names, rounds):
    """Returns the medians of each measurement."""
    script = str(pathlib.Path(__file__).with_name("input_pipeline_sides.py"))
    commands = {side: [sys.executable, script, name, str(folder)] for side, name in names.items()}
    values = side_by_side.by_turns(commands, rounds)
    return {side: side_by_side.medians(samples) for side, samples in values.items()}


def table(rates):
    """Returns a Markdown table; ratios are those of the first row to the others."""
    ours = next(iter(rates.values()))
    rows = [
        "| | tokens/s | ours is faster by | tokens/s of CPU | by | MB | of ours |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for side, values in rates.items():
        cells = [side]
        for name in ("tokens_per_s", "tokens_per_cpu_s"):
            cells += [f"{values[name]:,.0f}", f"{ours[name] / values[name]:.1f} x"]
        memory = values["memory_mb"]
        cells += [f"{memory:,.0f}", f"{memory / ours['memory_mb']:.1f} x"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
