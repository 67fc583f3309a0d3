"""Predictions for all files of a split: by a fine-tuned model, or by a baseline.

TensorFlow is imported only where a model predicts: a baseline needs no more than the files.
"""

import pathlib

from absl import logging

from rembert_tf.pipelines import baselines, xtreme
from rembert_tf.pipelines.readers import READERS
from rembert_tf.training.config import PredictionConfig, check_sequence_length

BASELINES = {
    "most_frequent_tag": ("tagging", baselines.most_frequent_tag),
    "most_frequent_tag_of_word": ("tagging", baselines.most_frequent_tag_of_word),
    "majority_class": ("classification", baselines.majority_class),
}


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
    from rembert_tf.checkpoints import hub
    from rembert_tf.checkpoints.folder import load_pretrained
    from rembert_tf.pipelines.tokenization import RemBertTokenizer
    from rembert_tf.training.label_predictor import MODEL_OF_KIND, LabelPredictor

    model, _ = load_pretrained(config.model, MODEL_OF_KIND[task.kind], strict=True)
    check_sequence_length(config.max_seq_length, model.config)
    tokenizer = RemBertTokenizer.from_file(hub.local_folder(config.model))
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
