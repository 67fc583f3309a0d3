"""The measurements that `input_pipeline.py` compares, each a process of its own that prints a JSON object.

    python benchmarks/input_pipeline_sides.py NAME FOLDER

FOLDER is what `input_pipeline.py` has prepared. Building counts all seconds after the imports; reading counts the
batches of `SECONDS` seconds after `WARM_UP` others. Tokens are pieces of text: neither [CLS] nor [SEP], of which
contiguous sequences have one after each document, nor padding. Memory is that of the process and of all that it has
started (PSS, so that shared pages count once), as looked at a few times a second.
"""

import itertools
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

BATCH_SIZE, LENGTH, PREDICTIONS = 32, 128, 19
SECONDS, WARM_UP = 5, 60
PROCESSES = 2
FAR = 10_000_000  # examples


def processes(first: int) -> list[int]:
    """Returns a process and all its descendants."""
    found = [first]
    for tasks in pathlib.Path(f"/proc/{first}/task").glob("*/children"):
        try:
            found += [p for child in tasks.read_text().split() for p in processes(int(child))]
        except OSError:  # it has ended
            pass
    return found


def watch_memory(peak: list[int]):
    """Keeps the largest memory of this process and its descendants so far, in bytes, in `peak[0]`."""
    while True:
        memory = 0
        for process in processes(os.getpid()):
            try:
                rollup = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
            except OSError:
                continue
            memory += sum(
                1024 * int(line.split()[1])
                for line in rollup.splitlines()
                if line.startswith("Pss:")
            )
        peak[0] = max(peak[0], memory)
        time.sleep(0.2)


def cpu_seconds() -> float:
    """Returns the CPU time of this process and its descendants, those that have ended included."""
    ticks = 0
    for process in processes(os.getpid()):
        try:
            fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))  # own and waited-for, user and system
    return ticks / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Measures from its making on; memory, from the start of the process on."""

    peak = [0]
    threading.Thread(target=watch_memory, args=[peak], daemon=True).start()

    def __init__(self):
        self._start = time.perf_counter(), cpu_seconds()

    def measured(self, tokens: int) -> dict[str, float]:
        """Returns the rates and the memory."""
        seconds, cpu = time.perf_counter() - self._start[0], cpu_seconds() - self._start[1]
        return {
            "tokens_per_s": tokens / seconds,
            "tokens_per_cpu_s": tokens / cpu,
            "memory_mb": self.peak[0] / 1e6,
        }


def read(batches: Iterable, ids_of: Callable, specials: Sequence[int]) -> dict[str, float]:
    """Measures reading; `ids_of` a batch are its pieces, [B, T], `specials` the ids that do not count."""
    iterator = iter(batches)
    for _ in range(WARM_UP):
        next(iterator)
    watch, tokens, end = Stopwatch(), 0, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        tokens += count_text(ids_of(next(iterator)), specials)
    return watch.measured(tokens)


def count_text(ids, specials: Sequence[int]) -> int:
    """Returns how many of the ids are pieces of text."""
    ids = np.asarray(ids)
    return ids.size - sum(int((ids == special).sum()) for special in specials)


def build_rembert_tf(folder):
    """`rembert-build-data`: text to records, with manifest and checksums."""
    from rembert_tf.pipelines.config import RecordsConfig
    from rembert_tf.pipelines.record_builder import build_records

    with tempfile.TemporaryDirectory(dir=folder) as output:
        watch = Stopwatch()
        manifest = build_records(
            RecordsConfig(
                input_dir=str(folder / "text"),
                tokenizer=str(folder / "vocabulary"),
                output_dir=output,
                num_processes=PROCESSES,
            )
        )
        tokens = sum(p.train.tokens + p.heldout.tokens for p in manifest.languages.values())
        return watch.measured(tokens)


def build_hugging_face(folder, processes=PROCESSES, offsets=False):
    """`run_mlm.py`'s way: load_dataset, map the fast tokenizer, map into sequences of 126, save."""
    if processes > 1:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import datasets
    import transformers

    datasets.disable_progress_bars()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder / "vocabulary"))
    room = LENGTH - 2

    def tokenize(batch):
        return tokenizer(
            batch["text"],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=offsets,
        )

    def group(batch):
        joined = {name: list(itertools.chain(*rows)) for name, rows in batch.items()}
        end = len(joined["input_ids"]) // room * room
        return {
            name: [rows[i : i + room] for i in range(0, end, room)] for name, rows in joined.items()
        }

    with tempfile.TemporaryDirectory(dir=folder) as cache:
        watch = Stopwatch()
        files = sorted(map(str, (folder / "text").iterdir()))
        text = datasets.load_dataset("text", data_files=files, split="train", cache_dir=cache)
        arguments = dict(batched=True, num_proc=processes if processes > 1 else None)
        pieces = text.map(tokenize, remove_columns=["text"], **arguments)
        sequences = pieces.map(group, **arguments)
        sequences.save_to_disk(str(folder / ("arrow_offsets" if offsets else "arrow")))
        return watch.measured(len(sequences) * room)


def build_hugging_face_offsets(folder):
    """The same with where in its text each piece stands, which only the whole-word collator needs."""
    return build_hugging_face(folder, offsets=True)


def build_hugging_face_threads(folder):
    """The same in one process, without offsets; the fast tokenizer then uses all cores by threads."""
    return build_hugging_face(folder, processes=1)


def _config(folder, **changes):
    from rembert_tf.pipelines.config import PretrainingDataConfig

    return PretrainingDataConfig(
        records_dir=str(folder / "records"),
        batch_size=BATCH_SIZE,
        max_seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        packing="contiguous",
        **changes,
    )


def read_rembert_tf(folder, masking="whole_word"):
    """Records to masked batches: languages by share, shuffled, masked anew, the same at any parallelism."""
    from rembert_tf.pipelines.pretraining import make_pretraining_dataset
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    dataset = make_pretraining_dataset(_config(folder, masking=masking), tokenizer)
    return read(dataset, lambda batch: batch[0]["input_ids"], special_ids(tokenizer))


def special_ids(tokenizer) -> tuple[int, int, int]:
    """Returns the ids that are no text in batches of our vocabulary."""
    return tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id


def read_rembert_tf_pieces(folder):
    """The same, each piece masked by itself."""
    return read_rembert_tf(folder, masking="piece")


def read_rembert_tf_ngrams(folder):
    """The same, spans of up to three words."""
    return read_rembert_tf(folder, masking="ngram")


def read_hugging_face(folder, whole_words=True, workers=PROCESSES):
    """A PyTorch DataLoader over the arrow files with DataCollatorForLanguageModeling."""
    import datasets
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder / "vocabulary"))
    sequences = datasets.load_from_disk(str(folder / ("arrow_offsets" if whole_words else "arrow")))
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    collator = transformers.DataCollatorForLanguageModeling(tokenizer, whole_word_mask=whole_words)

    def collate(rows):
        for row in rows:
            row["input_ids"] = [cls, *row["input_ids"], sep]
            row["special_tokens_mask"] = [1, *[0] * (LENGTH - 2), 1]
            if whole_words:
                row["offset_mapping"] = [(0, 0), *row["offset_mapping"], (0, 0)]
        return collator(rows)

    def epochs():
        while True:
            yield from torch.utils.data.DataLoader(
                sequences,
                batch_size=BATCH_SIZE,
                shuffle=True,
                drop_last=True,
                collate_fn=collate,
                num_workers=workers,
            )

    return read(epochs(), lambda batch: batch["input_ids"], (cls, sep, tokenizer.pad_token_id))


def read_hugging_face_pieces(folder):
    """The same, each piece masked by itself."""
    return read_hugging_face(folder, whole_words=False)


def read_model_garden(folder):
    """BertPretrainDataLoader: masked once, on disk; read in the same order in each epoch but for the shuffling."""
    from official.nlp.data import pretrain_dataloader

    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    params = pretrain_dataloader.BertPretrainDataConfig(
        input_path=str(folder / "masked.tfrecord"),
        global_batch_size=BATCH_SIZE,
        seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        use_next_sentence_label=False,
        use_v2_feature_names=True,
    )
    loader = pretrain_dataloader.BertPretrainDataLoader(params)
    tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    return _read_model_garden(loader, special_ids(tokenizer))


def read_model_garden_text(folder):
    """BertPretrainTextDataLoader: text, split by BertTokenizer and masked while it is read."""
    from official.nlp.data import pretrain_text_dataloader

    params = pretrain_text_dataloader.BertPretrainTextDataConfig(
        input_path=str(folder / "text.tfrecord"),
        global_batch_size=BATCH_SIZE,
        seq_length=LENGTH,
        max_predictions_per_seq=PREDICTIONS,
        use_next_sentence_label=False,
        use_whole_word_masking=True,
        doc_batch_size=8,
        vocab_file_path=str(folder / "vocab.txt"),
    )
    loader = pretrain_text_dataloader.BertPretrainTextDataLoader(params)
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    return _read_model_garden(loader, [words.index(word) for word in ("[CLS]", "[SEP]", "[PAD]")])


def _read_model_garden(loader, specials):
    return read(loader.load(), lambda batch: batch["input_word_ids"], specials)


def train(folder):
    """Our training step of a model of 4 layers of width 256, on one batch again and again."""
    import tensorflow as tf

    from rembert_tf.config import RemBertConfig
    from rembert_tf.models.masked_lm import RemBertForMaskedLM
    from rembert_tf.pipelines.pretraining import make_pretraining_dataset
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.config import DistributionConfig, OptimizerConfig
    from rembert_tf.training.pretraining import masked_lm_trainer

    tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    config = RemBertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        input_embedding_size=128,
        output_embedding_size=512,
    )
    trainer = masked_lm_trainer(
        RemBertForMaskedLM(config), OptimizerConfig(), DistributionConfig(), total_steps=1000
    )
    batch = next(iter(make_pretraining_dataset(_config(folder), tokenizer)))
    tokens = count_text(batch[0]["input_ids"], special_ids(tokenizer))
    data = tf.data.Dataset.from_tensors(batch).repeat()
    trainer.fit(data, steps_per_epoch=5, verbose=0)
    watch = Stopwatch()
    trainer.fit(data, steps_per_epoch=20, verbose=0)
    return watch.measured(20 * tokens)


def resume(folder):
    """Seconds to the first batch: of a new run, and of one that goes on after ten million examples."""
    from rembert_tf.pipelines.config import PretrainingDataConfig
    from rembert_tf.pipelines.pretraining import make_pretraining_dataset
    from rembert_tf.pipelines.tokenization import RemBertTokenizer

    tokenizer = RemBertTokenizer.from_file(folder / "vocabulary")
    one = PretrainingDataConfig(
        records_dir=str(folder / "many"), batch_size=BATCH_SIZE, max_seq_length=LENGTH
    )
    seconds = {}
    for name, config in (("all languages", _config(folder)), ("one of ten million records", one)):
        for start in (0, FAR // BATCH_SIZE):
            began = time.perf_counter()
            next(iter(make_pretraining_dataset(config, tokenizer, start_batch=start)))
            seconds[f"{name}, batch {start:,}"] = time.perf_counter() - began
    return seconds


SIDES = {
    function.__name__: function
    for function in (
        build_rembert_tf, build_hugging_face, build_hugging_face_offsets, build_hugging_face_threads, read_rembert_tf,
        read_rembert_tf_pieces, read_rembert_tf_ngrams, read_hugging_face, read_hugging_face_pieces,
        read_model_garden, read_model_garden_text, train, resume,
    )
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(SIDES[sys.argv[1]](pathlib.Path(sys.argv[2]))))
