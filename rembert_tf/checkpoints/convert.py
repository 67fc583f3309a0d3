"""Takes a checkpoint of any known layout and writes it as another one."""

import dataclasses
import os

from absl import logging

from rembert_tf.checkpoints import hub, layouts, model_garden
from rembert_tf.checkpoints.convert_config import ConvertConfig
from rembert_tf.checkpoints.folder import VOCABULARY, load_pretrained, save_pretrained
from rembert_tf.checkpoints.google_tf1 import open_google_tf1
from rembert_tf.checkpoints.hugging_face_folder import open_hugging_face_folder
from rembert_tf.checkpoints.infer_config import infer_config, read_google_config
from rembert_tf.checkpoints.load_report import LoadReport
from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.checkpoints.saved_class import CLASSES
from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.checkpoints.vocabulary import replace_vocabulary, resize_vocabulary
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def convert(config: ConvertConfig) -> LoadReport:
    """Converts a checkpoint.

    Returns:
        What was loaded, left out and newly made.

    Raises:
        FileNotFoundError: If there is nothing at `input`.
        ValueError: If what lies there cannot be read, does not fit, or, with `strict`, lacks a
            variable of the model to write.
    """
    path = hub.local_folder(config.input, revision=config.revision or None)
    layout = layouts.find_layout(path)
    if layout == layouts.HUGGING_FACE:
        model, report = _from_folder(path, config)
    elif layout in (layouts.GOOGLE_TF1, layouts.MODEL_GARDEN):
        model, report = _from_checkpoint(path, layout, config)
    else:
        raise ValueError(f"{path}: cannot be converted; it is {layouts.describe(path)}")
    model, tokenizer = _settle_vocabulary(model, path, config)
    if config.output_format == "model_garden":
        model_garden.write_model_garden(model, config.output)
    else:
        save_pretrained(model, config.output, tokenizer, dtype=config.dtype or None)
    logging.info("%s: %s, %s parameters", config.output, type(model).__name__,
                 f"{model.count_params():,}")  # fmt: skip
    return report


def _from_folder(path, config):
    for name in ("config", "num_attention_heads", "hidden_act", "name_map"):
        if getattr(config, name):
            raise ValueError(
                f"`{name}` is for an input without config.json, and {path} has one. "
                f"Received: {name}={getattr(config, name)!r}"
            )
    model_class = _model_class(open_hugging_face_folder(path), config)
    return load_pretrained(
        path,
        model_class,
        num_hidden_layers=config.num_hidden_layers or None,
        strict=config.strict,
    )


def _from_checkpoint(path, layout, config):
    prefix = layouts.checkpoint_prefix(path)
    if layout == layouts.MODEL_GARDEN:
        weights = model_garden.open_model_garden(prefix)
        settings = {"num_attention_heads": model_garden.number_of_heads(prefix),
                    "hidden_act": "gelu_new"}  # fmt: skip
    else:
        weights = open_google_tf1(prefix, config.name_map or None)
        settings = read_google_config(os.path.dirname(prefix))
    if config.config:
        given = dataclasses.asdict(load_config(config.config, argument="config"))
        settings = {name: value for name, value in given.items() if value != ()}
    for name in ("num_attention_heads", "hidden_act"):
        if getattr(config, name):
            settings[name] = getattr(config, name)
    model_config, notes = infer_config(weights, **settings)
    if config.num_hidden_layers:
        model_config = model_config.replace(num_hidden_layers=config.num_hidden_layers)
    weights = weights.replace(notes=(*weights.notes, *notes))
    model_class = _model_class(weights, config)
    return model_from_weights(weights, model_config, model_class, strict=config.strict)


def _model_class(weights: StoredWeights, config: ConvertConfig):
    """Returns the class asked for, or else the one whose head the weights hold."""
    if config.model_class:
        return CLASSES[config.model_class]
    pooled = "rembert/pooler/kernel" in weights.tensors
    for variable, name in (
        ("masked_lm_head/dense/kernel", "RemBertForMaskedLM"),
        ("qa_outputs/kernel", "RemBertForQuestionAnswering"),
        ("classifier/dense/kernel", "RemBertForSequenceClassification" if pooled
         else "RemBertForTokenClassification"),
    ):  # fmt: skip
        if variable in weights.tensors:
            return CLASSES[name]
    return CLASSES["RemBertEncoder"]


def _settle_vocabulary(model, path, config):
    """Returns the model with the vocabulary asked for, and its tokenizer if there is one."""
    file = os.path.join(path, VOCABULARY)
    tokenizer = RemBertTokenizer.from_file(file) if os.path.isfile(file) else None
    if config.vocab_size:
        return resize_vocabulary(model, config.vocab_size), tokenizer
    if not config.tokenizer:
        return model, tokenizer
    new = RemBertTokenizer.from_file(config.tokenizer)
    if tokenizer is not None and tokenizer.fingerprint != new.fingerprint:
        return replace_vocabulary(model, tokenizer, new), new
    return model, new
