"""A model as a folder: `config.json`, `model.safetensors`, the vocabulary, and a model card.

The layout and the names inside are Hugging Face's, so that transformers reads our folders and we
read its. transformers knows neither a tied output embedding nor an encoder without input
projection. What it needs in their place is written (the table a second time; an identity), and
loading finds both again: a table is tied if `config.json` says so and both copies are still equal.
"""

import json
import os
import shutil

import numpy as np
import safetensors.numpy

from rembert_tf.checkpoints import model_card, names
from rembert_tf.checkpoints.model_from_weights import model_from_weights, variables_by_path
from rembert_tf.checkpoints.safetensors_file import open_safetensors
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

CONFIG, WEIGHTS, VOCABULARY, CARD = (
    "config.json",
    "model.safetensors",
    "sentencepiece.model",
    "README.md",
)
_INPUT_TABLE = "rembert/embeddings/word_embeddings"
_OUTPUT_TABLE = "masked_lm_head/output_embedding/table"
_OUTPUT_BIAS = "masked_lm_head/output_embedding/bias"
_PROJECTION = "rembert/input_projection"


def save_pretrained(model, path, tokenizer=None) -> None:
    """Writes a model as a folder, under a temporary name first.

    A folder that an earlier call wrote is replaced; its vocabulary stays if no `tokenizer` is
    given. What a killed call left beside `path` (`.NAME.incomplete`, `.NAME.old`) is removed, or
    taken back if `path` was just being replaced.

    Args:
        model: One of our models.
        path: The folder to write.
        tokenizer: A `RemBertTokenizer`, whose vocabulary goes into the folder.

    Raises:
        OSError: If the folder cannot be written; the old one then stays.
        ValueError: If `path` holds anything that this function does not write, or the tokenizer
            has more pieces than the model.
    """
    path = os.path.realpath(path)
    parent, name = os.path.split(path)
    temporary, old = (os.path.join(parent, f".{name}.{end}") for end in ("incomplete", "old"))
    _tidy(path, temporary, old)
    _check_replaceable(path)
    if tokenizer is not None and tokenizer.vocab_size > model.config.vocab_size:
        raise ValueError(
            "`tokenizer` must not have more pieces than the model. Received: "
            f"vocab_size={tokenizer.vocab_size}, model vocab_size={model.config.vocab_size}"
        )
    hugging_face_class = type(model).__name__.replace("Encoder", "Model")
    os.makedirs(temporary)
    try:
        values = {"architectures": [hugging_face_class], **model.config.to_dict()}
        with open(os.path.join(temporary, CONFIG), "w", encoding="utf-8") as file:
            json.dump(values, file, indent=2, ensure_ascii=False)
            file.write("\n")
        safetensors.numpy.save_file(
            _tensors(model), os.path.join(temporary, WEIGHTS), metadata={"format": "pt"}
        )
        if tokenizer is not None:
            with open(os.path.join(temporary, VOCABULARY), "wb") as file:
                file.write(tokenizer.model_bytes)
        elif os.path.exists(os.path.join(path, VOCABULARY)):
            shutil.copy(os.path.join(path, VOCABULARY), temporary)
        model_card.write_model_card(temporary, name, model, hugging_face_class)
        if os.path.exists(path):
            os.rename(path, old)
        os.rename(temporary, path)
    except safetensors.SafetensorError as error:  # no OSError, even where the disk is full
        raise OSError(f"{path}: could not be written: {error}") from error
    finally:
        _tidy(path, temporary, old)


def _tidy(path, temporary, old):
    """Removes what is left beside `path`, or takes the old folder back if the new one is not there."""
    shutil.rmtree(temporary, ignore_errors=True)
    if os.path.exists(old) and not os.path.lexists(path):
        os.rename(old, path)
    shutil.rmtree(old, ignore_errors=True)


def load_pretrained(
    path,
    model_class=RemBertEncoder,
    *,
    num_hidden_layers=None,
    strict=False,
    dtype=None,
    id2label=None,
):
    """Makes a model and fills it from a folder that we or transformers wrote.

    The folder may hold another model than the one asked for: a masked LM's folder gives an encoder
    or a classifier, an encoder's folder gives a masked LM with a new head.

    Args:
        path: The folder.
        model_class: Class of the model to make.
        num_hidden_layers: Keep only the first layers (Chung et al. 2021, Tables 5 and 13).
        strict: Whether a variable that the folder lacks is an error.
        dtype: Keras dtype policy of the model.
        id2label: Label names in the order of their ids, for a classification head. If they are
            not the saved ones, the head is made anew.

    Returns:
        The model and a `LoadReport`, which is also logged.

    Raises:
        FileNotFoundError: If the folder, its config.json or its model.safetensors is missing.
        ValueError: If the folder does not fit: a wrong configuration, tensors of another shape, no
            tensor of this architecture at all, or, with `strict`, missing ones.
    """
    path = os.fspath(path)
    _check_readable(path)
    saved = RemBertConfig.from_json_file(os.path.join(path, CONFIG))
    weights = open_safetensors(os.path.join(path, WEIGHTS))
    config, notes = _settle_config(saved, weights, os.path.join(path, CONFIG))
    weights = weights.replace(notes=(*weights.notes, *notes))
    if num_hidden_layers is not None:
        if not 0 < num_hidden_layers <= config.num_hidden_layers:
            raise ValueError(
                f"`num_hidden_layers` must be between 1 and {config.num_hidden_layers}. "
                f"Received: num_hidden_layers={num_hidden_layers}"
            )
        config = config.replace(num_hidden_layers=num_hidden_layers)
    new_head = False
    if id2label is not None:
        config = config.replace(id2label=tuple(id2label))
        same_shape = weights.shape("classifier/dense/bias") == (len(config.id2label),)
        new_head = not same_shape or bool(saved.id2label) and saved.id2label != config.id2label
    return model_from_weights(
        weights, config, model_class, strict=strict, dtype=dtype, new_head=new_head
    )


def _tensors(model):
    """Returns the weights as arrays under Hugging Face's keys."""
    arrays = {path: variable.numpy() for path, variable in variables_by_path(model).items()}
    if not model.config.input_projection:
        width = model.config.hidden_size
        arrays[f"{_PROJECTION}/kernel"] = np.eye(width, dtype="float32")
        arrays[f"{_PROJECTION}/bias"] = np.zeros(width, dtype="float32")
    if _OUTPUT_BIAS in arrays and model.config.tie_word_embeddings:
        arrays[_OUTPUT_TABLE] = arrays[_INPUT_TABLE]
    tensors = {}
    for path, array in arrays.items():
        tensor_names = names.by_variable_path(path)
        if tensor_names.hugging_face_transposed:
            array = np.ascontiguousarray(array.T)
        tensors[tensor_names.hugging_face] = array
    return tensors


def _settle_config(config, weights, config_path):
    """Decides by the tensors where transformers cannot say it in its configuration."""
    notes = []
    kernel, bias = f"{_PROJECTION}/kernel", f"{_PROJECTION}/bias"
    if not config.input_projection and kernel in weights.tensors:
        identity = np.eye(config.hidden_size)
        if not np.array_equal(weights.read(kernel), identity) or np.any(weights.read(bias)):
            config = config.replace(input_projection=True)
            notes.append("the model has an input projection: that of the file is not the identity")
    if config.tie_word_embeddings and _OUTPUT_TABLE in weights.tensors:
        if not np.array_equal(weights.read(_OUTPUT_TABLE), weights.read(_INPUT_TABLE)):
            config = config.replace(tie_word_embeddings=False)
            notes.append(
                f"the output embedding is untied: {config_path} ties it, but the file's two "
                "tables differ"
            )
    return config, notes


def _check_replaceable(path):
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise ValueError(f"`path` must be a folder. Received: path={path!r}, which is a file")
    foreign = sorted(set(os.listdir(path)) - {CONFIG, WEIGHTS, VOCABULARY, CARD})
    if foreign:
        raise ValueError(
            "`path` must be a new folder or one that `save_pretrained` wrote, since it is "
            f"replaced. Received: path={path!r}, which also holds {', '.join(foreign[:8])}"
        )


def _check_readable(path):
    if not os.path.exists(path):
        raise FileNotFoundError(f"`path` must be a folder that exists. Received: path={path!r}")
    if not os.path.isdir(path):
        raise ValueError(f"`path` must be a folder. Received: path={path!r}, which is a file")
    present = sorted(os.listdir(path))
    for needed in (CONFIG, WEIGHTS):
        if needed not in present:
            hint = ""
            if needed == WEIGHTS and "pytorch_model.bin" in present:
                hint = " (transformers' `save_pretrained` turns pytorch_model.bin into it)"
            raise FileNotFoundError(
                f"{path}: no {needed}{hint}. Found: {', '.join(present) or 'an empty folder'}"
            )
