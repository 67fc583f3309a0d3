"""A model as a folder: `config.json`, `model.safetensors`, the vocabulary, and a model card.

The vocabulary is `sentencepiece.model`; the two files that transformers' tokenizer reads are made from it.

The layout and the names inside are Hugging Face's, so that transformers reads our folders and we
read its, those of older versions and other frameworks too.
"""

import json
import os
import shutil

import safetensors

from rembert_tf.checkpoints import hub, model_card
from rembert_tf.checkpoints.hugging_face_folder import open_hugging_face_folder
from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.checkpoints.replaced_folder import replaced_folder
from rembert_tf.checkpoints.safetensors_file import check_dtype, write_safetensors
from rembert_tf.checkpoints.stand_ins import settle_stand_ins
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder

CONFIG, WEIGHTS, VOCABULARY, CARD = (
    "config.json",
    "model.safetensors",
    "sentencepiece.model",
    "README.md",
)
TOKENIZER_FILE, TOKENIZER_CONFIG_FILE = "tokenizer.json", "tokenizer_config.json"


def save_pretrained(model, path, tokenizer=None, *, dtype=None) -> None:
    """Writes a model as a folder, under a temporary name first.

    A folder that an earlier call wrote is replaced; its vocabulary stays if no `tokenizer` is
    given.

    Args:
        model: One of our models.
        path: The folder to write.
        tokenizer: A `RemBertTokenizer`, whose vocabulary goes into the folder.
        dtype: Type in which the weights are stored, "float32", or for half the size "bfloat16" or
            "float16"; default: that of the variables. Whoever loads them makes a float32 model,
            unless asked for another one.

    Raises:
        OSError: If the folder cannot be written; the old one then stays.
        ValueError: If `path` holds anything that this function does not write, the tokenizer has
            more pieces than the model, or a weight is too large for `dtype`.
    """
    check_dtype(dtype)
    path = os.path.realpath(path)
    check_replaceable(path)
    if tokenizer is not None and tokenizer.vocab_size > model.config.vocab_size:
        raise ValueError(
            "`tokenizer` must not have more pieces than the model. Received: "
            f"vocab_size={tokenizer.vocab_size}, model vocab_size={model.config.vocab_size}"
        )
    try:
        with replaced_folder(path) as folder:
            _write(folder, path, model, tokenizer, dtype)
    except safetensors.SafetensorError as error:  # no OSError, even where the disk is full
        raise OSError(f"{path}: could not be written: {error}") from error


def _write(folder, path, model, tokenizer, dtype):
    """Writes the files that shall lie at `path` to `folder`."""
    hugging_face_class = type(model).__name__.replace("Encoder", "Model")
    # `dtype` is what transformers 5 makes the model in, unless its user asks for another one.
    values = {"architectures": [hugging_face_class], "dtype": "float32", **model.config.to_dict()}
    with open(os.path.join(folder, CONFIG), "w", encoding="utf-8") as file:
        json.dump(values, file, indent=2, ensure_ascii=False)
        file.write("\n")
    write_safetensors(model, os.path.join(folder, WEIGHTS), dtype)
    # safetensors lets nobody but the owner read it.
    shutil.copymode(os.path.join(folder, CONFIG), os.path.join(folder, WEIGHTS))
    if tokenizer is not None:
        with open(os.path.join(folder, VOCABULARY), "wb") as file:
            file.write(tokenizer.model_bytes)
        # Here, since it needs TensorFlow: with another Keras backend a model is saved without.
        from rembert_tf.pipelines.hugging_face_tokenizer import write_hugging_face_tokenizer

        write_hugging_face_tokenizer(folder, tokenizer, model.config.max_position_embeddings)
    else:
        for name in (VOCABULARY, TOKENIZER_FILE, TOKENIZER_CONFIG_FILE):
            if os.path.exists(os.path.join(path, name)):
                shutil.copy(os.path.join(path, name), folder)
    model_card.write_model_card(folder, os.path.basename(path), model, hugging_face_class, dtype)


def load_pretrained(
    path,
    model_class=RemBertEncoder,
    *,
    revision=None,
    num_hidden_layers=None,
    strict=False,
    dtype=None,
    id2label=None,
    tie_word_embeddings=None,
    tied_table=None,
):
    """Makes a model and fills it from a folder that we or transformers wrote, or from the Hub.

    The folder may hold another model than the one asked for: a masked LM's folder gives an encoder
    or a classifier, an encoder's folder gives a masked LM with a new head.

    Args:
        path: The folder, or the id of a model on the Hub ("google/rembert"), which is downloaded
            once, with the extra `[hf]` installed.
        model_class: Class of the model to make.
        revision: Branch, tag or commit of a model on the Hub.
        num_hidden_layers: Keep only the first layers (Chung et al. 2021, Tables 5 and 13).
        strict: Whether a variable is an error that the folder lacks, or holds untrained.
        dtype: Keras dtype policy of the model, whatever type the weights are stored in.
        id2label: Label names in the order of their ids, for a classification head. If they are
            not the saved ones, the head is made anew.
        tie_word_embeddings: Whether the output embedding is the input table; default: as in the
            folder. A tied table is copied into both of a model that unties it.
        tied_table: Which of two different tables `tie_word_embeddings=True` keeps, "input" or
            "output".

    Returns:
        The model and a `LoadReport`, which is also logged.

    Raises:
        OSError: If the folder, its config.json or its weights are missing, or the Hub does not give
            them (`rembert_tf.checkpoints.hub.local_folder` says how that differs).
        ImportError: If the weights are PyTorch's, and torch is not installed.
        ValueError: If the folder does not fit: a wrong configuration, tensors of another shape, no
            tensor of this architecture at all, tables that cannot be tied, or, with `strict`,
            missing tensors.
    """
    path = hub.local_folder(path, revision)
    _check_readable(path)
    saved = RemBertConfig.from_json_file(os.path.join(path, CONFIG))
    weights, config = settle_stand_ins(
        open_hugging_face_folder(path),
        saved,
        tie_word_embeddings=tie_word_embeddings,
        tied_table=tied_table,
    )
    if num_hidden_layers is not None:
        config = config.first_layers(num_hidden_layers)
    head = weights.shape("classifier/dense/bias")
    if head is not None and not config.id2label:  # transformers leaves out LABEL_0 and LABEL_1
        config = config.replace(id2label=tuple(f"LABEL_{number}" for number in range(head[0])))
    new_head = False
    if id2label is not None:
        config = config.replace(id2label=tuple(id2label))
        same_shape = weights.shape("classifier/dense/bias") == (len(config.id2label),)
        new_head = not same_shape or bool(saved.id2label) and saved.id2label != config.id2label
    return model_from_weights(
        weights, config, model_class, strict=strict, dtype=dtype, new_head=new_head
    )


def check_replaceable(path: str | os.PathLike) -> None:
    """Raises `ValueError` unless `save_pretrained` may write this folder."""
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise ValueError(f"`path` must be a folder. Received: path={path!r}, which is a file")
    ours = {CONFIG, WEIGHTS, VOCABULARY, TOKENIZER_FILE, TOKENIZER_CONFIG_FILE, CARD}
    foreign = sorted(set(os.listdir(path)) - ours)
    if foreign:
        raise ValueError(
            "`path` must be a new folder or one that `save_pretrained` wrote, since it is "
            f"replaced. Received: path={path!r}, which also holds {', '.join(foreign[:8])}"
        )


def _check_readable(path):
    if os.path.isfile(os.path.join(path, CONFIG)):
        return
    from rembert_tf.checkpoints import layouts  # brings TensorFlow

    seen = layouts.find_layout(path)
    is_other = seen not in (None, layouts.HUGGING_FACE)
    if not os.path.isdir(path):
        what = layouts.describe(path) if is_other else "a file"
        raise ValueError(f"`path` must be a folder. Received: path={path!r}, which is {what}")
    hint = f", but {layouts.describe(path)}" if is_other else ""
    present = ", ".join(sorted(os.listdir(path))) or "an empty folder"
    raise FileNotFoundError(f"{path}: no {CONFIG}{hint}. Found: {present}")
