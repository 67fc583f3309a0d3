"""Retrieval by an encoder: Tatoeba's translations, BUCC's mined pairs, and where BUCC's threshold comes from."""

import collections
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from rembert_tf import atomic_files
from rembert_tf.evaluation import retrieval
from rembert_tf.evaluation.retrieval_files import Pair
from rembert_tf.evaluation.thresholds import MiningThreshold, best_threshold
from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.pipelines import task_files, xtreme
from rembert_tf.pipelines.retrieval_files import BuccSentences, TatoebaSentences
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.training.config import PredictionConfig, check_sequence_length
from rembert_tf.training.sentence_vectors import SentenceVectors

# `(sentences, name of the progress bar)` to float32 [N, D].
Vectors = Callable[[Sequence[str], str], np.ndarray]


class RetrievalPredictor:
    """Predicts the lines of a prediction file from the two files of a language.

    `settings.json` beside the predictions says for each file which model, layer and pooling have made it. BUCC's dev
    files leave `threshold-<language>.json` there, and its test files are refused without it.

    Args:
        folder: a model folder, whose encoder is taken.
        config: the settings.
        task: `tatoeba` or `bucc2018`.
    """

    def __init__(self, folder: pathlib.Path, config: PredictionConfig, task: xtreme.Task):
        model = RemBertSentenceEncoder.from_pretrained(str(folder), strict=True)
        check_sequence_length(config.max_seq_length, model.config)
        depth = model.config.num_hidden_layers
        pooling = config.pooling_of(task.name)
        layer = config.layer_of(depth)
        model.pool_by(layer=layer, pooling=pooling, special_tokens=config.special_tokens)
        self._vectors = SentenceVectors(
            model,
            RemBertTokenizer.from_file(folder),
            max_seq_length=config.max_seq_length,
            batch_size=config.batch_size,
        )
        self._config = config
        self._task = task
        self._settings = {
            "model": str(folder.resolve()),
            "layer": layer,
            "num_hidden_layers": depth,
            "pooling": pooling,
            "special_tokens": config.special_tokens,
            "mean_shift": config.mean_shift,
            "max_seq_length": config.max_seq_length,
        }
        if task.name == "bucc2018":
            self._settings |= {"margin": config.margin, "neighbours": config.neighbours}

    def __call__(
        self, examples: Sequence[TatoebaSentences | BuccSentences], progress: str
    ) -> list[str]:
        """Returns the lines for the two files of one language.

        Raises:
            FileNotFoundError: test pairs of BUCC, and no threshold was stored.
            ValueError: more than one pair of files; dev pairs of BUCC without gold; a threshold that was found with
                other settings.
        """
        if len(examples) != 1:
            raise ValueError(
                "`data_dir` must hold one pair of files a language. "
                f"Received: {len(examples)} for {progress}"
            )
        (sentences,) = examples
        if isinstance(sentences, BuccSentences):
            lines, found = self._mine(sentences, progress)
        else:
            translations = find_translations(
                sentences, self._vectors, progress, mean_shift=self._config.mean_shift
            )
            lines, found = [str(line) for line in translations.tolist()], {}
        self._note(sentences.language, found)
        return lines

    def _mine(
        self, sentences: BuccSentences, progress: str
    ) -> tuple[list[str], dict[str, str | float]]:
        path = self._folder / f"threshold-{sentences.language}.json"
        language, settings = sentences.language, self._settings
        if self._config.split == "test":  # before hours of work
            threshold = MiningThreshold.load(str(path), language=language, settings=settings)
        elif not sentences.gold:
            raise ValueError(
                f"{language}: the threshold is found on dev pairs, so there must be gold pairs of them, "
                f"{language}-en.dev.gold. Received: none"
            )
        pairs, scores = mine_pairs(
            sentences,
            self._vectors,
            progress,
            k=self._config.neighbours,
            margin=self._config.margin,
            mean_shift=self._config.mean_shift,
        )
        if self._config.split != "test":
            right = np.array([pair in sentences.gold for pair in pairs], bool)
            value, f1 = best_threshold(scores, right, len(sentences.gold))
            threshold = MiningThreshold(
                threshold=value,
                dev_f1=f1,
                dev_gold=len(sentences.gold),
                language=language,
                settings=settings,
            )
            threshold.save(str(path))
            logging.info("%s: threshold %.4f, dev F1 %.2f %%", path, value, 100 * f1)
            if not f1:
                logging.warning("%s: no dev pair is right, so nothing will be mined", path)
        kept = threshold.keeps(scores)
        lines = ["\t".join(pair) for pair, keep in zip(pairs, kept, strict=True) if keep]
        return lines, {"threshold_file": path.name, "dev_f1": threshold.dev_f1}

    def _note(self, language: str, found: Mapping[str, str | float]) -> None:
        path = self._folder / "settings.json"
        notes: dict[str, Any] = {}
        if path.is_file():
            notes = json.loads(path.read_text(encoding="utf-8"))
        file = task_files.prediction_path(self._task, "", self._config.split, language).name
        notes[file] = self._settings | found
        self._folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write_json(path, dict(sorted(notes.items())))

    @property
    def _folder(self) -> pathlib.Path:
        return pathlib.Path(self._config.output_dir) / self._task.name


def find_translations(
    sentences: TatoebaSentences, vectors: Vectors, progress: str = "", *, mean_shift: bool = False
) -> np.ndarray:
    """Returns for each English sentence the line of the nearest one by cosine, int64 [N].

    With `mean_shift`, English is moved by the mean difference of the two languages first.
    """
    english = vectors(sentences.english, progress and f"{progress}, English")
    other = vectors(sentences.other, progress)
    return retrieval.nearest(retrieval.shifted(english, other) if mean_shift else english, other)


def mine_pairs(
    sentences: BuccSentences,
    vectors: Vectors,
    progress: str = "",
    *,
    k: int = 4,
    margin: retrieval.Margin = "ratio",
    mean_shift: bool = False,
) -> tuple[list[Pair], np.ndarray]:
    """Returns likely translations, the likeliest first, and their scores.

    A sentence that occurs several times takes part once, so that it is no neighbour of itself; its pairs are left out
    then, since nobody could say which of its ids is meant (XTREME's rule).

    Args:
        sentences: the two sets.
        vectors: makes vectors of sentences.
        progress: what the progress bars are called; none without a name.
        k: neighbours that a margin is taken over.
        margin: how a cosine is set against the neighbours'.
        mean_shift: whether English is moved by the mean difference of the two languages first.

    Returns:
        Pairs (other id, English id), and float32 [P].
    """
    other, other_ids = _merged(sentences.other)
    english, english_ids = _merged(sentences.english)
    sources = vectors(other, progress)
    targets = vectors(english, progress and f"{progress}, English")
    if mean_shift:
        targets = retrieval.shifted(targets, sources)
    mined = retrieval.mine(sources, targets, k=k, margin=margin)
    pairs, scores = [], []
    for source, target, score in zip(*(column.tolist() for column in mined), strict=True):
        if other_ids[source] and english_ids[target]:
            pairs.append((other_ids[source], english_ids[target]))
            scores.append(score)
    return pairs, np.array(scores, np.float32)


def _merged(sentences: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Returns the different sentences, and the id of each; no id, "", for one that is repeated."""
    counts = collections.Counter(sentences.values())
    ids = {sentence: name for name, sentence in sentences.items()}
    return list(counts), [ids[text] if count == 1 else "" for text, count in counts.items()]
