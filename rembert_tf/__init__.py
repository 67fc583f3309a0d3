"""RemBERT with decoupled embeddings, and weight tying, for TensorFlow and Keras 3.

Nothing heavy is imported until a name is used (PEP 562), so `--help` and `rembert-evaluate` start at once.
"""

import importlib
import importlib.util

__version__ = "0.1.0"

_MODULE_OF_NAME = {
    "RemBertConfig": "rembert_tf.config",
    "RemBertEncoder": "rembert_tf.models.encoder",
    "RemBertForMaskedLM": "rembert_tf.models.masked_lm",
    "RemBertForQuestionAnswering": "rembert_tf.models.question_answering",
    "RemBertForSequenceClassification": "rembert_tf.models.sequence_classification",
    "RemBertForTokenClassification": "rembert_tf.models.token_classification",
    "RemBertSentenceEncoder": "rembert_tf.models.sentence_embedding",
    "RemBertTokenizer": "rembert_tf.pipelines.tokenization",
    "Trainer": "rembert_tf.training.trainer",
    "load_pretrained": "rembert_tf.checkpoints.folder",
    "local_folder": "rembert_tf.checkpoints.hub",
    "save_pretrained": "rembert_tf.checkpoints.folder",
}
__all__ = sorted(_MODULE_OF_NAME)

if importlib.util.find_spec("rembert_tf.pipelines") is None:
    raise ImportError(
        "rembert_tf is used from a bare checkout: run `pip install -e .` there first (the folders "
        "pipelines/ and flags/ become rembert_tf.pipelines and rembert_tf.flags by installing).",
        name=__name__,  # makes `python -m` print this one sentence in place of a stack trace
    )


def __getattr__(name: str):
    if name in _MODULE_OF_NAME:
        return getattr(importlib.import_module(_MODULE_OF_NAME[name]), name)
    raise AttributeError(f"module `rembert_tf` has no attribute `{name}`")


def __dir__():
    return sorted([*globals(), *_MODULE_OF_NAME])
