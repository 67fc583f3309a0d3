"""Settings of the data side: vocabulary, records, pre-training batches.

The dataclasses stand apart from the modules that compute, so that a binary can show its help without importing
TensorFlow.
"""

import dataclasses
from typing import Literal, get_args

LineIs = Literal["sentence", "document"]
Duplicates = Literal["none", "line", "document"]
InvalidUtf8 = Literal["error", "drop"]
Packing = Literal["document", "sentences", "contiguous"]
Masking = Literal["piece", "whole_word", "ngram"]


def _field(help_text: str, **default):
    return dataclasses.field(metadata={"help": help_text}, **default)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyConfig:
    """How a vocabulary is learnt from text.

    Example:
        >>> VocabularyConfig(input_dir="text", output="vocabulary", vocab_size=1000).language_alpha
        0.5
    """

    input_dir: str = _field(
        "Folder with one file (xx.txt, .txt.gz, .txt.bz2, .txt.xz, .txt.zst) or one sub-folder of such files a "
        "language."
    )
    output: str = _field(
        "Folder that will hold sentencepiece.model, what transformers needs beside it, and a report; not that of "
        "`extend`. An older vocabulary in it is replaced."
    )
    vocab_size: int = _field(
        "Number of pieces in all, the special and reserved ones and those of `extend` included.",
        default=32_000,
    )
    reserved_pieces: int = _field(
        "Pieces <reserved_0>, <reserved_1>, ... that no text gives, for uses of your own. They stand in front of "
        "[CLS], as in the published vocabulary, whose ids are those of 310 of them.",
        default=0,
    )
    extend: str = _field(
        "Vocabulary (a sentencepiece.model, or a folder that holds one) to which the pieces that it lacks of this text "
        "are appended; its own keep their ids. Without it, all pieces are new.",
        default="",
    )
    language_alpha: float = _field(
        "Exponent of the language shares: a language with n sentences gets a share in proportion to n ** alpha.",
        default=0.5,
    )
    max_sentences: int = _field(
        "Number of sentences the vocabulary is learnt from, at most. Memory grows with their text.",
        default=10_000_000,
    )
    character_coverage: float = _field(
        "Share of the sampled characters that get pieces of their own; the rarest rest is unknown.",
        default=0.9995,
    )
    byte_fallback: bool = _field(
        "Spell rare characters as bytes (256 more pieces) in place of the unknown piece.",
        default=False,
    )
    unicode_clean_up: bool = _field(
        "Clean the text as rembert-build-data does: NFC; no control characters, direction marks, soft hyphens.",
        default=True,
    )
    seed: int = _field("Seed of the choice of sentences.", default=0)
    languages: tuple[str, ...] = _field("Languages to use; empty for all.", default=())
    report_sentences: int = _field(
        "Sentences of each language that the report measures, at most; 0 writes no report.",
        default=1000,
    )

    def __post_init__(self):
        _require(
            self.reserved_pieces >= 0,
            "reserved_pieces",
            "must not be negative",
            self.reserved_pieces,
        )
        in_front = 5 + self.reserved_pieces
        _require(
            self.vocab_size > in_front,
            "vocab_size",
            f"must be above {in_front}, the special and reserved pieces",
            self.vocab_size,
        )
        _require_alpha(self.language_alpha)
        _require(self.max_sentences > 0, "max_sentences", "must be positive", self.max_sentences)
        _require(
            0.98 <= self.character_coverage <= 1,
            "character_coverage",
            "must be between 0.98 and 1",
            self.character_coverage,
        )
        _require_seed(self.seed)
        _require(
            not (self.byte_fallback and self.extend),
            "byte_fallback",
            "must be left out with `extend`: the extended vocabulary spells bytes if the old one does",
            self.byte_fallback,
        )
        _require(
            not (self.reserved_pieces and self.extend),
            "reserved_pieces",
            "must be left out with `extend`: the extended vocabulary has those of the old one",
            self.reserved_pieces,
        )
        _require(
            self.report_sentences >= 0,
            "report_sentences",
            "must not be negative",
            self.report_sentences,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordsConfig:
    """How text becomes records.

    Example:
        >>> RecordsConfig(input_dir="text", tokenizer="vocabulary", output_dir="records").overwrite
        False
    """

    input_dir: str = _field(
        "Folder with one file (xx.txt, .txt.gz, .txt.bz2, .txt.xz, .txt.zst) or one sub-folder of such files a "
        "language. Required, but for --verify.",
        default="",
    )
    tokenizer: str = _field(
        "The sentencepiece.model, or the folder that holds it. Required, but for --verify.",
        default="",
    )
    output_dir: str = _field("Folder for the records; may hold a build to be resumed.")
    line_is: LineIs = _field(
        "sentence: documents are separated by blank lines; document: each line is a document of its own.",
        default="sentence",
    )
    unicode_clean_up: bool = _field(
        "NFC; no control characters, direction marks, soft hyphens. Joiners and zero-width spaces stay. "
        "SentencePiece's own rule applies either way.",
        default=True,
    )
    drop_duplicates: Duplicates = _field(
        "Drop lines or documents that occurred before in the language, after the clean-up; memory is 8 bytes (24 for "
        "moments) for each different one of the language.",
        default="none",
    )
    invalid_utf8: InvalidUtf8 = _field(
        "What a line that is not UTF-8 does: end the run, or drop out and be counted.",
        default="error",
    )
    max_line_bytes: int = _field(
        "Longer lines are dropped and counted; memory is some 500 times this a process, at worst.",
        default=1_000_000,
    )
    heldout_fraction: float = _field(
        "Share of the documents of each language that is kept out of training, 0 to 0.5.",
        default=0.01,
    )
    max_document_tokens: int = _field(
        "Longer documents are split in front of the sentence that would pass this number of pieces.",
        default=2048,
    )
    tokens_per_shard: int = _field("A shard file holds about this many pieces.", default=4_000_000)
    languages: tuple[str, ...] = _field("Languages to use; empty for all.", default=())
    overwrite: bool = _field(
        "Replace languages that were built with other settings.", default=False
    )
    num_processes: int = _field(
        "Processes that split text into pieces, beside the one that reads and writes; 1: none beside it. Never changes "
        "the records.",
        default=1,
    )
    beam_options: str = _field(
        "Build with Apache Beam (pip install 'rembert_tf[beam]') and these options, such as --runner=DirectRunner. "
        "All its workers must see the folders. Never changes the records.",
        default="",
    )
    verify: bool = _field(
        "Build nothing: read all records in output_dir and compare them with their manifest.",
        default=False,
    )

    def __post_init__(self):
        for name in ("input_dir", "tokenizer"):
            _require(
                self.verify or bool(getattr(self, name)),
                name,
                "must be given (only --verify does without)",
                getattr(self, name),
            )
        _require(
            0 <= self.heldout_fraction <= 0.5,
            "heldout_fraction",
            "must be between 0 and 0.5",
            self.heldout_fraction,
        )
        for name in ("max_document_tokens", "tokens_per_shard", "max_line_bytes", "num_processes"):
            _require(getattr(self, name) > 0, name, "must be positive", getattr(self, name))
        for name, kind in (
            ("line_is", LineIs),
            ("drop_duplicates", Duplicates),
            ("invalid_utf8", InvalidUtf8),
        ):
            choices = get_args(kind)
            _require(
                getattr(self, name) in choices,
                name,
                f"must be {' or '.join(choices)}",
                getattr(self, name),
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class InspectionConfig:
    """Which records are printed; beside it, `PretrainingDataConfig` says where they are and how they are masked.

    Example:
        >>> InspectionConfig(masks=True).count
        3
    """

    masks: bool = _field(
        "Print examples as the model gets them: what was replaced by what. Give the flags of the training run.",
        default=False,
    )
    heldout: bool = _field("Print held-out documents, not those of the training.", default=False)
    first: int = _field(
        "Number of the first document of each language; with --masks, of the first example of the run.",
        default=0,
    )
    count: int = _field(
        "Documents of each language; with --masks, examples of all languages.", default=3
    )

    def __post_init__(self):
        _require(self.first >= 0, "first", "must not be negative", self.first)
        _require(self.count > 0, "count", "must be positive", self.count)
        _require(
            not (self.masks and self.heldout),
            "heldout",
            "must be left out with `masks`, which shows the examples of the training",
            self.heldout,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingDataConfig:
    """How records become batches for the masked language model.

    Example:
        >>> PretrainingDataConfig(records_dir="records", max_seq_length=128).predictions_per_seq
        19
    """

    records_dir: str = _field("Folder that rembert-build-data wrote.")
    batch_size: int = _field("Sequences in a batch, over all devices.", default=32)
    max_seq_length: int = _field("Pieces in a sequence, [CLS] and [SEP] included.", default=128)
    max_predictions_per_seq: int | None = _field(
        "Masked positions in a sequence, at most; without it, as many as masking_rate ever asks for.",
        default=None,
    )
    masking_rate: float = _field(
        "Share of the ordinary pieces of a sequence to predict.", default=0.15
    )
    masking: Masking = _field(
        "What is masked together: piece, each by itself; whole_word, all pieces of a word; ngram, spans of 1 to "
        "max_ngram words, n with p in proportion to 1/n. In scripts without spaces, each piece is a word.",
        default="piece",
    )
    max_ngram: int = _field("Words in a span of --masking=ngram, at most.", default=3)
    language_alpha: float = _field(
        "Exponent of the language shares: a language with n sentences gets a share in proportion to n ** alpha.",
        default=0.5,
    )
    packing: Packing = _field(
        "document: each document is cut where a sequence is full; sentences: sequences hold whole sentences of one "
        "document, as many as fit; contiguous: sequences are filled across documents.",
        default="document",
    )
    seed: int = _field("Seed of language choice, order and masks.", default=0)
    shuffle_buffer: int = _field(
        "Sequences of one language that are shuffled together; memory is about 12 bytes x this x max_seq_length "
        "a language.",
        default=2048,
    )
    languages: tuple[str, ...] = _field(
        "Languages to use; empty for all of the records.", default=()
    )
    num_parallel_calls: int | None = _field(
        "Batches masked at the same time; without it, tf.data decides. Never changes the batches.",
        default=None,
    )
    data_service: str = _field(
        "Address of a tf.data service dispatcher that knows its workers by worker_addresses, such as "
        "grpc://10.0.0.1:5000: the workers, 64 at most, make the batches. Never changes the batches.",
        default="",
    )
    skip_damaged: bool = _field(
        "Read all records before the first step, pass over those that are damaged, and log how many in which file.",
        default=False,
    )
    max_damaged_share: float = _field(
        "With --skip_damaged: the run fails where a larger share of the documents is damaged.",
        default=0.01,
    )

    def __post_init__(self):
        _require(self.batch_size > 0, "batch_size", "must be positive", self.batch_size)
        _require(
            self.max_seq_length >= (4 if self.packing == "contiguous" else 3),
            "max_seq_length",
            "must leave room for [CLS], a piece and [SEP], with packing=contiguous for a second [SEP]",
            self.max_seq_length,
        )
        _require(
            0 < self.masking_rate <= 1,
            "masking_rate",
            "must be above 0 and at most 1",
            self.masking_rate,
        )
        limit = self.max_predictions_per_seq
        _require(
            limit is None or limit > 0, "max_predictions_per_seq", "must be positive or None", limit
        )
        _require_alpha(self.language_alpha)
        for name, kind in (("packing", Packing), ("masking", Masking)):
            choices = get_args(kind)
            _require(
                getattr(self, name) in choices,
                name,
                f"must be {' or '.join(choices)}",
                getattr(self, name),
            )
        _require(self.max_ngram > 0, "max_ngram", "must be positive", self.max_ngram)
        _require(
            self.masking == "ngram" or self.max_ngram == type(self).max_ngram,
            "max_ngram",
            "must be left out without masking=ngram",
            self.max_ngram,
        )
        _require(
            not self.data_service or "://" in self.data_service,
            "data_service",
            "must be PROTOCOL://HOST:PORT",
            self.data_service,
        )
        _require(
            0 <= self.max_damaged_share < 1,
            "max_damaged_share",
            "must be at least 0 and below 1",
            self.max_damaged_share,
        )
        _require(
            self.skip_damaged or self.max_damaged_share == type(self).max_damaged_share,
            "max_damaged_share",
            "must be left out without skip_damaged",
            self.max_damaged_share,
        )
        _require_seed(self.seed)
        _require(self.shuffle_buffer > 0, "shuffle_buffer", "must be positive", self.shuffle_buffer)
        calls = self.num_parallel_calls
        _require(
            calls is None or calls > 0, "num_parallel_calls", "must be positive or None", calls
        )

    @property
    def predictions_per_seq(self) -> int:
        """Width `P` of the masked-LM features."""
        longest = self.max_seq_length - 2
        if self.max_predictions_per_seq is not None:
            return min(self.max_predictions_per_seq, longest)
        return max(1, int(self.masking_rate * longest + 0.5))


def _require(holds: bool, name: str, rule: str, value):
    if not holds:
        raise ValueError(f"`{name}` {rule}. Received: {name}={value!r}")


def _require_alpha(alpha: float):
    _require(0 <= alpha <= 1, "language_alpha", "must be between 0 and 1", alpha)


def _require_seed(seed: int):
    _require(0 <= seed < 2**63, "seed", "must be between 0 and 2**63 - 1", seed)
