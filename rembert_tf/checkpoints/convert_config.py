"""Configuration of a conversion; light, so that `--help` need not import TensorFlow."""

import dataclasses
from typing import Literal


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvertConfig:
    """What `rembert-convert` reads, changes and writes."""

    input: str = dataclasses.field(
        metadata={
            "help": "Model folder, prefix of a TensorFlow checkpoint (or its folder), or Hub id."
        }
    )
    output: str = dataclasses.field(metadata={"help": "The folder to write."})
    output_format: Literal["hugging_face", "model_garden"] = _field(
        "hugging_face", "A model folder (ours, and that of transformers), or Model Garden's form."
    )
    model_class: Literal[
        "",
        "RemBertEncoder",
        "RemBertForMaskedLM",
        "RemBertForSequenceClassification",
        "RemBertForTokenClassification",
        "RemBertForQuestionAnswering",
    ] = _field("", "Class of the model to write; default: the one whose head the input holds.")
    config: str = _field(
        "", "config.json or named size of an input without one; default: seen from its tensors."
    )
    num_attention_heads: int = _field(
        0, "Attention heads of an input that does not tell; 0: one for each 64 of the hidden width."
    )
    hidden_act: Literal["", "gelu", "gelu_new"] = _field(
        "", "Activation of an input without config.json; default: gelu, of Model Garden gelu_new."
    )
    name_map: str = _field("", "JSON file that places tensors of a TF1 checkpoint by name.")
    revision: str = _field("", "Branch, tag or commit of a Hub id.")
    num_hidden_layers: int = _field(0, "Keep only the first layers; 0: all.")
    tokenizer: str = _field(
        "",
        "Vocabulary to write beside the model; where the input has another one, the tables are "
        "changed to it, piece by piece.",
    )
    vocab_size: int = _field(0, "Pieces to enlarge or cut the tables to; 0: as they are.")
    dtype: Literal["", "float32", "bfloat16", "float16"] = _field(
        "", "Type of the written weights; default: float32."
    )
    strict: bool = _field(
        False, "Fail unless the input holds every variable of the model to write."
    )

    def __post_init__(self):
        """Checks the values."""
        for name in ("num_attention_heads", "num_hidden_layers", "vocab_size"):
            if getattr(self, name) < 0:
                value = getattr(self, name)
                raise ValueError(f"`{name}` must not be negative. Received: {name}={value}")
        if self.tokenizer and self.vocab_size:
            raise ValueError(
                "Give either `tokenizer` or `vocab_size`. Received: "
                f"tokenizer={self.tokenizer!r}, vocab_size={self.vocab_size}"
            )
        for name in ("dtype", "tokenizer"):
            if getattr(self, name) and self.output_format == "model_garden":
                raise ValueError(
                    f"`{name}` is for a model folder. Received: {name}={getattr(self, name)!r}, "
                    "output_format='model_garden'"
                )
