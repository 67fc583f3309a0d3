"""Configurations of retrieval and of a sweep over layers; each field becomes a flag of a binary."""

import dataclasses
from typing import Literal


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class RetrievalConfig:
    """How sentences become vectors, and how vectors are compared. Defaults: XTREME's scripts."""

    layer: int | None = _field(
        None,
        "Retrieval: layer whose hidden states are pooled; 0 is the input, -1 the last layer. Default: XTREME's, the "
        "8th of 12, the 14th of 24, and other depths on the line through both (`num_hidden_layers` / 2 + 2).",
    )
    pooling: Literal["", "mean", "first"] = _field(
        "", "Retrieval: mean over tokens (default for tatoeba) or the first, [CLS] (bucc2018)."
    )
    special_tokens: bool = _field(True, "Retrieval: the mean includes [CLS] and [SEP].")
    mean_shift: bool = _field(
        False,
        "Retrieval: move the English vectors by the mean difference of the two languages (Chung et al. 2021, A.9). It "
        "needs no pairs: the mean of the differences is the difference of the means.",
    )
    margin: Literal["ratio", "distance", "absolute"] = _field(
        "ratio", "bucc2018: how a pair's cosine is set against its neighbours'."
    )
    neighbours: int = _field(4, "bucc2018: nearest neighbours that a margin is taken over.")

    def __post_init__(self):
        """Checks the values."""
        if self.neighbours < 1:
            raise ValueError(
                f"`neighbours` must be at least 1. Received: neighbours={self.neighbours}"
            )

    def pooling_of(self, task: str) -> Literal["mean", "first"]:
        """Returns the pooling that counts for a task."""
        return self.pooling or ("first" if task == "bucc2018" else "mean")

    def layer_of(self, num_hidden_layers: int) -> int:
        """Returns the layer that counts, from 0 to `num_hidden_layers`.

        Example:
            >>> [RetrievalConfig().layer_of(depth) for depth in (2, 12, 24, 32)]
            [2, 8, 14, 18]
            >>> RetrievalConfig(layer=-1).layer_of(12)
            12
        """
        if self.layer is None:
            return min(num_hidden_layers // 2 + 2, num_hidden_layers)
        return self.layer + num_hidden_layers + 1 if self.layer < 0 else self.layer


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayerSweepConfig:
    """What `rembert-sweep-layers` compares, and where it writes."""

    models: tuple[str, ...] = dataclasses.field(
        metadata={"help": "Model folders or Hub ids, separated by commas, each may be name=folder."}
    )
    output_dir: str = dataclasses.field(metadata={"help": "Folder for layers.json and layers.png."})
    parallel_files: tuple[str, ...] = _field(
        (), "ENGLISH,OTHER: two files whose lines are translations of each other."
    )
    data_dir: str = _field(
        "", "In place of `parallel_files`: folder that holds Tatoeba, from XTREME or LASER."
    )
    label_folder: str = _field(
        "", "Folder of XTREME's labels, tatoeba/test-xx.tsv; LASER's files do without."
    )
    languages: tuple[str, ...] = _field((), "With `data_dir`: languages; default: all.")
    procedure: Literal["figure2", "tatoeba"] = _field(
        "figure2",
        "figure2 (Chung et al. 2021, A.9): no special tokens, English moved by the mean difference of the very pairs "
        "that are scored, Euclidean. tatoeba (XTREME): special tokens included, nothing moved, cosine.",
    )
    pooling: Literal["mean", "first"] = _field(
        "mean", "Mean over tokens, or the first token, [CLS]."
    )
    max_sentences: int = _field(5000, "Pairs of each language, the first ones (paper: 5,000).")
    random_encoder: bool = _field(
        False, "Sweep an encoder like the first model, but with random weights, too."
    )
    max_seq_length: int = _field(128, "Longest sequence in pieces, [CLS] and [SEP] included.")
    batch_size: int = _field(64, "Sequences in a batch.")

    def __post_init__(self):
        """Checks the values."""
        if bool(self.parallel_files) == bool(self.data_dir):
            raise ValueError(
                "Give either `parallel_files` or `data_dir`. "
                f"Received: parallel_files={','.join(self.parallel_files)!r}, "
                f"data_dir={self.data_dir!r}"
            )
        if self.parallel_files and len(self.parallel_files) != 2:
            raise ValueError(
                "`parallel_files` must be two files, ENGLISH,OTHER. "
                f"Received: parallel_files={','.join(self.parallel_files)!r}"
            )
        for name in ("max_sentences", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` must be positive. Received: {name}={getattr(self, name)}"
                )
        self.model_folders()

    def model_folders(self) -> dict[str, str]:
        """Returns name → folder of the models.

        Raises:
            ValueError: there is none, or a name comes twice.

        Example:
            >>> LayerSweepConfig(models=("a=runs/a", "runs/b"), output_dir="o",
            ...                  data_dir="d").model_folders()
            {'a': 'runs/a', 'runs/b': 'runs/b'}
        """
        folders = {}
        for model in self.models:
            name, _, folder = model.rpartition("=")
            folders[name or folder] = folder
        if not folders or len(folders) < len(self.models):
            raise ValueError(
                "`models` must be folders, each with a name of its own. "
                f"Received: models={','.join(self.models)!r}"
            )
        return folders
