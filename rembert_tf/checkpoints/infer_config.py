"""Reads the configuration of a model off the shapes of its tensors, for files that come without one.

Every shape stands once in the table below, in the names of `RemBertConfig`. So each stored tensor
says how large the axes are that it knows, and one that contradicts the others is named.
"""

import collections
import dataclasses
import os
import re

from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.config import RemBertConfig, read_json_object

_WORDS = "rembert/embeddings/word_embeddings"
_EMBEDDING_NORM = "rembert/embeddings/layer_norm/gamma"
_PROJECTION = "rembert/input_projection/kernel"
_OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
_OUTPUT_BIAS = "masked_lm_head/output_embedding/bias"
_LABELS = "number_of_labels"

# The axes of tables and of dense kernels. Of a module with a kernel, vectors have the last axis.
_AXES = {
    path: tuple(axes.split())
    for path, axes in {
        _WORDS: "vocab_size input_embedding_size",
        "rembert/embeddings/position_embeddings": "max_position_embeddings input_embedding_size",
        "rembert/embeddings/token_type_embeddings": "type_vocab_size input_embedding_size",
        "rembert/embeddings/layer_norm": "input_embedding_size",
        "rembert/input_projection": "input_embedding_size hidden_size",
        "rembert/layer_#/attention/query": "hidden_size hidden_size",
        "rembert/layer_#/attention/key": "hidden_size hidden_size",
        "rembert/layer_#/attention/value": "hidden_size hidden_size",
        "rembert/layer_#/attention/output": "hidden_size hidden_size",
        "rembert/layer_#/attention_norm": "hidden_size",
        "rembert/layer_#/intermediate": "hidden_size intermediate_size",
        "rembert/layer_#/output": "intermediate_size hidden_size",
        "rembert/layer_#/output_norm": "hidden_size",
        "rembert/pooler": "hidden_size hidden_size",
        "masked_lm_head/dense": "hidden_size output_embedding_size",
        "masked_lm_head/layer_norm": "output_embedding_size",
        _OUTPUT_TABLE: "vocab_size output_embedding_size",
        _OUTPUT_BIAS: "vocab_size",
        "classifier/dense": f"hidden_size {_LABELS}",
    }.items()
}
# What the shapes must show, and the tensor that shows it.
_NEEDED = {
    "vocab_size": _WORDS,
    "input_embedding_size": _WORDS,
    "max_position_embeddings": "rembert/embeddings/position_embeddings",
    "type_vocab_size": "rembert/embeddings/token_type_embeddings",
    "hidden_size": "rembert/layer_0/attention/query/kernel",
    "intermediate_size": "rembert/layer_0/intermediate/kernel",
}
_LAYER = re.compile(r"(?<=/layer_)\d+(?=/)")
_GOOGLE_CONFIGS = ("rembert_config.json", "bert_config.json")


def infer_config(
    weights: StoredWeights, *, num_attention_heads: int | None = None, **overrides
) -> tuple[RemBertConfig, tuple[str, ...]]:
    """Reads the configuration off the shapes.

    Args:
        weights: The weights.
        num_attention_heads: Number of heads, which no shape shows; unset: one for each 64 of
            `hidden_size`, as in BERT and in every model of Chung et al. (2021).
        **overrides: Other values of `RemBertConfig`. None may contradict the shapes.

    Returns:
        The configuration, and what is only assumed in it, a sentence each.

    Raises:
        ValueError: If shapes contradict each other or `overrides`, or do not tell enough.
    """
    given = {"num_attention_heads": num_attention_heads, **overrides}
    given = {name: value for name, value in given.items() if value is not None}
    if "id2label" in given:
        given[_LABELS] = len(given["id2label"])
    seen = _see(weights)
    problems = _describe_late_norm(weights, seen) or [
        *_describe_misfits(weights, seen),
        *_describe_gaps(weights, seen, given),
        *(
            f"`{name}` is {seen[name]} by the shapes, but {value!r} in the configuration given"
            for name, value in given.items()
            if name in seen and value != seen[name]
        ),
    ]
    if problems:
        rest = f"; and {len(problems) - 8} more" if len(problems) > 8 else ""
        unknown = ", ".join(list(weights.unknown)[:8])
        names = f". Names of no variable: {unknown}" if unknown else ""
        raise ValueError(f"{weights.path}: {'; '.join(problems[:8])}{rest}{names}")

    assumed, notes = _assume(weights, {**seen, **given})
    values = {**assumed, **seen, **given}
    values.pop(_LABELS, None)
    try:
        return RemBertConfig(**values), tuple(notes)
    except ValueError as error:
        raise ValueError(f"{weights.path}: {error}") from None


def read_google_config(folder: str | os.PathLike) -> dict:
    """Reads the `rembert_config.json` or `bert_config.json` that lies beside a checkpoint.

    Args:
        folder: The folder of the checkpoint.

    Returns:
        What `RemBertConfig` knows of it, by its names (`embedding_size` is the input's); empty if
        there is no such file.

    Raises:
        ValueError: If the file is no JSON object.
    """
    files = [os.path.join(folder, name) for name in _GOOGLE_CONFIGS]
    path = next(filter(os.path.isfile, files), None)
    if path is None:
        return {}
    values = read_json_object(path)
    # By "gelu" BERT's own code means the tanh form, which is called gelu_new elsewhere.
    if os.path.basename(path) == "bert_config.json" and values.get("hidden_act") == "gelu":
        values["hidden_act"] = "gelu_new"
    if "embedding_size" in values:
        values.setdefault("input_embedding_size", values["embedding_size"])
    known = {field.name for field in dataclasses.fields(RemBertConfig)} - {"id2label"}
    return {name: value for name, value in values.items() if name in known}


def _axes(path):
    """Returns the axes of a variable, or None if the table has nothing on it."""
    path = _LAYER.sub("#", path)
    module, _, kind = path.rpartition("/")
    if path in _AXES or module not in _AXES:
        return _AXES.get(path)
    return _AXES[module] if kind == "kernel" else _AXES[module][-1:]


def _see(weights):
    """Returns the values that shapes show; of an axis, what most tensors say it measures."""
    votes = collections.defaultdict(collections.Counter)
    for path in sorted(weights.tensors, key=lambda path: path != _WORDS):
        axes, shape = _axes(path), weights.shape(path)
        if axes and len(axes) == len(shape):
            for axis, size in zip(axes, shape, strict=True):
                votes[axis][size] += 1
    if not votes:
        keys = [tensor.key for tensor in weights.tensors.values()] or list(weights.unknown)
        raise ValueError(
            f"{weights.path}: no tensor of this architecture. "
            f"Found: {', '.join(keys[:8]) or 'no tensors'}"
        )
    seen = {axis: counter.most_common(1)[0][0] for axis, counter in votes.items()}
    seen["num_hidden_layers"] = len(_layers(weights))
    seen["input_projection"] = _PROJECTION in weights.tensors
    if _OUTPUT_TABLE in weights.tensors:
        seen["tie_word_embeddings"] = False
    return seen


def _layers(weights):
    return {int(found.group()) for found in map(_LAYER.search, weights.tensors) if found}


def _describe_late_norm(weights, seen):
    norm, words = weights.shape(_EMBEDDING_NORM), weights.shape(_WORDS)
    if norm is None or words is None or norm == words[1:] or norm != (seen.get("hidden_size"),):
        return []
    return [
        f"{weights.tensors[_EMBEDDING_NORM].key} is {list(norm)}, as wide as the hidden states; in "
        "RemBERT it is as wide as the input embedding, "
        f"{list(words[1:])}, and comes before the input projection. A model that normalizes after "
        "the projection is another architecture"
    ]


def _describe_misfits(weights, seen):
    for path, tensor in weights.tensors.items():
        axes = _axes(path) or ()
        expected = tuple(seen.get(axis) for axis in axes)
        if axes and tensor.shape != expected:
            hint = ": it would fit transposed" if tensor.shape == expected[::-1] else ""
            yield (
                f"{tensor.key} is {list(tensor.shape)}, but by the other tensors {path} is "
                f"[{', '.join(f'{axis}={seen.get(axis)}' for axis in axes)}]{hint}"
            )


def _describe_gaps(weights, seen, given):
    for name, path in _NEEDED.items():
        if name not in seen and name not in given:
            yield f"nothing shows `{name}`, since {path} is missing"
    layers = _layers(weights)
    for number in sorted(set(range(max(layers, default=0) + 1)) - layers):
        yield f"layer {number} is missing: there are {', '.join(map(str, sorted(layers))) or 'none'}"
    widths = seen.get("input_embedding_size"), seen.get("hidden_size")
    if not seen["input_projection"] and None not in widths and widths[0] != widths[1]:
        yield (
            f"there is no {_PROJECTION}, which a model needs whose input_embedding_size "
            f"({widths[0]}) is not its hidden_size ({widths[1]})"
        )


def _assume(weights, values):
    """Returns values for what no shape shows, and a sentence about each."""
    e_in, hidden = values["input_embedding_size"], values["hidden_size"]
    assumed, notes = {}, []
    if _OUTPUT_TABLE not in weights.tensors:
        e_out = values.get("output_embedding_size")
        fits = _OUTPUT_BIAS in weights.tensors and e_out in (None, e_in)
        tied = values.get("tie_word_embeddings", fits)
        e_out = e_out or (e_in if tied else hidden)
        assumed |= {"tie_word_embeddings": tied, "output_embedding_size": e_out}
        has_head = any(path.startswith("masked_lm_head/") for path in weights.tensors)
        notes.append(
            f"there is {'no output embedding' if has_head else 'no masked-LM head'}: "
            + ("it is taken as tied to the input embedding" if tied
               else f"one that is newly made has output_embedding_size={e_out}")
        )  # fmt: skip
    if "num_attention_heads" not in values:
        if hidden % 64:
            raise ValueError(
                f"{weights.path}: `num_attention_heads` must be given, since no shape shows it and "
                f"`hidden_size` is no multiple of 64. Received: hidden_size={hidden}"
            )
        assumed["num_attention_heads"] = hidden // 64
        notes.append(
            f"num_attention_heads={hidden // 64} IS ASSUMED, one for each 64 of hidden_size: no "
            "shape shows it, and a wrong number gives wrong outputs without an error"
        )
    if "hidden_act" not in values:
        notes.append(
            "hidden_act='gelu' IS ASSUMED, by the error function; 'gelu_new' is its tanh form"
        )
    if _LABELS in values and "id2label" not in values:
        assumed["id2label"] = tuple(f"LABEL_{number}" for number in range(values[_LABELS]))
        notes.append(f"the {values[_LABELS]} labels have no names in the file: LABEL_0 and so on")
    return assumed, notes
