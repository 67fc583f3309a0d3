"""Tiny models whose weights are no accident, and what they compute: the numbers of `goldens.json`.

The numbers are the architecture: they change only when it does. After a change that is meant,

    python tests/models/golden_models.py > tests/models/goldens.json

Any Keras backend gives them.
"""

import json

import keras
import numpy as np

from rembert_tf.config import RemBertConfig
from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.masked_lm import RemBertForMaskedLM
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification

CONFIG = RemBertConfig(
    vocab_size=50,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    input_embedding_size=8,
    output_embedding_size=24,
    max_position_embeddings=12,
    id2label=("A", "B", "C"),
)
DROPOUT = {
    "embedding_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.3,
    "classifier_dropout_prob": 0.4,
}
TIED = {"output_embedding_size": 8, "tie_word_embeddings": True}
ONE_WIDTH = {"input_embedding_size": 16}  # no input projection
# What only the masked LM has, its output embedding, comes in all its shapes.
SHAPES = {
    "decoupled": {},
    "one width": ONE_WIDTH,
    "dropout": DROPOUT,
    "tied": TIED,
    "tied, one width": {**TIED, **ONE_WIDTH, "output_embedding_size": 16},
    "tied, dropout": {**TIED, **DROPOUT},
}
CASES = [
    *((RemBertForMaskedLM, shape) for shape in SHAPES),
    *(
        (model_class, shape)
        for model_class in (
            RemBertEncoder,
            RemBertForSequenceClassification,
            RemBertForTokenClassification,
            RemBertForQuestionAnswering,
        )
        for shape in ("decoupled", "one width", "dropout")
    ),
]
FEATURES = {
    "input_ids": np.array([[3, 14, 15, 9, 2, 6], [31, 4, 1, 0, 0, 0]], "int32"),
    "attention_mask": np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]], "int32"),
    "token_type_ids": np.array([[0, 0, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]], "int32"),
}
POSITIONS = np.array([[1, 5], [2, 0]], "int32")
LABELS = np.array([[7, 49], [30, 0]], "int32")
DROPOUT_KEYS = np.array([17, 2**32 - 1], "uint32")


def make_model(model_class, shape: str) -> keras.Model:
    """Makes a model and fills every variable with a sawtooth, each from another place of it."""
    model = model_class(CONFIG.replace(**SHAPES[shape]))
    for number, variable in enumerate(sorted(model.weights, key=lambda v: v.path)):
        steps = np.arange(np.prod(variable.shape, dtype=int)) + number
        variable.assign((steps * 37 % 101 - 50).reshape(variable.shape) / 70)
    return model


def outputs(model, training: bool = False) -> dict:
    """Returns the first three channels of every output, as nested lists."""
    features = dict(FEATURES)
    if isinstance(model, RemBertForMaskedLM):
        features["masked_lm_positions"] = POSITIONS
    if training:
        features["dropout_keys"] = DROPOUT_KEYS
    found = model(features, training=training)
    found = found if isinstance(found, dict) else {"logits": found}
    return {
        name: np.round(keras.ops.convert_to_numpy(x)[..., :3].astype("float64"), 6).tolist()
        for name, x in found.items()
    }


def outputs_of_case(model_class, shape: str) -> dict:
    """Returns the outputs of a case; those with dropout are of a training step."""
    return outputs(make_model(model_class, shape), training="dropout" in shape)


def losses_around_a_step() -> list[float]:
    """Returns a tied masked LM's loss before and after one step of plain Keras `fit`, with dropout."""
    model = make_model(RemBertForMaskedLM, "tied, dropout")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.01), loss)
    features = {**FEATURES, "masked_lm_positions": POSITIONS}
    before = model.evaluate(features, LABELS, verbose=0)
    model.fit({**features, "dropout_keys": DROPOUT_KEYS}, LABELS, shuffle=False, verbose=0)
    return [round(before, 6), round(model.evaluate(features, LABELS, verbose=0), 6)]


def all_numbers() -> dict:
    """Returns what `goldens.json` holds: outputs by class and shape, and the losses."""
    numbers = {f"{c.__name__}, {shape}": outputs_of_case(c, shape) for c, shape in CASES}
    return {**numbers, "losses around a step": {"loss": losses_around_a_step()}}


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(x)}" for name, x in all_numbers().items()]
    print("{\n" + ",\n".join(lines) + "\n}")
