"""Configuration of an export; light, so that `--help` need not import TensorFlow."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig:
    """What `rembert-export` exports, and where to."""

    model: str = dataclasses.field(
        metadata={"help": "Fine-tuned model folder: <model_dir>/model of `rembert-finetune`."}
    )
    output_dir: str = dataclasses.field(metadata={"help": "Folder above ids/ and text/."})
    max_seq_length: int = dataclasses.field(
        default=128,
        metadata={"help": "Longest sequence made of a string; longer ones are cut and say so."},
    )
    version: int = dataclasses.field(
        default=0,
        metadata={"help": "Version of both folders; 0 takes the one after the highest there is."},
    )

    def __post_init__(self):
        """Checks the values."""
        if self.version < 0:
            raise ValueError(f"`version` must not be negative. Received: version={self.version}")
