"""Sentences to vectors, in batches of similar length."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.pipelines import finetuning, sentence_features
from rembert_tf.pipelines.tokenization import RemBertTokenizer


class SentenceVectors:
    """Makes the vectors of sentences, of one layer or of all.

    Args:
        model: the model; how it pools must not change any more.
        tokenizer: its tokenizer.
        max_seq_length: longest row, [CLS] and [SEP] included.
        batch_size: rows a batch.
    """

    def __init__(
        self,
        model: RemBertSentenceEncoder,
        tokenizer: RemBertTokenizer,
        *,
        max_seq_length: int,
        batch_size: int,
    ):
        self._tokenizer = tokenizer
        self._max_seq_length = max_seq_length
        self._batch_size = batch_size
        spec = tf.TensorSpec([None, None], tf.int32)
        features = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), spec)

        @tf.function(input_signature=[features])
        def one_layer(inputs):
            return model(inputs, training=False)

        @tf.function(input_signature=[features])
        def all_layers(inputs):
            return model.call_all_layers(inputs)

        self._one_layer, self._all_layers = one_layer, all_layers

    def __call__(self, sentences: Sequence[str], progress: str = "") -> np.ndarray:
        """Returns the vectors, float32 [N, D].

        Args:
            sentences: at least one.
            progress: what the progress bar on a terminal is called; no bar without a name.
        """
        return self._run(self._one_layer, sentences, progress)

    def of_all_layers(self, sentences: Sequence[str], progress: str = "") -> np.ndarray:
        """Returns the vectors of each layer, float32 [L + 1, N, D], the input's first."""
        return self._run(self._all_layers, sentences, progress).swapaxes(0, 1)

    def _run(self, function: Callable, sentences: Sequence[str], progress: str) -> np.ndarray:
        features = sentence_features.make_features(sentences, self._tokenizer, self._max_seq_length)
        batches = finetuning.make_inference_dataset(features, self._batch_size)
        # `disable=None` draws on terminals only.
        bar = tqdm(
            batches.dataset,
            progress,
            len(batches),
            unit="batch",
            disable=None if progress else True,
        )
        return batches.restore(function(inputs).numpy() for inputs, _, _ in bar)
