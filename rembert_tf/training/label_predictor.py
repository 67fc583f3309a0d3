"""What a model says about features, in their order."""

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from rembert_tf.pipelines import finetuning
from rembert_tf.pipelines.features import Features
from rembert_tf.training.task_kinds import KINDS


class LabelPredictor:
    """Runs a model over features: the most probable label of each position (tagging) or row (classification).

    For questions, it returns the logits of both ends of an answer.

    Args:
        model: a model of one of `KINDS`; it may go on training between calls.
        batch_size: rows a batch; batches hold rows of similar length.
        pad_to: pad every batch to `[batch_size, pad_to]`, the fixed shape that TPUs need; `None` pads to its longest
            row.
    """

    def __init__(self, model: keras.Model, batch_size: int, *, pad_to: int | None = None):
        self._batch_size = batch_size
        self._pad_to = pad_to
        (outputs,) = (
            kind.outputs for kind in KINDS.values() if isinstance(model, kind.model_class)
        )
        spec = tf.TensorSpec([batch_size if pad_to else None, pad_to], tf.int32)
        features = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), spec)

        @tf.function(input_signature=[features])
        def predict(inputs):
            return outputs(model(inputs, training=False))

        self._predict = predict

    def __call__(self, features: Features, progress: str = "") -> np.ndarray:
        """Returns the outputs in the order of `features`.

        Args:
            features: what to predict; no row at all is well, too.
            progress: what the progress bar on a terminal is called; no bar without a name.

        Returns:
            int32 `[S]` or `[R]`, label ids; float32 `[S, 2]` for questions.
        """
        if not features.num_rows:
            output = self._predict.get_concrete_function().structured_outputs
            by_position = features.outputs_belong_to == "positions"
            return np.zeros([0, *output.shape[1 + by_position :]], output.dtype.as_numpy_dtype)
        batches = finetuning.make_inference_dataset(features, self._batch_size, pad_to=self._pad_to)
        # `disable=None` draws on terminals only.
        bar = tqdm(
            batches.dataset,
            progress,
            len(batches),
            unit="batch",
            disable=None if progress else True,
        )
        return batches.restore(self._predict(inputs).numpy() for inputs, _, _ in bar)
