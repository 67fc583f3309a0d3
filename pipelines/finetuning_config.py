"""Configuration of fine-tuning data; light, so that `--help` need not import TensorFlow."""

import dataclasses

from rembert_tf.pipelines import xtreme


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


# Longest sequences by kind of task in XTREME's scripts (Hu et al. 2020).
XTREME_LENGTHS = {
    "classification": 128, "tagging": 128, "question_answering": 384, "retrieval": 512,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthConfig:
    """How long texts become sequences. Defaults: XTREME's scripts, for texts that are no questions."""

    max_seq_length: int = _field(128, "Longest sequence in pieces, [CLS] and [SEP] included.")
    doc_stride: int = _field(
        128, "Questions: pieces from the start of one window of a long text to the next."
    )
    max_query_length: int = _field(64, "Questions: pieces that a question may have.")
    n_best_size: int = _field(20, "Questions: answers kept a question, best first.")
    max_answer_length: int = _field(30, "Questions: longest answer in pieces.")

    def __post_init__(self):
        """Checks the values."""
        least = {
            "max_seq_length": 5, "doc_stride": 1, "max_query_length": 1, "n_best_size": 1,
            "max_answer_length": 1,
        }  # fmt: skip
        _require_at_least(self, least)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LengthOfRunConfig(LengthConfig):
    """Lengths of a model that was fine-tuned: those of its run, where nothing else is said."""

    max_seq_length: int | None = _field(
        None,
        "Longest sequence in pieces, [CLS] and [SEP] included; default: that of the fine-tuning run, if its flags.txt "
        "lies beside the model's folder, or XTREME's, 128, questions 384, retrieval 512.",
    )
    doc_stride: int | None = _field(
        None,
        "Questions: pieces from the start of one window of a long text to the next; default: that of the fine-tuning "
        "run, or XTREME's, 128.",
    )
    max_query_length: int | None = _field(
        None,
        "Questions: pieces that a question may have; default: that of the fine-tuning run, or XTREME's, 64.",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningDataConfig(LengthConfig):
    """What to fine-tune on, and in which batches."""

    task: str = dataclasses.field(
        metadata={
            "help": f"Task of XTREME: {', '.join(xtreme.TRAINABLE)}; or `all`: each that has training data, with its "
            "recipe."
        },
    )
    max_seq_length: int | None = _field(
        None,
        "Longest sequence in pieces, [CLS] and [SEP] included; default: XTREME's, 128, questions 384.",
    )
    data_dir: str = _field(
        "", "Folder that holds one folder a task, as XTREME's script leaves it, or raw downloads."
    )
    train_language: str = _field("en", "Language whose train and dev files are taken.")
    translate_train: tuple[str, ...] = _field(
        (),
        "Languages whose machine-translated training files are trained on, too; with `dev_fraction`, all of them: "
        "translations of held-out texts stay.",
    )
    train_files: tuple[str, ...] = _field(
        (), "Files to train on, in any of the formats, in place of those in `data_dir`."
    )
    dev_file: str = _field("", "File to select the best step by, in place of that in `data_dir`.")
    dev_fraction: float = _field(
        0.0,
        "Hold out this share of the training data in place of a dev file; what belongs to one "
        "premise or text stays together.",
    )
    labels: tuple[str, ...] = _field(
        (),
        "Label names in the order of their ids; `data`: those of the files; default: the task's.",
    )
    max_train_examples: int = _field(
        0, "Train on this many examples, drawn by `seed`; 0 takes all."
    )
    batch_size: int = _field(32, "Sequences in a training batch, over all devices (XTREME: 32).")
    bucket_batches: int = _field(
        32,
        "Sequences of so many batches (an eighth of an epoch, at most) are sorted by their length, so that those of a "
        "batch need little padding; 1: batches as they are drawn.",
    )
    pad_to_max: bool = _field(
        False, "Pad every batch to `max_seq_length`: fixed shapes, which TPUs need."
    )
    seed: int = _field(0, "Seed of the order of the examples and of dropout.")

    def __post_init__(self):
        """Checks the values."""
        task = xtreme.get_task(self.task)
        if self.max_seq_length is None:
            object.__setattr__(self, "max_seq_length", XTREME_LENGTHS[task.kind])
        super().__post_init__()
        if task.name not in xtreme.TRAINABLE:
            raise ValueError(
                f"`task` must be one that is trained, {', '.join(xtreme.TRAINABLE)}. "
                f"Received: task={self.task!r}"
            )
        if not self.train_language:
            raise ValueError(
                "`train_language` must be a language code. Received: train_language=''"
            )
        if not self.data_dir and not (self.train_files and (self.dev_file or self.dev_fraction)):
            raise ValueError(
                "Give `data_dir`, or `train_files` with `dev_file` or `dev_fraction`. "
                f"Received: data_dir={self.data_dir!r}"
            )
        if not 0 <= self.dev_fraction < 1 or (self.dev_file and self.dev_fraction):
            raise ValueError(
                "`dev_fraction` must be at least 0 and below 1, and 0 with a `dev_file`. "
                f"Received: dev_fraction={self.dev_fraction}"
            )
        if self.labels and self.labels != ("data",):
            xtreme.check_labels(task, self.labels)
        _require_at_least(self, {"max_train_examples": 0, "batch_size": 1, "bucket_batches": 1})
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"`seed` must be between 0 and 2**63 - 1. Received: seed={self.seed}")


def _require_at_least(config, least: dict[str, int]) -> None:
    for name, bound in least.items():
        value = getattr(config, name)
        if value is not None and value < bound:
            raise ValueError(f"`{name}` must be at least {bound}. Received: {name}={value}")
