"""The bare encoder as a maker of sentence vectors."""

import keras
import tensorflow as tf

from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.models.sentence_embedding import RemBertSentenceEncoder
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.string_groups import in_groups
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `embed(text)`, string [B], of an encoder: `embedding` float32 [B, D], `truncated` bool [B].

    Raises:
        ValueError: `layer` is none of the model's, or `special_tokens` is off where `pooling` is "first".
    """
    pooled = RemBertSentenceEncoder(
        model.config,
        layer=config.layer,
        pooling=config.pooling,
        special_tokens=config.special_tokens,
        normalize=config.normalize,
        encoder=model,
        dtype=model.dtype_policy,
    )

    def of_group(text):
        rows, truncated = serving.text_rows(
            tokenizer, serving.valid_text(text), config.max_seq_length
        )
        embeddings = in_batches(
            lambda numbers: pooled(rows.padded(numbers, tokenizer.pad_id), training=False),
            rows.input_ids.row_lengths(),
            floats(model.config.hidden_size),
            config.rows_per_batch,
        )
        return {"embedding": embeddings, "truncated": truncated}

    @tf.function(input_signature=[strings("text")])
    def embed(text):
        return in_groups(of_group, text)

    return {"serve_text": embed, "embed": embed}, [tokenizer]
