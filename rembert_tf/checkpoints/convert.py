"""Takes a checkpoint of any known layout and writes it as another one."""

import dataclasses
import os

from absl import logging

from rembert_tf.checkpoints import hub, layouts, model_garden
from rembert_tf.checkpoints.convert_config import ConvertConfig
from rembert_tf.checkpoints.folder import (
    VOCABULARY,
    check_replaceable,
    load_pretrained,
    save_pretrained,
)
from rembert_tf.checkpoints.google_tf1 import open_google_tf1
from rembert_tf.checkpoints.hugging_face_folder import open_hugging_face_folder
from rembert_tf.checkpoints.infer_config import infer_config, read_google_config
from rembert_tf.checkpoints.load_report import LoadReport
from rembert_tf.checkpoints.model_from_weights import model_from_weights
from rembert_tf.checkpoints.saved_class import CLASSES
from rembert_tf.checkpoints.stored_weights import StoredWeights
from rembert_tf.checkpoints.vocabulary import replace_vocabulary, resize_vocabulary, special_ids
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.named_sizes import load_config
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def convert(config: ConvertConfig) -> LoadReport:
    """Converts a checkpoint.

    Returns:
        What was loaded, left out and newly made.

    Raises:
        FileNotFoundError: If there is nothing at `input`.
        ValueError: If what lies there cannot be read, does not fit, or, with `strict`, lacks a
            variable of the model to write; or if something else lies at `output`.
    """
    _check_output(config)
    path = hub.local_folder(config.input, revision=config.revision or None)
    layout = layouts.find_layout(path)
    tokenizer = RemBertTokenizer.from_file(config.tokenizer) if config.tokenizer else None
    if layout == layouts.HUGGING_FACE:
        path = path if os.path.isdir(path) else os.path.dirname(path)
        _refuse(
            config, "has a config.json", "config", "num_attention_heads", "hidden_act", "name_map"
        )
        model, report = _from_folder(path, config)
        model, tokenizer = _settle_vocabulary(model, path, tokenizer, config)
    elif layout in (layouts.GOOGLE_TF1, layouts.MODEL_GARDEN):
        model, report = _from_checkpoint(path, layout, tokenizer, config)
        if config.vocab_size:
            model = resize_vocabulary(model, config.vocab_size)
    else:
        raise ValueError(
            f"--input={config.input} cannot be converted; it is {layouts.describe(path)}"
        )
    if config.output_format == "model_garden":
        model_garden.write_model_garden(model, config.output)
    else:
        save_pretrained(model, config.output, tokenizer, dtype=config.dtype or None)
    logging.info("%s: %s, %s parameters", config.output, type(model).__name__,
                 f"{model.count_params():,}")  # fmt: skip
    return report


def _check_output(config):
    """Raises before the work if its result could not be written after it."""
    if config.output_format == "hugging_face":
        check_replaceable(config.output)
    elif os.path.isdir(config.output) and os.listdir(config.output):
        raise ValueError(f"`output` must be a new or an empty folder. Received: {config.output!r}")


def _refuse(config, reason, *names):
    for name in names:
        if getattr(config, name):
            raise ValueError(
                f"`{name}` has no use here: {config.input} {reason}. "
                f"Received: {name}={getattr(config, name)!r}"
            )


def _from_folder(path, config):
    model_class = _model_class(open_hugging_face_folder(path), config)
    return load_pretrained(
        path,
        model_class,
        num_hidden_layers=config.num_hidden_layers or None,
        strict=config.strict,
    )


def _from_checkpoint(path, layout, tokenizer, config):
    """Makes the model of a checkpoint without config.json: what flags say, then files, then shapes."""
    prefix = layouts.checkpoint_prefix(path)
    if layout == layouts.MODEL_GARDEN:
        _refuse(config, "is Model Garden's, whose variables are found by themselves", "name_map")
        weights = model_garden.open_model_garden(prefix)
        settings = {"hidden_act": "gelu_new"}
    else:
        weights = open_google_tf1(prefix, config.name_map or None)
        settings = read_google_config(os.path.dirname(prefix))
    if config.config:
        given = dataclasses.asdict(load_config(config.config, argument="config"))
        settings |= {name: value for name, value in given.items() if value != ()}
    if tokenizer is not None:
        settings |= special_ids(tokenizer)
    for name in ("num_attention_heads", "hidden_act"):
        if getattr(config, name):
            settings[name] = getattr(config, name)
    if layout == layouts.MODEL_GARDEN:
        _take_heads(settings, model_garden.number_of_heads(prefix), prefix)
    model_config, notes = infer_config(weights, **settings)
    if config.num_hidden_layers:
        model_config = model_config.first_layers(config.num_hidden_layers)
    model_class = _model_class(weights, config)
    notes = [*notes, f"hidden_act={model_config.hidden_act!r} is taken; no tensor shows it"]
    if "rembert/pooler/kernel" in weights.tensors and model_class is RemBertForMaskedLM:
        notes.append("a masked LM has no pooler: --model_class=RemBertEncoder keeps it")
    weights = weights.replace(notes=(*weights.notes, *notes))
    return model_from_weights(weights, model_config, model_class, strict=config.strict)


def _take_heads(settings, heads, prefix):
    """Puts the number of heads that a checkpoint shows among the settings."""
    if settings.setdefault("num_attention_heads", heads) != heads:
        raise ValueError(
            f"{prefix}: the checkpoint has {heads} attention heads. "
            f"Received: num_attention_heads={settings['num_attention_heads']}"
        )


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


def _settle_vocabulary(model, path, new, config):
    """Returns the model of a folder with the vocabulary asked for, and the tokenizer of that."""
    file = os.path.join(path, VOCABULARY)
    tokenizer = RemBertTokenizer.from_file(file) if os.path.isfile(file) else None
    if config.vocab_size:
        return resize_vocabulary(model, config.vocab_size), tokenizer
    if new is None or tokenizer is None or tokenizer.fingerprint == new.fingerprint:
        return model, new or tokenizer
    return replace_vocabulary(model, tokenizer, new), new
