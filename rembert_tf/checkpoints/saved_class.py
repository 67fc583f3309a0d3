"""Loads a model folder in the class that its `config.json` names."""

import json
import os

import keras

from rembert_tf.checkpoints import hub
from rembert_tf.checkpoints.folder import CONFIG, load_pretrained
from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

CLASSES = {
    model_class.__name__: model_class
    for model_class in (
        RemBertEncoder,
        RemBertForMaskedLM,
        RemBertForQuestionAnswering,
        RemBertForSequenceClassification,
        RemBertForTokenClassification,
    )
}
CLASSES["RemBertModel"] = RemBertEncoder  # transformers' name of the encoder


def load_saved_class(path: str | os.PathLike, dtype: str | None = None) -> keras.Model:
    """Loads a folder in the class that was saved; every variable must be there.

    Args:
        path: a model folder, or the id of a model on the Hub.
        dtype: Keras dtype policy of the model.

    Raises:
        FileNotFoundError: no such folder, or no `config.json` in it.
        ValueError: `config.json` is damaged or names no class, or one that is not ours; tensors are
            missing.
    """
    path = hub.local_folder(path)
    file = os.path.join(path, CONFIG)
    if not os.path.isfile(file):
        raise FileNotFoundError(f"`path` must be a model folder. Received: no file {file}")
    RemBertConfig.from_json_file(file)  # says what is wrong with the file, if anything is
    with open(file, encoding="utf-8") as opened:
        names = json.load(opened).get("architectures")
    if not isinstance(names, list) or len(names) != 1 or names[0] not in list(CLASSES):
        raise ValueError(
            f"{file}: `architectures` must name one of {', '.join(CLASSES)}. "
            f"Received: architectures={names!r}"
        )
    return load_pretrained(path, CLASSES[names[0]], strict=True, dtype=dtype)[0]
