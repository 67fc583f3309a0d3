"""Export as SavedModel: one folder that needs TensorFlow alone, one that takes raw strings.

    <output_dir>/ids/<version>/    signature serving_default: ids in, logits and probabilities out
    <output_dir>/text/<version>/   the same, and serve_text: strings in, label names out

A graph that holds SentencePiece cannot be loaded at all where tensorflow_text is not imported, not even for its ids
signature: hence two folders. Each is written by a plain `tf.Module` that holds the model's variables and not the Keras
model, so every weight is written once and TensorFlow's C++ runtime can load it.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import tempfile

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.tokenization import MODEL_FILE, RemBertTokenizer


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
    *,
    max_seq_length: int = 128,
    version: int = 0,
) -> ExportedModel:
    """Writes a fine-tuned model as two SavedModel folders.

    Signatures (B strings or rows, T pieces, W words, C labels):

    * `serving_default(input_ids, attention_mask, token_type_ids)`, int32 [B, T] each, open in both axes: `logits` and
      `probabilities`, float32 [B, C] (classification) or [B, T, C] (tagging).
    * `serve_text(text, text_pair)` of a classifier, string [B] each: `label` string [B], `probability` float32 [B],
      `probabilities` float32 [B, C], `truncated` bool [B].
    * `serve_text(text)` of a tagger, string [B], words are separated by white space: `words` and `tags` string [B, W],
      `probability` float32 [B, W], `starts` and `ends` int32 [B, W] (code points in the string that was sent),
      `truncated` bool [B]. Shorter rows are filled with "", 0 and -1; words beyond `max_seq_length` pieces have no tag.

    Args:
        model: a `RemBertForSequenceClassification` or `RemBertForTokenClassification` with label names.
        tokenizer: its tokenizer.
        output_dir: the folder above `ids/` and `text/`.
        max_seq_length: longest sequence that `serve_text` makes; longer texts are truncated and say so.
        version: version number of both folders; 0 takes the one after the highest that is there.

    Returns:
        The paths of both folders.

    Raises:
        ValueError: a model that has no text signature, `max_seq_length` beyond the model's, or a version that exists.
    """
    if not isinstance(model, (RemBertForSequenceClassification, RemBertForTokenClassification)):
        raise ValueError(
            "`model` must be a sequence or token classification model. "
            f"Received: model of type {type(model).__name__}"
        )
    if not 5 <= max_seq_length <= model.config.max_position_embeddings:
        raise ValueError(
            "`max_seq_length` must be at least 5 and at most the model's max_position_embeddings "
            f"{model.config.max_position_embeddings}. Received: max_seq_length={max_seq_length}"
        )
    root = pathlib.Path(output_dir)
    version = version or 1 + max(
        (int(path.name) for path in root.glob("*/*") if path.name.isdigit()), default=0
    )
    paths = ExportedModel(ids=root / "ids" / str(version), text=root / "text" / str(version))
    for path in (paths.ids, paths.text):
        if path.exists():
            raise ValueError(f"{path} exists already. Received: version={version}")
    with tempfile.TemporaryDirectory() as assets:
        _write_assets(pathlib.Path(assets), model, tokenizer, max_seq_length, version)
        ids = _ids_signature(model)
        names = ("config.json", "README.md")
        _save(_module(model, assets, names), {"serving_default": ids}, paths.ids)
        text_module = _module(model, assets, (*names, MODEL_FILE))
        text_module.tokenizer = tokenizer
        signatures = {
            "serving_default": ids,
            "serve_text": _text_signature(model, tokenizer, max_seq_length),
        }
        _save(text_module, signatures, paths.text)
    return paths


def _module(model: keras.Model, assets: str, names: tuple[str, ...]) -> tf.Module:
    """Returns a module that holds the model's variables, and files that travel along."""
    module = tf.Module()
    module.variables_of_model = [variable.value for variable in model.weights]
    module.assets = [tf.saved_model.Asset(os.path.join(assets, name)) for name in names]
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
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    logging.info("%s: %.1f MB, signatures %s", path, size / 1e6, ", ".join(signatures))


def _ids_signature(model: keras.Model) -> tf.types.experimental.PolymorphicFunction:
    spec = {
        name: tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }

    @tf.function(
        input_signature=[spec["input_ids"], spec["attention_mask"], spec["token_type_ids"]]
    )
    def serving_default(input_ids, attention_mask, token_type_ids):
        logits = _logits(model, input_ids, attention_mask, token_type_ids)
        return {"logits": logits, "probabilities": tf.nn.softmax(logits)}

    return serving_default


def _logits(model, input_ids, attention_mask, token_type_ids) -> tf.Tensor:
    features = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "token_type_ids": token_type_ids,
    }
    return tf.cast(model(features, training=False), tf.float32)


def _text_signature(model, tokenizer: RemBertTokenizer, max_seq_length: int):
    labels = tf.constant(model.config.id2label)
    strings = tf.TensorSpec([None], tf.string)

    @tf.function(input_signature=[strings, strings])
    def serve_pairs(text, text_pair):
        features, truncated = serving.pair_features(tokenizer, text, text_pair, max_seq_length)
        probabilities = tf.nn.softmax(_logits(model, **features))
        return {
            "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
            "probability": tf.reduce_max(probabilities, axis=-1),
            "probabilities": probabilities,
            "truncated": truncated,
        }

    @tf.function(input_signature=[strings])
    def serve_words(text):
        words = serving.split_words(text)
        features, positions, truncated = serving.word_features(
            tokenizer, words.strings, max_seq_length
        )
        probabilities = tf.nn.softmax(_logits(model, **features))
        probabilities = tf.gather(
            probabilities, tf.maximum(positions, 0), batch_dims=1
        )  # [B, W, C]
        tagged = positions >= 0
        tags = tf.gather(labels, tf.argmax(probabilities, axis=-1))
        return {
            "words": words.strings.to_tensor(""),
            "starts": words.starts.to_tensor(-1),
            "ends": words.ends.to_tensor(-1),
            "tags": tf.where(tagged, tags, ""),
            "probability": tf.where(tagged, tf.reduce_max(probabilities, axis=-1), 0.0),
            "truncated": truncated,
        }

    return serve_words if isinstance(model, RemBertForTokenClassification) else serve_pairs


def _write_assets(
    folder: pathlib.Path, model, tokenizer, max_seq_length: int, version: int
) -> None:
    model.config.to_json_file(folder / "config.json")
    tokenizer.save(folder)
    is_tagger = isinstance(model, RemBertForTokenClassification)
    example = '{"text": ["Anna sings ."]}'
    if not is_tagger:
        example = '{"text": ["Anna sings."], "text_pair": ["Someone sings."]}'
    arguments = ", ".join(f"{k}=tf.constant({v})" for k, v in json.loads(example).items())
    labels = ", ".join(model.config.id2label)
    parameters = int(np.sum([np.prod(variable.shape) for variable in model.weights]))
    (folder / "README.md").write_text(
        f"""# {type(model).__name__}

{parameters:,} parameters; labels: {labels}. Written by rembert_tf.

`ids/` needs TensorFlow alone; `text/` takes raw strings (at most {max_seq_length} pieces) and needs tensorflow_text:

    import tensorflow as tf, tensorflow_text
    model = tf.saved_model.load("text/{version}")
    model.signatures["serve_text"]({arguments})

With TensorFlow Serving:

    curl -d '{{"signature_name": "serve_text", "inputs": {example}}}' http://HOST:8501/v1/models/MODEL:predict
""",
        encoding="utf-8",
    )
