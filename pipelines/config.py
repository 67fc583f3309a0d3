"""Settings of the data side: vocabulary, records, pre-training batches.

The dataclasses stand apart from the modules that compute, so that a binary can show its help without importing
TensorFlow.
"""

import dataclasses
from typing import Literal

Packing = Literal["document", "contiguous"]


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
        "Folder with one file (xx.txt, .txt.gz, .txt.bz2, .txt.xz) or one sub-folder of such files a language."
    )
    output: str = _field("Folder that will hold sentencepiece.model.")
    vocab_size: int = _field(
        "Number of pieces in all, the special ones and those of `extend` included.", default=32_000
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
        "Number of sentences the vocabulary is learnt from, at most.", default=10_000_000
    )
    character_coverage: float = _field(
        "Share of the sampled characters that get pieces of their own; the rarest rest is unknown.",
        default=0.9995,
    )
    byte_fallback: bool = _field(
        "Spell rare characters as bytes (256 more pieces) in place of the unknown piece.",
        default=False,
    )
    seed: int = _field("Seed of the choice of sentences.", default=0)
    languages: tuple[str, ...] = _field("Languages to use; empty for all.", default=())

    def __post_init__(self):
        _require(
            self.vocab_size > 5,
            "vocab_size",
            "must be above 5, the special pieces",
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordsConfig:
    """How text becomes records.

    Example:
        >>> RecordsConfig(input_dir="text", tokenizer="vocabulary", output_dir="records").overwrite
        False
    """

    input_dir: str = _field(
        "Folder with one file (xx.txt, .txt.gz, .txt.bz2, .txt.xz) or one sub-folder of such files a language."
    )
    tokenizer: str = _field("The sentencepiece.model, or the folder that holds it.")
    output_dir: str = _field("Folder for the records; may hold a build to be resumed.")
    heldout_fraction: float = _field(
        "Share of the documents of each language that is kept out of training, 0 to 0.5.",
        default=0.01,
    )
    max_document_tokens: int = _field(
        "Longer documents are split in front of the sentence that would pass this number of pieces.",
        default=2048,
    )
    tokens_per_shard: int = _field(
        "A shard file is closed once it holds this many pieces.", default=4_000_000
    )
    languages: tuple[str, ...] = _field("Languages to use; empty for all.", default=())
    overwrite: bool = _field(
        "Replace languages that were built with other settings.", default=False
    )

    def __post_init__(self):
        _require(
            0 <= self.heldout_fraction <= 0.5,
            "heldout_fraction",
            "must be between 0 and 0.5",
            self.heldout_fraction,
        )
        for name in ("max_document_tokens", "tokens_per_shard"):
            _require(getattr(self, name) > 0, name, "must be positive", getattr(self, name))


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
    language_alpha: float = _field(
        "Exponent of the language shares: a language with n sentences gets a share in proportion to n ** alpha.",
        default=0.5,
    )
    packing: Packing = _field(
        "document: a sequence never holds two documents; contiguous: sequences are filled across documents.",
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

    def __post_init__(self):
        _require(self.batch_size > 0, "batch_size", "must be positive", self.batch_size)
        _require(
            self.max_seq_length >= 3,
            "max_seq_length",
            "must leave room for [CLS], a piece and [SEP]",
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
        _require(
            self.packing in ("document", "contiguous"),
            "packing",
            "must be document or contiguous",
            self.packing,
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
