"""What a folder of records holds: `manifest.json`, written last.

<folder>/manifest.json                       all languages (this module)
<folder>/sentencepiece.model                 the vocabulary of the ids
<folder>/<language>/language.json            the part of one language; its presence means the folder is complete
<folder>/<language>/train-00000-of-00003.tfrecord
<folder>/<language>/heldout-00000-of-00001.tfrecord
<folder>/<language>/train-lengths.npy ...    the index of the records, see record_index.py
<folder>/<language>/unigram_counts.npy       pieces of the training documents, int64 [V]
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

from rembert_tf import atomic_files
from rembert_tf.pipelines.record_index import RecordIndex

FORMAT = 2
MANIFEST_FILE = "manifest.json"
LANGUAGE_FILE = "language.json"
COUNTS_FILE = "unigram_counts.npy"
SPLITS = ("train", "heldout")

Split = Literal["train", "heldout"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shard:
    """One record file: its name, documents, bytes and sha256."""

    file: str
    documents: int
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitRecords:
    """The training or the held-out documents of a language."""

    documents: int
    sentences: int
    tokens: int
    shards: tuple[Shard, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageRecords:
    """What was read and written for one language.

    `lines` accounts for every line that was read: read = kept + the sum of dropped; the blank lines between documents
    are dropped too. `settings` are those that decide the records' content.
    """

    settings: dict
    lines: dict
    train: SplitRecords
    heldout: SplitRecords

    def to_json(self) -> dict:
        """Returns the content of `language.json`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: dict) -> "LanguageRecords":
        """Reads what `to_json` returned."""
        splits = {}
        for split in SPLITS:
            fields = dict(value[split])
            fields["shards"] = tuple(Shard(**shard) for shard in fields["shards"])
            splits[split] = SplitRecords(**fields)
        return cls(settings=value["settings"], lines=value["lines"], **splits)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """All languages of a folder of records.

    Attributes:
        folder: Where it is.
        tool: Name and version of the writer.
        vocabulary_sha256: Fingerprint of the vocabulary.
        vocab_size: `V`.
        languages: Records by language, in alphabetical order.

    Example:
        >>> Manifest.read(records_folder).select(["ru", "el"]).sentences()
        {'el': 84, 'ru': 84}
    """

    folder: pathlib.Path
    tool: str
    vocabulary_sha256: str
    vocab_size: int
    languages: dict[str, LanguageRecords]

    def write(self):
        """Writes `manifest.json`."""
        atomic_files.write_json(
            self.folder / MANIFEST_FILE,
            {
                "format": FORMAT,
                "tool": self.tool,
                "vocabulary_sha256": self.vocabulary_sha256,
                "vocab_size": self.vocab_size,
                "languages": {
                    language: records.to_json() for language, records in self.languages.items()
                },
            },
        )

    @classmethod
    def read(cls, folder: str | os.PathLike) -> "Manifest":
        """Reads `manifest.json`.

        Raises:
            FileNotFoundError: It is absent: not a folder of records, or its build did not end.
            ValueError: It is damaged or of another format.
        """
        path = pathlib.Path(folder) / MANIFEST_FILE
        if not path.is_file():
            raise FileNotFoundError(
                f"{path}: no such file; rembert-build-data writes it last, was its run cut short?"
            )
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            if value["format"] != FORMAT:
                raise ValueError(f"format {value['format']}, where {FORMAT} is expected")
            languages = {
                name: LanguageRecords.from_json(part) for name, part in value["languages"].items()
            }
            return cls(
                folder=path.parent,
                tool=value["tool"],
                vocabulary_sha256=value["vocabulary_sha256"],
                vocab_size=value["vocab_size"],
                languages=languages,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: not a manifest of records: {error}") from error

    def select(self, languages: Sequence[str]) -> "Manifest":
        """Keeps some languages.

        Args:
            languages: Their names; empty for all.

        Raises:
            ValueError: There are no records of a language.
        """
        missing = sorted(set(languages) - set(self.languages))
        if missing:
            raise ValueError(
                f"`languages` must be among {', '.join(self.languages)}. Received: languages={','.join(missing)}"
            )
        kept = {
            name: part
            for name, part in self.languages.items()
            if not languages or name in languages
        }
        return dataclasses.replace(self, languages=kept)

    def check_vocabulary(self, fingerprint: str):
        """Checks that the records hold ids of the vocabulary at hand.

        Raises:
            ValueError: They hold those of another vocabulary.
        """
        if fingerprint != self.vocabulary_sha256:
            raise ValueError(
                f"{self.folder / MANIFEST_FILE}: the records were built with another vocabulary (sha256 "
                f"{self.vocabulary_sha256[:12]}...). Received: a tokenizer with sha256 {fingerprint[:12]}..."
            )

    def check_sizes(self):
        """Checks that every record file is there and has its size.

        Raises:
            FileNotFoundError: A file is absent.
            ValueError: A file was cut or has grown.
        """
        for language, records in self.languages.items():
            for shard in (*records.train.shards, *records.heldout.shards):
                path = self.folder / language / shard.file
                size = path.stat().st_size if path.is_file() else None
                if size is None:
                    raise FileNotFoundError(
                        f"{path}: the manifest names this file, and it is absent."
                    )
                if size != shard.bytes:
                    raise ValueError(
                        f"{path}: damaged: {size} bytes, where the manifest says {shard.bytes}."
                    )

    def shards(self, language: str, split: Split) -> list[tuple[str, int]]:
        """Returns path and number of documents of each record file."""
        shards = getattr(self.languages[language], split).shards
        return [(str(self.folder / language / shard.file), shard.documents) for shard in shards]

    def index(self, language: str, split: Split) -> RecordIndex:
        """Reads the lengths of the documents and sentences of a language."""
        return RecordIndex.read(self.folder / language, split)

    def unigram_counts(self, language: str) -> np.ndarray:
        """Returns how often each piece occurs in the training documents, int64 [V]."""
        return np.load(self.folder / language / COUNTS_FILE)

    def sentences(self) -> dict[str, int]:
        """Returns the number of training sentences of each language."""
        return {language: records.train.sentences for language, records in self.languages.items()}
