"""Configuration of an export; light, so that `--help` need not import TensorFlow."""

import dataclasses
from typing import Literal

from rembert_tf.pipelines.finetuning_config import LengthOfRunConfig


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingConfig(LengthOfRunConfig):
    """What an exported model does with the text it is sent."""

    max_windows: int = _field(
        0,
        "Questions: windows of a context that go through the model, at most; the end of a longer one is left out, and "
        "`truncated` says so. 0 takes all. The text is split into pieces as a whole either way.",
    )
    top_k: int = _field(5, "Masked LM: pieces that `fill_mask` gives for each [MASK].")
    layer: int = _field(-1, "Encoder: layer that `embed` pools; 0 is the input, -1 the last layer.")
    pooling: Literal["mean", "first"] = _field(
        "mean", "Encoder: `embed` takes the mean over tokens, or the first one, [CLS]."
    )
    special_tokens: bool = _field(True, "Encoder: the mean of `embed` includes [CLS] and [SEP].")
    normalize: bool = _field(False, "Encoder: vectors of `embed` have length 1.")
    rows_per_batch: int = _field(
        16, "Sequences that go through the model at once, at most; bounds the memory of a request."
    )
    ids_length: int = _field(
        0, "Fixed length of the sequences of `serving_default`, for XLA; 0 leaves it open."
    )

    def __post_init__(self):
        """Checks the values."""
        super().__post_init__()
        for name, least in (
            ("top_k", 1), ("rows_per_batch", 1), ("ids_length", 0), ("max_windows", 0)
        ):  # fmt: skip
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"`{name}` must be at least {least}. Received: {name}={value}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportConfig(ServingConfig):
    """What `rembert-export` exports, and where to."""

    model: str = dataclasses.field(
        metadata={"help": "Model folder: <model_dir>/model of `rembert-finetune`, or any other."}
    )
    output_dir: str = dataclasses.field(metadata={"help": "Folder above ids/ and text/."})
    version: int = _field(0, "Version of both folders; 0 takes the one after the highest there is.")
    dtype: Literal["float32", "bfloat16"] = _field(
        "float32", "Type of weights and computation; bfloat16 halves the files."
    )
    masked_lm_head: bool = _field(
        False, "Masked LM: keep its head, for `fill_mask`. Without it, the encoder is exported."
    )
    onnx: Literal["none", "float32", "int8"] = _field(
        "none", "Also write <output_dir>/onnx/<version>/model.onnx, which takes piece ids."
    )
    dry_run: bool = _field(False, "Only say what would be written, and how large it is.")

    def __post_init__(self):
        """Checks the values."""
        super().__post_init__()
        if self.version < 0:
            raise ValueError(f"`version` must not be negative. Received: version={self.version}")
        if self.onnx != "none" and self.dtype != "float32":
            raise ValueError(f"`onnx` needs `dtype` float32. Received: dtype={self.dtype!r}")
