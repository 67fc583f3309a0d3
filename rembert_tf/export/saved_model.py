"""Export as SavedModel: one folder that needs TensorFlow alone, one that takes raw strings.

    <output_dir>/ids/<version>/    signature serving_default: piece ids in, what the model says out
    <output_dir>/text/<version>/   the same, and signatures that take strings and give answers

A graph that holds SentencePiece cannot be loaded at all where tensorflow_text is not imported, not even for its ids
signature: hence two folders. Each is written by a plain `tf.Module` that holds the model's variables and not the Keras
model, so every weight is written once and TensorFlow's C++ runtime can load it.
"""

import dataclasses
import os
import pathlib
import shutil
import tempfile
from collections.abc import Sequence

import keras
import tensorflow as tf
from absl import logging

from rembert_tf.export import model_calls, sizes
from rembert_tf.export.lengths import with_lengths
from rembert_tf.export.readme import write_readme
from rembert_tf.export.text_signatures import text_signatures
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines.tokenization import MODEL_FILE, RemBertTokenizer

LABELS_FILE = "labels.txt"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportedModel:
    """Where the two folders lie.

    Attributes:
        ids: `<output_dir>/ids/<version>`, for TensorFlow alone.
        text: `<output_dir>/text/<version>`; import tensorflow_text before loading it.
    """

    ids: pathlib.Path
    text: pathlib.Path


def export(
    model: keras.Model,
    tokenizer: RemBertTokenizer,
    output_dir: str | os.PathLike,
    config: ServingConfig | None = None,
    *,
    version: int = 0,
) -> ExportedModel:
    """Writes a model as two SavedModel folders.

    Signature `serving_default` of both takes `input_ids`, `attention_mask` and `token_type_ids`, int32 [B, T] each, and
    gives what `model_calls.outputs` names. Those that take strings are described where they are made:
    `classification.py`, `tagging.py`, `question_answering.py`, `masked_lm.py` and `sentence_embedding.py` beside this
    file. Rows of a batch do not know of each other, and a batch of no strings is answered with empty tensors. What
    becomes of empty, broken, huge and very many strings stands in the README in the assets (`readme.py`).

    Args:
        model: any of our models.
        tokenizer: its tokenizer.
        output_dir: the folder above `ids/` and `text/`.
        config: what is done with the text that is sent; lengths that it leaves open are those of `lengths.py`.
        version: version number of both folders; 0 takes the one after the highest that is there.

    Returns:
        The paths of both folders.

    Raises:
        ValueError: a model that is not ours, settings that do not fit it, or a version that exists.
        OSError: the disk has not enough room, or cannot be written to.
    """
    config = _checked(model, tokenizer, config or ServingConfig())
    root = pathlib.Path(output_dir)
    version = version or 1 + max(
        (int(path.name) for path in root.glob("*/*") if path.name.isdigit()), default=0
    )
    paths = ExportedModel(ids=root / "ids" / str(version), text=root / "text" / str(version))
    for path in (paths.ids, paths.text):
        if path.exists():
            raise ValueError(f"{path} exists already. Received: version={version}")
    sizes.check_room(root, sizes.estimate(model, tokenizer))
    ids = {"serving_default": model_calls.serving_default(model, config.ids_length)}
    strings, tokenizers = text_signatures(model, tokenizer, config)
    with tempfile.TemporaryDirectory() as folder:
        names = _write_assets(pathlib.Path(folder), model, config, [*strings, *ids])
        assets = [os.path.join(folder, name) for name in names]
        _save(_module(model, assets), ids, paths.ids)
        tokenizer.save(folder)
        module = _module(model, [*assets, os.path.join(folder, MODEL_FILE)])
        module.tokenizers = tokenizers
        _save(module, ids | strings, paths.text)
    return paths


def _checked(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> ServingConfig:
    """Returns the settings with all lengths, or raises `ValueError` if they do not fit the model."""
    if not isinstance(model, model_calls.MODELS):
        raise ValueError(
            f"`model` must be one of {', '.join(c.__name__ for c in model_calls.MODELS)}. "
            f"Received: model of type {type(model).__name__}"
        )
    config = with_lengths(config, model)
    longest = model.config.max_position_embeddings
    for name in ("max_seq_length", "ids_length"):
        value = getattr(config, name)
        if value > longest:
            raise ValueError(
                f"`{name}` must be at most the model's max_position_embeddings {longest}. "
                f"Received: {name}={value}"
            )
    if tokenizer.vocab_size > model.config.vocab_size:
        raise ValueError(
            f"`tokenizer` has more pieces than the model's table has rows, {model.config.vocab_size}. "
            f"Received: tokenizer of {tokenizer.vocab_size} pieces"
        )
    return config


def _module(model: keras.Model, assets: Sequence[str]) -> tf.Module:
    """Returns a module that holds the model's variables, and files that travel along."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.weights]
    module.assets = [tf.saved_model.Asset(path) for path in assets]
    return module


def _save(module: tf.Module, signatures: dict, path: pathlib.Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.incomplete")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        tf.saved_model.save(module, str(temporary), signatures=signatures)
        os.replace(temporary, path)
    except tf.errors.OpError as error:
        raise OSError(f"{path}: could not be written: {error.message}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    logging.info(
        "%s: %s, signatures %s", path, sizes.readable(sizes.on_disk(path)), ", ".join(signatures)
    )


def _write_assets(
    folder: pathlib.Path, model: keras.Model, config: ServingConfig, signatures: Sequence[str]
) -> list[str]:
    """Writes what lies beside both graphs; returns the names of the files."""
    names = ["config.json", "README.md"]
    model.config.to_json_file(folder / names[0])
    write_readme(folder / names[1], model, config, signatures)
    if model.config.id2label:
        names.append(LABELS_FILE)
        text = "".join(f"{label}\n" for label in model.config.id2label)
        (folder / LABELS_FILE).write_text(text, encoding="utf-8")
    return names
