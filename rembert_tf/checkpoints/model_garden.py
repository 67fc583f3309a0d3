"""Checkpoints of Model Garden's `BertEncoderV2` and `BertPretrainerV2`, in and out.

The keys of such a checkpoint depend on what was handed to `tf.train.Checkpoint` (`encoder=`,
`model=`), and Keras' functional models number their layers in them. The attributes of the encoder
are always the same. So the encoder is looked for in the checkpoint's graph of objects, wherever it
hangs, and written as a tree of objects with these attributes. Model Garden is never imported.
"""

import collections
import functools
import os

import tensorflow as tf
from absl import logging

from rembert_tf.checkpoints import names
from rembert_tf.checkpoints.model_from_weights import (
    check_names,
    low_rank_layers,
    published_value,
    to_tensor,
    variables_by_path,
)
from rembert_tf.checkpoints.model_garden_card import restoring_code, write_card
from rembert_tf.checkpoints.model_garden_names import attributes_of, our_shape, their_shape
from rembert_tf.checkpoints.object_graph import ObjectGraph, short_key
from rembert_tf.checkpoints.replaced_folder import replaced_folder
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights
from rembert_tf.layers.initializers import truncated_normal
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM

_TABLE = "rembert/embeddings/word_embeddings"
_PROJECTION = ("rembert/input_projection/kernel", "rembert/input_projection/bias")
_POOLER_KERNEL, _POOLER_BIAS = "rembert/pooler/kernel", "rembert/pooler/bias"
_OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
# The attributes by which an encoder and a masked-LM head are known.
_ENCODER = {"_embedding_layer", "_transformer_layers"}
_HEAD = {"embedding_table", "dense", "layer_norm", "bias"}
# Parts of the keys of what only training needs.
_TRAINING = {"optimizer", ".OPTIMIZER_SLOT", "save_counter", "global_step"}
_LAYER_NORM_EPS = 1e-12  # Model Garden's, which its encoder has no argument for
_FILE = "bert_model.ckpt"


def open_model_garden(path: str | os.PathLike) -> StoredWeights:
    """Opens a checkpoint that holds an encoder, and perhaps a masked-LM head.

    The head's table may be a variable of its own (`MaskedLM(embedding_table=...)`): an untied
    output embedding. Notes say what the checkpoint does not and has to be assumed.

    Args:
        path: Prefix of the checkpoint, or a folder that holds it.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If it is damaged, or does not hold exactly one encoder of this kind.
    """
    graph, keys = _find_encoder(path)
    heads = [_find_variables(graph, node, "masked_lm_head/") for node in graph.find(_HEAD)]
    if len(heads) == 1 and None not in heads[0].values():
        keys |= heads[0]
        if keys[_OUTPUT_TABLE] == keys[_TABLE]:
            del keys[_OUTPUT_TABLE]  # tied
    tensors = {}
    for variable_path, key in keys.items():
        shape = our_shape(variable_path, graph.shape(key))
        read = functools.partial(_read, graph, key, shape)
        tensors[variable_path] = StoredTensor(short_key(key), shape, read)
    others = sorted(graph.variables() - set(keys.values()))
    training = collections.Counter(filter(None, map(_part_of_training, others)))
    unknown = {short_key(key): graph.shape(key) for key in others if not _part_of_training(key)}
    notes = [
        "the activation is not in the checkpoint: Model Garden's default is the tanh form, gelu_new",
        "nor are `norm_first`, taken to be False, and the activation of a masked-LM head, taken to "
        "be the encoder's",
    ]
    if training:
        parts = ", ".join(f"{part} ({count})" for part, count in training.items())
        notes.append(f"variables left out, since only training needs them: {parts}")
    return StoredWeights(graph.prefix, tensors, unknown, tuple(notes))


def number_of_heads(path: str | os.PathLike) -> int:
    """Returns the number of attention heads of the encoder in a checkpoint.

    Args:
        path: Prefix of the checkpoint, or a folder that holds it.
    """
    graph, keys = _find_encoder(path)
    return graph.shape(keys["rembert/layer_0/attention/query/bias"])[0]  # [N, d]


def write_model_garden(model, path: str | os.PathLike) -> str:
    """Writes an encoder or a masked LM as a folder that Model Garden restores.

    Beside the checkpoint lies a README.md with the code that makes the fitting model. A model
    without pooler gets a new one there, since a `BertEncoderV2` has one.

    Args:
        model: A `RemBertEncoder` or `RemBertForMaskedLM`.
        path: The folder to write; it must be new or empty.

    Returns:
        The code.

    Raises:
        ValueError: If Model Garden cannot hold the model, or `path` is taken.
        OSError: If the folder cannot be written.
    """
    _check_model_garden_can_hold(model)
    path = os.path.realpath(path)
    if os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path)):
        raise ValueError(f"`path` must be a new or an empty folder. Received: path={path!r}")
    name = os.path.basename(path)
    try:
        with replaced_folder(path) as folder:
            checkpoint = tf.train.Checkpoint(**_as_objects(model))
            prefix = checkpoint.save(os.path.join(folder, _FILE))
            code = restoring_code(model, f"{name}/{os.path.basename(prefix)}")
            write_card(folder, name, model, code)
    except tf.errors.OpError as error:
        raise OSError(f"{path}: could not be written: {error.message}") from error
    logging.info("%s: Model Garden restores it by\n%s", path, code)
    return code


def _find_encoder(path):
    """Opens a checkpoint; returns its graph and the keys of the encoder's variables."""
    graph = ObjectGraph(path)
    encoders = graph.find(_ENCODER)
    if len(encoders) != 1:
        raise ValueError(
            f"{graph.prefix}: there must be one encoder like Model Garden's `BertEncoderV2`, and "
            f"there are {len(encoders)}. The checkpoint holds {', '.join(graph.children(0))}; "
            "`tf.train.Checkpoint(encoder=...)` saves an encoder alone"
        )
    layers = graph.children(encoders[0])["_transformer_layers"]
    keys = _find_variables(graph, encoders[0], "rembert/", len(graph.children(layers)))
    for variable_path in _PROJECTION:
        if keys[variable_path] is None:
            del keys[variable_path]
    missing = [attributes_of(variable_path) for variable_path, key in keys.items() if key is None]
    more = sorted(graph.variables_below(encoders[0]) - set(keys.values()))
    more = [short_key(key) for key in more if not _part_of_training(key)]
    if missing or more:
        what = f"lacks {', '.join(missing[:4])}" if missing else f"also has {', '.join(more[:4])}"
        raise ValueError(
            f"{graph.prefix}: the encoder is not a `BertEncoderV2` with its default layers: it {what}"
        )
    return graph, keys


def _find_variables(graph, node, part, num_layers=0):
    """Returns the keys, or None, of all variables that a part of our models may have."""
    found = {}
    for entry in names.TABLE:
        if entry.ours.startswith(part):
            numbers = range(num_layers) if "#" in entry.ours else [0]
            for variable_path in (entry.ours.replace("#", str(number)) for number in numbers):
                found[variable_path] = graph.variable(node, attributes_of(variable_path))
    return found


def _part_of_training(key):
    """Returns the part of a key that says that only training needs the variable, or None."""
    return next((part for part in key.split("/") if part in _TRAINING), None)


def _read(graph, key, shape):
    return graph.read(key).reshape(shape)


def _check_model_garden_can_hold(model):
    if not isinstance(model, (RemBertEncoder, RemBertForMaskedLM)):
        raise ValueError(
            "`model` must be a RemBertEncoder or a RemBertForMaskedLM: Model Garden's other heads "
            "are not ours. Write `model.encoder`, which leaves the head out. "
            f"Received: a {type(model).__name__}"
        )
    check_names(model)
    config = model.config
    if config.input_projection and config.input_embedding_size == config.hidden_size:
        raise ValueError(
            "`input_projection` must be false where both widths are equal: Model Garden has a "
            "projection only where they differ. Received: input_projection=True, "
            f"input_embedding_size={config.input_embedding_size}, hidden_size={config.hidden_size}"
        )
    if config.layer_norm_eps != _LAYER_NORM_EPS:
        raise ValueError(
            f"`layer_norm_eps` must be Model Garden's, {_LAYER_NORM_EPS}. "
            f"Received: layer_norm_eps={config.layer_norm_eps}"
        )


def _as_objects(model):
    """Returns the model as trees of objects, under the names of Model Garden's own checkpoints.

    The variables are the model's own, not copies, but where Model Garden has another shape.
    """
    config, encoder, head = model.config, tf.Module(), tf.Module()

    def put(path, variable):
        root = head if path.startswith("masked_lm_head/") else encoder
        _attach(root, attributes_of(path), variable)

    variables, low_rank = variables_by_path(model), low_rank_layers(model)
    for path, variable in variables.items():
        shape = their_shape(path, tuple(variable.shape), config.num_attention_heads)
        is_same = shape == tuple(variable.shape) and variable.dtype == "float32"
        if is_same and id(variable) not in low_rank:
            put(path, variable.value)
        else:
            value = published_value(variable, low_rank).reshape(shape)
            put(path, tf.Variable(to_tensor(value, "float32")))
    if _POOLER_KERNEL not in variables:
        width = config.hidden_size
        put(_POOLER_KERNEL, tf.Variable(truncated_normal(config.initializer_range)((width, width))))
        put(_POOLER_BIAS, tf.Variable(tf.zeros(width)))
    if isinstance(model, RemBertEncoder):
        return {"encoder": encoder}
    if config.tie_word_embeddings:
        head.embedding_table = encoder._embedding_layer.embeddings
    pretrainer = tf.Module()
    pretrainer.encoder_network, pretrainer.masked_lm = encoder, head
    return {"model": pretrainer, "encoder": encoder, "masked_lm": head}


def _attach(root, attributes, variable):
    *parents, last = attributes.split("/")
    for name in parents:
        if not hasattr(root, name):
            setattr(root, name, tf.Module())
        root = getattr(root, name)
    setattr(root, last, variable)
