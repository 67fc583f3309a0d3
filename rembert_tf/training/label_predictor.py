"""The labels that a model gives to features, and which model serves which kind of task."""

import keras
import numpy as np
import tensorflow as tf

from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import finetuning
from rembert_tf.pipelines.features import Features

MODEL_OF_KIND = {
    "tagging": RemBertForTokenClassification,
    "classification": RemBertForSequenceClassification,
}


class LabelPredictor:
    """Predicts the most probable label of each position (tagging) or row (classification).

    Args:
        model: a token or sequence classification model; it may go on training between calls.
        batch_size: rows a batch; batches hold rows of similar length.
    """

    def __init__(self, model: keras.Model, batch_size: int):
        self._batch_size = batch_size
        spec = tf.TensorSpec([None, None], tf.int32)
        features = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), spec)

        @tf.function(input_signature=[features])
        def label_ids(inputs):
            return tf.argmax(model(inputs, training=False), axis=-1, output_type=tf.int32)

        self._label_ids = label_ids

    def __call__(self, features: Features) -> np.ndarray:
        """Returns label ids in the order of `features`, int32 `[S]` or `[R]`: the shape of its labels."""
        batches = finetuning.make_inference_dataset(features, self._batch_size)
        return batches.restore(self._label_ids(inputs).numpy() for inputs, _, _ in batches.dataset)
