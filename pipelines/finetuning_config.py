"""Configuration of fine-tuning data; light, so that `--help` need not import TensorFlow."""

import dataclasses

from rembert_tf.pipelines import xtreme


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuningDataConfig:
    """What to fine-tune on, and in which batches."""

    task: str = dataclasses.field(
        metadata={"help": f"Task of XTREME: {', '.join(xtreme.TASKS)}."},
    )
    data_dir: str = dataclasses.field(
        metadata={"help": "Folder that holds one folder a task, as XTREME's script leaves it."},
    )
    train_language: str = dataclasses.field(
        default="en",
        metadata={"help": "Language whose train file is trained on."},
    )
    max_train_examples: int = dataclasses.field(
        default=0,
        metadata={"help": "Train on this many examples, drawn by `seed`; 0 takes all."},
    )
    max_seq_length: int = dataclasses.field(
        default=128,
        metadata={"help": "Longest sequence in pieces, [CLS] and [SEP] included (XTREME: 128)."},
    )
    batch_size: int = dataclasses.field(
        default=32,
        metadata={"help": "Sequences in a training batch, over all devices (XTREME: 32)."},
    )
    pad_to_max: bool = dataclasses.field(
        default=False,
        metadata={"help": "Pad every batch to `max_seq_length`: fixed shapes, which TPUs need."},
    )
    seed: int = dataclasses.field(
        default=0,
        metadata={"help": "Seed of the order of the examples and of dropout."},
    )

    def __post_init__(self):
        xtreme.get_task(self.task)
        if not self.train_language:
            raise ValueError(
                "`train_language` must be a language code. Received: train_language=''"
            )
        least = {"max_train_examples": 0, "max_seq_length": 5, "batch_size": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if value < bound:
                raise ValueError(f"`{name}` must be at least {bound}. Received: {name}={value}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"`seed` must be between 0 and 2**63 - 1. Received: seed={self.seed}")
