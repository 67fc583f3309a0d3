"""What each kind of task is trained with: its model, its loss, and the score that selects the best step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rembert_tf.evaluation.accuracy import accuracy
from rembert_tf.evaluation.question_answering import corrected_words, score_answer
from rembert_tf.evaluation.tagging import span_scores, token_accuracy
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.training.span_loss import span_loss


class Kind(NamedTuple):
    """One kind of task.

    Attributes:
        model_class: the model.
        make_loss: makes the loss, one value for each weight of the features.
        make_metrics: makes the metrics that the training log shows.
        outputs: what the model returns to what the reader's `predictions` takes.
    """

    model_class: type[keras.Model]
    make_loss: Callable[[], Any]
    make_metrics: Callable[[], list[keras.metrics.Metric]]
    outputs: Callable[[Any], tf.Tensor]


def _class_loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _class_metrics() -> list[keras.metrics.Metric]:
    return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]


def _most_probable(logits: tf.Tensor) -> tf.Tensor:
    """Returns the id of the most probable label, int32 `[B]` or `[B, T]`."""
    return tf.argmax(logits, axis=-1, output_type=tf.int32)


def _start_and_end(outputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the logits of both ends, float32 `[B, T, 2]`."""
    return tf.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)


KINDS: Mapping[str, Kind] = {
    "tagging": Kind(RemBertForTokenClassification, _class_loss, _class_metrics, _most_probable),
    "classification": Kind(
        RemBertForSequenceClassification, _class_loss, _class_metrics, _most_probable
    ),
    "question_answering": Kind(
        RemBertForQuestionAnswering, lambda: span_loss, list, _start_and_end
    ),
}


def dev_score(
    name: str, examples: Sequence[Any], predictions: Sequence[Any], language: str
) -> float:
    """Returns the score that selects the best step, from 0 to 1.

    Args:
        name: `Task.score`.
        examples: the dev examples, with their labels.
        predictions: what the reader made of the model's outputs, one an example.
        language: code of their language, which decides what the words of an answer are.
    """
    if name == "accuracy":
        return accuracy([example.label for example in examples], predictions)
    if name == "answer_f1_corrected":
        scores = [
            score_answer(
                [answer.text for answer in example.answers],
                prediction.text,
                lambda text: corrected_words(text, language),
            ).f1
            for example, prediction in zip(examples, predictions, strict=True)
        ]
        return sum(scores) / len(scores)
    gold = [list(example.tags) for example in examples]
    return (
        token_accuracy(gold, predictions)
        if name == "token_accuracy"
        else span_scores(gold, predictions).f1
    )
