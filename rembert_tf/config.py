"""The architecture of a model: its configuration and its parameter arithmetic.

`RemBertConfig` holds the keys of the published `config.json`, so that file and our configuration
are one thing. The arithmetic needs no model: it answers what a size costs before anything is built.

    python -m rembert_tf.config        # prints the sizes of `named_sizes` beside the paper's figures
"""

import dataclasses
import difflib
import json
import os
from collections.abc import Mapping
from typing import Any, Literal

# Keys that other libraries write beside the architecture: read, then dropped.
BOOKKEEPING_KEYS = frozenset(
    """_attn_implementation_autoset _name_or_path add_cross_attention architectures
    chunk_size_feed_forward cross_attention_hidden_size dtype embedding_size finetuning_task
    gradient_checkpointing is_decoder is_encoder_decoder label2id model_type num_labels
    output_attentions output_hidden_states position_embedding_type problem_type return_dict
    sep_token_id task_specific_params tf_legacy_loss tokenizer_class torch_dtype
    transformers_version use_cache""".split()
)


def _field(default, help_text):
    return dataclasses.field(default=default, metadata={"help": help_text})


@dataclasses.dataclass(frozen=True, kw_only=True)
class RemBertConfig:
    """The architecture of one model; the defaults are those of the published checkpoint.

    The input table is `[vocab_size, input_embedding_size]` and the output table
    `[vocab_size, output_embedding_size]`; `tie_word_embeddings` makes them one. The paper prints
    1,536 for the output width (Table 14), but only the 1,664 of the published checkpoint gives
    the 995M parameters of its Table 7 (Chung et al. 2021).

    Raises:
        ValueError: If a field has a wrong type or value, or two fields contradict each other.

    Example:
        >>> config = RemBertConfig(vocab_size=1000, hidden_size=64, num_attention_heads=4,
        ...                        num_hidden_layers=2, intermediate_size=256,
        ...                        input_embedding_size=32, output_embedding_size=128)
        >>> config.num_parameters().pretraining_total - config.num_parameters().finetuning_total
        128000
    """

    vocab_size: int = _field(250_300, "Number of pieces in the vocabulary.")
    hidden_size: int = _field(1152, "Width of the Transformer layers.")
    num_hidden_layers: int = _field(32, "Number of Transformer layers.")
    num_attention_heads: int = _field(18, "Number of attention heads of a layer.")
    intermediate_size: int = _field(4608, "Width inside the feed-forward block.")
    input_embedding_size: int = _field(256, "Width of the input embedding.")
    output_embedding_size: int = _field(1664, "Width of the output embedding.")
    max_position_embeddings: int = _field(512, "Longest sequence the model can read.")
    type_vocab_size: int = _field(2, "Number of token types (segments).")
    hidden_act: Literal["gelu", "gelu_new"] = _field("gelu", "Activation function.")
    hidden_dropout_prob: float = _field(0.0, "Dropout rate after attention and feed-forward.")
    attention_probs_dropout_prob: float = _field(0.0, "Dropout rate of attention probabilities.")
    embedding_dropout_prob: float = _field(0.0, "Dropout rate after the input embedding.")
    classifier_dropout_prob: float = _field(0.1, "Dropout rate before a classification layer.")
    initializer_range: float = _field(0.02, "Standard deviation of freshly drawn weights.")
    layer_norm_eps: float = _field(1e-12, "Epsilon of every layer normalization.")
    tie_word_embeddings: bool = _field(False, "Use the input table as the output table.")
    pad_token_id: int = _field(0, "Id of the padding piece.")
    bos_token_id: int = _field(312, "Id of the first piece of a sequence, [CLS].")
    eos_token_id: int = _field(313, "Id of the last piece of a sequence, [SEP].")
    input_projection: bool | None = _field(
        None, "Linear map from input width to hidden width; unset: exactly when they differ."
    )
    id2label: tuple[str, ...] = _field((), "Label names of a classification head, by id.")

    def __post_init__(self):
        """Checks every field, and settles `input_projection` when it is unset."""
        _check_types(self)
        same_width = self.input_embedding_size == self.hidden_size
        if self.input_projection is None:
            object.__setattr__(self, "input_projection", not same_width)
        for name in _POSITIVE:
            self._require(getattr(self, name) > 0, f"`{name}` must be positive", name)
        for name in _NOT_NEGATIVE:
            self._require(getattr(self, name) >= 0, f"`{name}` must not be negative", name)
        for name in _PROBABILITIES:
            rule = f"`{name}` must be at least 0 and below 1"
            self._require(0 <= getattr(self, name) < 1, rule, name)
        self._require(
            self.hidden_act in ("gelu", "gelu_new"),
            "`hidden_act` must be 'gelu' or 'gelu_new'",
            "hidden_act",
        )
        self._require(
            self.hidden_size % self.num_attention_heads == 0,
            "`hidden_size` must be a multiple of `num_attention_heads`",
            *("hidden_size", "num_attention_heads"),
        )
        self._require(
            self.input_embedding_size == self.output_embedding_size or not self.tie_word_embeddings,
            "`tie_word_embeddings` needs input and output embedding of one size",
            *("input_embedding_size", "output_embedding_size"),
        )
        self._require(
            same_width or self.input_projection,
            "`input_projection` may be false only if `input_embedding_size` equals `hidden_size`",
            *("input_embedding_size", "hidden_size"),
        )
        self._require(
            len(set(self.id2label)) == len(self.id2label),
            "`id2label` must name each label once",
            "id2label",
        )

    def _require(self, condition, rule, *names):
        if not condition:
            received = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
            raise ValueError(f"{rule}. Received: {received}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, source: str = "config") -> "RemBertConfig":
        """Reads the keys of a `config.json`.

        Args:
            values: The keys and their values; `id2label` as `{"0": "A", ...}` or a list.
            source: Name of the file, for messages.

        Raises:
            ValueError: If a key is unknown or a value is wrong; the message names `source`.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for key in values:
            if key not in names and key not in BOOKKEEPING_KEYS:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{source}: unknown key {key!r}.{hint}")
        if values.get("model_type", "rembert") != "rembert":
            raise ValueError(
                f"{source}: `model_type` must be 'rembert'. "
                f"Received: model_type={values['model_type']!r}"
            )
        if values.get("is_decoder"):
            raise ValueError(
                f"{source}: `is_decoder` must be false: attention here looks both ways, and a "
                "decoder's only back. Received: is_decoder=True"
            )
        fields = {key: value for key, value in values.items() if key in names}
        try:
            if "id2label" in fields:
                fields["id2label"] = _labels_from_json(fields["id2label"])
            config = cls(**fields)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None
        if values.get("embedding_size", config.input_embedding_size) != config.input_embedding_size:
            raise ValueError(
                f"{source}: `embedding_size` must equal `input_embedding_size`. "
                f"Received: embedding_size={values['embedding_size']}, "
                f"input_embedding_size={config.input_embedding_size}"
            )
        return config

    def to_dict(self) -> dict[str, Any]:
        """Returns the keys of a `config.json`, labels in both of Hugging Face's forms."""
        values = {"model_type": "rembert", **dataclasses.asdict(self)}
        labels = values.pop("id2label")
        if labels:
            values["id2label"] = {str(index): label for index, label in enumerate(labels)}
            values["label2id"] = {label: index for index, label in enumerate(labels)}
        return values

    @classmethod
    def from_json_file(cls, path: str | os.PathLike) -> "RemBertConfig":
        """Reads a `config.json`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is no JSON object, or as in `from_dict`.
        """
        return cls.from_dict(read_json_object(path), source=os.fspath(path))

    def to_json_file(self, path: str | os.PathLike) -> None:
        """Writes a `config.json` to a temporary name, then renames it."""
        path = os.fspath(path)
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, f".{name}.incomplete")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.replace(temporary, path)

    def replace(self, **changes) -> "RemBertConfig":
        """Returns a copy with some fields changed.

        When a width changes and `input_projection` is not given, the projection follows the
        widths again.
        """
        if {"input_embedding_size", "hidden_size"} & changes.keys():
            changes.setdefault("input_projection", None)
        return dataclasses.replace(self, **changes)

    def first_layers(self, num_hidden_layers: int) -> "RemBertConfig":
        """Returns the configuration of the first layers alone (Chung et al. 2021, Tables 5 and 13).

        Raises:
            ValueError: If there are not as many layers.
        """
        if not 0 < num_hidden_layers <= self.num_hidden_layers:
            raise ValueError(
                f"`num_hidden_layers` must be between 1 and {self.num_hidden_layers}. "
                f"Received: num_hidden_layers={num_hidden_layers}"
            )
        return self.replace(num_hidden_layers=num_hidden_layers)

    def num_parameters(self) -> "ParameterCount":
        """Counts the parameters of this size, part by part, without building anything."""
        e_in, e_out, d = self.input_embedding_size, self.output_embedding_size, self.hidden_size
        rows = self.vocab_size + self.max_position_embeddings + self.type_vocab_size
        attention = 4 * (d * d + d) + 2 * d
        feed_forward = 2 * d * self.intermediate_size + self.intermediate_size + d + 2 * d
        projection = e_in * d + d if self.input_projection else 0
        return ParameterCount(
            input_embedding=rows * e_in + 2 * e_in,
            encoder=projection + self.num_hidden_layers * (attention + feed_forward),
            pooler=d * d + d,
            head=d * e_out + e_out + 2 * e_out + self.vocab_size,
            output_table=0 if self.tie_word_embeddings else self.vocab_size * e_out,
        )


def read_json_object(path: str | os.PathLike) -> dict[str, Any]:
    """Reads a JSON file that holds one object.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or holds anything else.
    """
    path = os.fspath(path)
    with open(path, encoding="utf-8") as file:
        try:
            values = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{error.lineno}: not valid JSON: {error.msg}") from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected a JSON object. Received: {type(values).__name__}")
    return values


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParameterCount:
    """The parameters of a model by part.

    The papers count neither pooler nor the transform and biases of the masked-LM head: these are
    `pretraining_total` and `finetuning_total` (Chung et al. 2021, A.1 and Tables 2 to 6). What
    our models hold, exactly, are the other three totals.
    """

    input_embedding: int = _field(0, "Word, position and type tables, and their LayerNorm.")
    encoder: int = _field(0, "Input projection and Transformer layers.")
    pooler: int = _field(0, "Dense layer on the first token.")
    head: int = _field(0, "Masked-LM transform, its LayerNorm, and the bias of each piece.")
    output_table: int = _field(0, "Output embedding; 0 when it is the input table.")

    @property
    def finetuning_total(self) -> int:
        """What is kept for fine-tuning, as the papers count."""
        return self.input_embedding + self.encoder

    @property
    def pretraining_total(self) -> int:
        """What is trained in pre-training, as the papers count."""
        return self.finetuning_total + self.output_table

    @property
    def encoder_with_pooler_total(self) -> int:
        """All parameters of `RemBertEncoder`."""
        return self.finetuning_total + self.pooler

    @property
    def masked_lm_head_total(self) -> int:
        """All parameters of the masked-LM head that the encoder does not hold."""
        return self.head + self.output_table

    @property
    def masked_lm_total(self) -> int:
        """All parameters of `RemBertForMaskedLM`."""
        return self.finetuning_total + self.masked_lm_head_total


_POSITIVE = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "input_embedding_size output_embedding_size max_position_embeddings type_vocab_size "
    "layer_norm_eps"
).split()
_NOT_NEGATIVE = ("pad_token_id", "bos_token_id", "eos_token_id", "initializer_range")
_PROBABILITIES = (
    "hidden_dropout_prob attention_probs_dropout_prob embedding_dropout_prob "
    "classifier_dropout_prob"
).split()


def _check_types(config):
    for field in dataclasses.fields(config):
        value, kind = getattr(config, field.name), type(field.default)
        if field.name == "input_projection":
            fits, wanted = value is None or isinstance(value, bool), "true, false or unset"
        elif field.name == "id2label":
            fits = isinstance(value, tuple) and all(isinstance(label, str) for label in value)
            wanted = "a tuple of strings"
        else:
            accepted, wanted = {
                int: (int, "a whole number"),
                float: ((int, float), "a number"),
                str: (str, "a string"),
                bool: (bool, "true or false"),
            }[kind]
            fits = isinstance(value, accepted) and isinstance(value, bool) == (kind is bool)
        if not fits:
            raise ValueError(f"`{field.name}` must be {wanted}. Received: {field.name}={value!r}")


def _labels_from_json(labels):
    """Returns the label names in the order of their ids, from `{"0": "A", ...}` or a list."""
    if isinstance(labels, Mapping):
        by_key = {str(key): label for key, label in labels.items()}
        order = [str(index) for index in range(len(by_key))]
        if by_key.keys() != set(order):
            raise ValueError(
                f"`id2label` must have the keys 0, 1, 2 and so on. Received: keys {list(by_key)}"
            )
        return tuple(by_key[key] for key in order)
    if isinstance(labels, (list, tuple)):
        return tuple(labels)
    raise ValueError(f"`id2label` must be an object or a list. Received: id2label={labels!r}")


if __name__ == "__main__":
    # `named_sizes` imports this module a second time, under its own name, and knows that one alone.
    from rembert_tf.named_sizes import size_table

    print(size_table())
