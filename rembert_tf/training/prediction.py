"""Predictions of a fine-tuned model: over features, and over all files of a split."""

import pathlib

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.checkpoints.folder import load_pretrained
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification
from rembert_tf.models.token_classification import RemBertForTokenClassification
from rembert_tf.pipelines import baselines, finetuning, xtreme
from rembert_tf.pipelines.features import Features
from rembert_tf.pipelines.readers import READERS
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.config import PredictionConfig, check_sequence_length

MODEL_OF_KIND = {
    "tagging": RemBertForTokenClassification,
    "classification": RemBertForSequenceClassification,
}

BASELINES = {
    "most_frequent_tag": ("tagging", baselines.most_frequent_tag),
    "most_frequent_tag_of_word": ("tagging", baselines.most_frequent_tag_of_word),
    "majority_class": ("classification", baselines.majority_class),
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


def predict_files(config: PredictionConfig) -> list[pathlib.Path]:
    """Predicts the files of a split in every language, and writes them in XTREME's layout.

    Returns:
        The files written, `<output_dir>/<task>/<split>-<language>.tsv`: one prediction for each input word or pair,
        in input order.

    Raises:
        ValueError: the model was fine-tuned for other labels, or the baseline is for another kind of task.
    """
    if pathlib.Path(config.output_dir).resolve() == pathlib.Path(config.data_dir).resolve():
        raise ValueError(
            "`output_dir` must not be `data_dir`: predictions have the names of the data files. "
            f"Received: output_dir={config.output_dir!r}"
        )
    task = xtreme.get_task(config.task)
    reader = READERS[task.kind]
    predict = _baseline(config, task) if config.baseline else _model(config, task)
    present = xtreme.find_languages(task, config.data_dir, config.split)
    written = []
    for language in config.languages or present:
        path = xtreme.find_split(task, config.data_dir, config.split, language)
        predictions = predict(reader.read_examples(path, task.labels))
        output = xtreme.split_path(task, config.output_dir, config.split, language)
        output.parent.mkdir(parents=True, exist_ok=True)
        reader.write_predictions(output, predictions)
        logging.info("%s: %d predictions", output, len(predictions))
        written.append(output)
    return written


def _model(config: PredictionConfig, task: xtreme.Task):
    model, _ = load_pretrained(config.model, MODEL_OF_KIND[task.kind], strict=True)
    check_sequence_length(config.max_seq_length, model.config)
    tokenizer = RemBertTokenizer.from_file(config.model)
    labels = model.config.id2label
    if set(labels) != set(task.labels):
        raise ValueError(
            f"{config.model} was fine-tuned for the labels {', '.join(labels)}; {task.name} has "
            f"{', '.join(task.labels)}. Received: task={task.name!r}"
        )
    reader = READERS[task.kind]
    predictor = LabelPredictor(model, config.batch_size)

    def predict(examples):
        features = reader.make_features(examples, tokenizer, labels, config.max_seq_length)
        return reader.predictions(features, predictor(features))

    return predict


def _baseline(config: PredictionConfig, task: xtreme.Task):
    kind, function = BASELINES[config.baseline]
    if kind != task.kind:
        raise ValueError(
            f"`baseline` {config.baseline} is for {kind}. Received: task={task.name!r}"
        )
    path = xtreme.find_split(task, config.data_dir, "train", config.train_language)
    train = READERS[task.kind].read_examples(path, task.labels)
    return lambda examples: function(train, examples)
