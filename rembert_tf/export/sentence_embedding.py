"""The bare encoder as a maker of sentence vectors."""

import keras
import tensorflow as tf

from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `embed(text)`, string [B], of an encoder: `embedding` float32 [B, D], `truncated` bool [B].

    Raises:
        ValueError: `embedding_layer` is none of the model's.
    """
    layers = model.config.num_hidden_layers
    if not -layers - 1 <= config.embedding_layer <= layers:
        raise ValueError(
            f"`embedding_layer` must be one of the model's, 0 (its input) to {layers}, or negative "
            f"from the end. Received: embedding_layer={config.embedding_layer}"
        )

    @tf.function(input_signature=[strings("text")])
    def embed(text):
        rows, truncated = serving.text_rows(
            tokenizer, serving.valid_text(text), config.max_seq_length
        )

        def embeddings_of(numbers):
            features = rows.padded(numbers, tokenizer.pad_id)
            made = model(features, training=False, output_hidden_states=True)["hidden_states"]
            hidden = tf.cast(made[config.embedding_layer], tf.float32)
            if config.embedding_pooling == "first":
                return hidden[:, 0]
            mask = tf.cast(features["attention_mask"], tf.float32)[:, :, tf.newaxis]
            return tf.reduce_sum(hidden * mask, axis=1) / tf.reduce_sum(mask, axis=1)

        embeddings = in_batches(
            embeddings_of,
            rows.input_ids.row_lengths(),
            floats(model.config.hidden_size),
            config.rows_per_batch,
        )
        return {"embedding": embeddings, "truncated": truncated}

    return {"serve_text": embed, "embed": embed}, [tokenizer]
