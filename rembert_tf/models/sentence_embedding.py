"""One vector for a sentence: what retrieval compares (Tatoeba, BUCC)."""

from typing import Literal

import keras
from keras import ops

from rembert_tf.models.encoder import RemBertEncoder
from rembert_tf.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="rembert_tf")
class RemBertSentenceEncoder(PretrainedModel):
    """Pools the hidden states of one layer of an encoder to a vector a sentence.

    It has no weights beside the encoder's, so it loads from the folder of any model of ours, and its own folder is an
    encoder's. `layer`, `pooling`, `special_tokens` and `normalize` are no part of a folder: give them to
    `from_pretrained`, or change them with `pool_by`.

    Args:
        config: The architecture.
        layer: Which layer, from 0, the projected input embedding, to the last one,
            `config.num_hidden_layers`; negative numbers count from the end.
        pooling: `mean` over the tokens, or the `first` one, which is [CLS].
        special_tokens: Whether the mean includes the first and the last token of a row, [CLS] and [SEP] (XTREME does;
            Chung et al. 2021, A.9, leave them out). A row of nothing else then gives zeros.
        normalize: Whether vectors are scaled to length 1.
        encoder: An encoder to take; a new one if missing.
        name: Name of the model.
        **kwargs: `dtype` (a Keras dtype policy) and `trainable`.

    Raises:
        ValueError: If there is no such layer or pooling, or the first token shall be no special one.

    Example:
        >>> config = RemBertConfig(vocab_size=100, hidden_size=16, num_attention_heads=2,
        ...                        num_hidden_layers=2, intermediate_size=32,
        ...                        input_embedding_size=8, output_embedding_size=24)
        >>> model = RemBertSentenceEncoder(config, layer=1, normalize=True)
        >>> vectors = model({"input_ids": np.array([[3, 14, 15, 4], [3, 14, 4, 0]]),
        ...                  "attention_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]])})
        >>> vectors.shape, np.linalg.norm(vectors, axis=1).round(4).tolist()
        (TensorShape([2, 16]), [1.0, 1.0])
    """

    def __init__(
        self,
        config,
        *,
        layer=-1,
        pooling: Literal["mean", "first"] = "mean",
        special_tokens=True,
        normalize=False,
        encoder=None,
        name="rembert_sentence_encoder",
        **kwargs,
    ):
        super().__init__(config, name=name, **kwargs)
        self.encoder = encoder or RemBertEncoder(
            config, add_pooler=False, dtype=self.dtype_policy, name="rembert"
        )
        self.pool_by(
            layer=layer, pooling=pooling, special_tokens=special_tokens, normalize=normalize
        )
        self.built = True

    def pool_by(self, *, layer=-1, pooling="mean", special_tokens=True, normalize=False):
        """Changes how vectors are made; what is traced already stays as it is.

        Args and errors: those of the class.
        """
        layers = self.config.num_hidden_layers
        if not -layers - 1 <= layer <= layers:
            raise ValueError(
                f"`layer` must be 0 (the input) to {layers}, or negative, from the end. "
                f"Received: layer={layer}"
            )
        if pooling not in ("mean", "first"):
            raise ValueError(f"`pooling` must be 'mean' or 'first'. Received: pooling={pooling!r}")
        if pooling == "first" and not special_tokens:
            raise ValueError(
                "`special_tokens` must be True where `pooling` is 'first', the special token [CLS]. "
                f"Received: special_tokens={special_tokens}"
            )
        self.layer = layer
        self.pooling = pooling
        self.special_tokens = special_tokens
        self.normalize = normalize

    def call(self, inputs, training=None):
        """Makes the vectors.

        Args:
            inputs: `input_ids` int [B, T], or a dictionary of the encoder's features; padding, if
                any, at the end of a row.
            training: Whether to drop, inside the encoder.

        Returns:
            float32 [B, D].
        """
        features = self.complete_features(inputs, training)
        return self._pool(self._hidden_states(features, training)[self.layer], features)

    def call_all_layers(self, inputs):
        """Returns the vectors of every layer, float32 [B, L + 1, D], the input's first."""
        features = self.complete_features(inputs, training=False)
        hidden_states = self._hidden_states(features, training=False)
        return ops.stack([self._pool(hidden, features) for hidden in hidden_states], axis=1)

    def _hidden_states(self, features, training):
        # A graph computes no more of them than it uses.
        outputs = self.encoder(features, training=training, output_hidden_states=True)
        return outputs["hidden_states"]

    def _pool(self, hidden, features):
        hidden = ops.cast(hidden, "float32")
        if self.pooling == "first":
            vectors = hidden[:, 0]
        else:
            mask = ops.cast(features["attention_mask"], "float32")
            if not self.special_tokens:  # a token counts that has one before and one behind it
                inner = mask[:, 1:-1] * mask[:, 2:]
                mask = ops.pad(inner, [[0, 0], [1, 1]])
            count = ops.maximum(ops.sum(mask, axis=1, keepdims=True), 1.0)
            vectors = ops.sum(hidden * mask[:, :, None], axis=1) / count
        return ops.normalize(vectors, axis=-1) if self.normalize else vectors

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "layer": self.layer,
            "pooling": self.pooling,
            "special_tokens": self.special_tokens,
            "normalize": self.normalize,
        }

    @classmethod
    def from_pretrained(
        cls,
        path,
        *,
        revision=None,
        layer=-1,
        pooling="mean",
        special_tokens=True,
        normalize=False,
        **kwargs,
    ):
        """Loads the encoder of any model folder, or of a model of the Hub.

        Args:
            path: The folder, or an id such as "google/rembert".
            revision: Branch, tag or commit of a model on the Hub.
            layer: As in the class, and so are the next three.
            pooling: `mean` or `first`.
            special_tokens: Whether the mean includes [CLS] and [SEP].
            normalize: Whether vectors have length 1.
            **kwargs: Passed on to `rembert_tf.checkpoints.folder.load_pretrained`.
        """
        model = super().from_pretrained(path, revision=revision, **kwargs)
        model.pool_by(
            layer=layer, pooling=pooling, special_tokens=special_tokens, normalize=normalize
        )
        return model

    def save_pretrained(self, path, tokenizer=None, *, dtype=None):
        """Writes the encoder as a folder; see `rembert_tf.checkpoints.folder.save_pretrained`."""
        self.encoder.save_pretrained(path, tokenizer, dtype=dtype)
