"""One table of names: our variables, Hugging Face's tensors, Google's TF1 variables.

A dense kernel is `[inputs, outputs]` here and in TF1, and transposed in Hugging Face's files. No
listing of Google's RemBERT variables is public. The encoder's names are those that BERT's code gives
and that Hugging Face's converter expects; it skips names with `cls` or `output_embedding` in them,
so the names of the masked-LM head follow BERT's and that hint.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class TensorNames:
    """The names of one tensor, and which of the two others store it transposed."""

    ours: str
    hugging_face: str
    google_tf1: str
    hugging_face_transposed: bool = False
    google_tf1_transposed: bool = False

    def _for_layer(self, number):
        return dataclasses.replace(
            self,
            ours=self.ours.replace("#", number),
            hugging_face=self.hugging_face.replace("#", number),
            google_tf1=self.google_tf1.replace("#", number),
        )


# Modules with a kernel and a bias; "#" stands for the number of a Transformer layer.
_DENSE = (
    (
        "rembert/input_projection",
        "rembert.encoder.embedding_hidden_mapping_in",
        "bert/encoder/embedding_hidden_mapping_in",
    ),
    *(
        (
            f"rembert/layer_#/attention/{name}",
            f"rembert.encoder.layer.#.attention.self.{name}",
            f"bert/encoder/layer_#/attention/self/{name}",
        )
        for name in ("query", "key", "value")
    ),
    (
        "rembert/layer_#/attention/output",
        "rembert.encoder.layer.#.attention.output.dense",
        "bert/encoder/layer_#/attention/output/dense",
    ),
    (
        "rembert/layer_#/intermediate",
        "rembert.encoder.layer.#.intermediate.dense",
        "bert/encoder/layer_#/intermediate/dense",
    ),
    (
        "rembert/layer_#/output",
        "rembert.encoder.layer.#.output.dense",
        "bert/encoder/layer_#/output/dense",
    ),
    ("rembert/pooler", "rembert.pooler.dense", "bert/pooler/dense"),
    ("masked_lm_head/dense", "cls.predictions.dense", "cls/predictions/transform/dense"),
)
# Layer normalizations.
_NORMS = (
    (
        "rembert/embeddings/layer_norm",
        "rembert.embeddings.LayerNorm",
        "bert/embeddings/LayerNorm",
    ),
    (
        "rembert/layer_#/attention_norm",
        "rembert.encoder.layer.#.attention.output.LayerNorm",
        "bert/encoder/layer_#/attention/output/LayerNorm",
    ),
    (
        "rembert/layer_#/output_norm",
        "rembert.encoder.layer.#.output.LayerNorm",
        "bert/encoder/layer_#/output/LayerNorm",
    ),
    (
        "masked_lm_head/layer_norm",
        "cls.predictions.LayerNorm",
        "cls/predictions/transform/LayerNorm",
    ),
)
# What is the same in all three, and what is like nothing else.
_SINGLE = (
    *(
        TensorNames(
            f"rembert/embeddings/{name}",
            f"rembert.embeddings.{name}.weight",
            f"bert/embeddings/{name}",
        )
        for name in ("word_embeddings", "position_embeddings", "token_type_embeddings")
    ),
    TensorNames(
        "masked_lm_head/output_embedding/table",
        "cls.predictions.decoder.weight",
        "cls/predictions/output_embedding",
    ),
    TensorNames(
        "masked_lm_head/output_embedding/bias",
        "cls.predictions.decoder.bias",
        "cls/predictions/output_bias",
    ),
    TensorNames("classifier/dense/kernel", "classifier.weight", "output_weights", True, True),
    TensorNames("classifier/dense/bias", "classifier.bias", "output_bias"),
    TensorNames("qa_outputs/kernel", "qa_outputs.weight", "cls/squad/output_weights", True, True),
    TensorNames("qa_outputs/bias", "qa_outputs.bias", "cls/squad/output_bias"),
)


def _expand():
    yield from _SINGLE
    for ours, hugging_face, google in _DENSE:
        yield TensorNames(f"{ours}/kernel", f"{hugging_face}.weight", f"{google}/kernel", True)
        yield TensorNames(f"{ours}/bias", f"{hugging_face}.bias", f"{google}/bias")
    for ours, hugging_face, google in _NORMS:
        yield TensorNames(f"{ours}/gamma", f"{hugging_face}.weight", f"{google}/gamma")
        yield TensorNames(f"{ours}/beta", f"{hugging_face}.bias", f"{google}/beta")


TABLE: tuple[TensorNames, ...] = tuple(_expand())

_BY_OURS = {names.ours: names for names in TABLE}
_BY_HUGGING_FACE = {names.hugging_face: names for names in TABLE}
_BY_GOOGLE_TF1 = {names.google_tf1: names for names in TABLE}
_LAYER_NUMBER = re.compile(r"(?<=/layer_)\d+(?=/)|(?<=\.layer\.)\d+(?=\.)")


def by_variable_path(path: str) -> TensorNames:
    """Returns the names of our variable `path`.

    Raises:
        KeyError: If no model of ours has such a variable.
    """
    return _look_up(_BY_OURS, path)


def is_variable_path(path: str) -> bool:
    """Says whether a model of ours has a variable `path`."""
    try:
        return bool(by_variable_path(path))
    except KeyError:
        return False


def by_hugging_face_key(key: str) -> TensorNames:
    """Returns the names of Hugging Face's tensor `key`.

    Raises:
        KeyError: If none of our models has it.
    """
    return _look_up(_BY_HUGGING_FACE, key)


def by_google_tf1_name(name: str) -> TensorNames:
    """Returns the names of Google's TF1 variable `name`.

    Raises:
        KeyError: If none of our models has it.
    """
    return _look_up(_BY_GOOGLE_TF1, name)


def _look_up(table, name):
    number = _LAYER_NUMBER.search(name)
    if number is None:
        return table[name]
    return table[_LAYER_NUMBER.sub("#", name, count=1)]._for_layer(number.group())
