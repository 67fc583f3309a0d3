"""Which layer of an encoder knows translations best: accuracy of nearest neighbours, layer by layer."""

import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.evaluation import retrieval
from rembert_tf.evaluation import retrieval_files as label_files
from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.pipelines import retrieval_files, task_files, xtreme
from rembert_tf.pipelines.retrieval_files import TatoebaSentences
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.config import check_sequence_length
from rembert_tf.training.layer_plot import plot_layers
from rembert_tf.training.prediction import model_folder
from rembert_tf.training.retrieval_config import LayerSweepConfig
from rembert_tf.training.sentence_vectors import SentenceVectors

RANDOM = "random weights"


def sweep_layers(config: LayerSweepConfig) -> dict[str, Any]:
    """Scores every layer of every model, and writes `layers.json` and `layers.png` into `output_dir`.

    Returns:
        What `layers.json` holds: the settings, the number of pairs of each language, and for each model and language
        the accuracies in percent, the projected input embedding's first; `mean` is that of the languages.

    Raises:
        FileNotFoundError: there is no such model or file.
        ValueError: the files do not say which sentences are translations.
    """
    data = list(_read_data(config))
    results = {}
    for name, vectors in _encoders(config):
        accuracies = {
            sentences.language: layer_accuracies(
                sentences, vectors, config.procedure, f"{name} {sentences.language}"
            )
            for sentences in data
        }
        mean = np.mean(list(accuracies.values()), axis=0).tolist()
        results[name] = {"mean": mean, "languages": accuracies}
        logging.info(
            "%s: %s; best: layer %d", name, " ".join(f"{accuracy:.1f}" for accuracy in mean),
            int(np.argmax(mean)),
        )  # fmt: skip
    report = {
        "procedure": config.procedure,
        "pooling": config.pooling,
        "special_tokens": _special_tokens(config),
        "mean_shift": config.procedure == "figure2",
        "distance": _distance(config.procedure),
        "max_seq_length": config.max_seq_length,
        "models": config.model_folders(),
        "pairs": {sentences.language: len(sentences.english) for sentences in data},
        "accuracy": results,
    }
    folder = pathlib.Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    atomic_files.write_json(folder / "layers.json", report)
    plot_layers(report, folder / "layers.png")
    return report


def layer_accuracies(
    sentences: TatoebaSentences, vectors: SentenceVectors, procedure: str, progress: str = ""
) -> list[float]:
    """Returns for each layer the share of English sentences whose nearest neighbour is their translation.

    Args:
        sentences: with gold.
        vectors: the model.
        procedure: `figure2`: English is moved by the mean difference of all pairs, and distances are Euclidean (Chung
            et al. 2021, A.9). `tatoeba`: cosine.
        progress: what the progress bars are called; none without a name.

    Returns:
        L + 1 percentages.
    """
    gold = np.array(sentences.gold)
    english = vectors.of_all_layers(sentences.english, progress and f"{progress}, English")
    other = vectors.of_all_layers(sentences.other, progress)
    accuracies = []
    for queries, keys in zip(english, other, strict=True):
        if procedure == "figure2":
            queries = retrieval.shifted(queries, keys)
        found = retrieval.nearest(queries, keys, distance=_distance(procedure))
        accuracies.append(100 * float(np.mean(found == gold)))
    return accuracies


def _distance(procedure: str) -> str:
    return "euclidean" if procedure == "figure2" else "cosine"


def _special_tokens(config: LayerSweepConfig) -> bool:
    return config.procedure == "tatoeba" or config.pooling == "first"


def _encoders(config: LayerSweepConfig) -> Iterator[tuple[str, SentenceVectors]]:
    """Yields name and vectors of one model after the other, so that one at a time is held."""
    pooling = {"pooling": config.pooling, "special_tokens": _special_tokens(config)}
    first = None
    for name, path in config.model_folders().items():
        folder = model_folder(path)
        model = RemBertSentenceEncoder.from_pretrained(str(folder), strict=True, **pooling)
        check_sequence_length(config.max_seq_length, model.config)
        first = first or (model.config, folder)
        yield name, _vectors(model, folder, config)
    if config.random_encoder:
        architecture, folder = first
        keras.utils.set_random_seed(0)
        yield RANDOM, _vectors(RemBertSentenceEncoder(architecture, **pooling), folder, config)


def _vectors(
    model: RemBertSentenceEncoder, folder: pathlib.Path, config: LayerSweepConfig
) -> SentenceVectors:
    return SentenceVectors(
        model,
        RemBertTokenizer.from_file(folder),
        max_seq_length=config.max_seq_length,
        batch_size=config.batch_size,
    )


def _read_data(config: LayerSweepConfig) -> Iterator[TatoebaSentences]:
    if config.parallel_files:
        english, other = retrieval_files.read_parallel(*config.parallel_files)
        count = min(len(english), config.max_sentences)
        yield TatoebaSentences(
            language=pathlib.Path(config.parallel_files[1]).name,
            english=tuple(english[:count]),
            other=tuple(other[:count]),
            gold=tuple(range(count)),
        )
        return
    task = xtreme.get_task("tatoeba")
    languages = config.languages or task_files.find_languages(task, config.data_dir, "test")
    for language in languages:
        for path in task_files.find_files(task, config.data_dir, "test", language):
            (sentences,) = retrieval_files.read_sentences(path, language=language)
            yield _with_gold(sentences, path, config)


def _with_gold(
    sentences: TatoebaSentences, path: pathlib.Path, config: LayerSweepConfig
) -> TatoebaSentences:
    """Returns the first sentences, with the lines of their translations."""
    gold = sentences.gold
    if gold is None:
        if not config.label_folder:
            raise ValueError(
                f"{path}: XTREME's files do not say which lines are translations: give `label_folder`, or a `data_dir` "
                "with LASER's files. Received: label_folder=''"
            )
        task = xtreme.get_task("tatoeba")
        labels = task_files.prediction_path(task, config.label_folder, "test", sentences.language)
        gold = tuple(label_files.read_line_numbers(str(labels)))
        if sorted(gold) != list(range(len(sentences.english))):
            raise ValueError(
                f"{labels}: the labels must be the numbers of the {len(sentences.other)} lines of {path}, each "
                f"once. Received: {len(gold)} labels from {min(gold)} to {max(gold)}"
            )
    if len(gold) <= config.max_sentences:
        return TatoebaSentences(
            language=sentences.language,
            english=sentences.english,
            other=sentences.other,
            gold=gold,
        )
    kept = gold[: config.max_sentences]
    return TatoebaSentences(
        language=sentences.language,
        english=sentences.english[: len(kept)],
        other=tuple(sentences.other[line] for line in kept),
        gold=tuple(range(len(kept))),
    )
