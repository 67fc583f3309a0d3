"""A classifier that takes strings: one text, or a pair."""

import keras
import tensorflow as tf

from rembert_tf.export import model_calls
from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.string_groups import in_groups
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `serve_text` and `serve_pairs` of a sequence classifier (B texts, C labels).

    `serve_text(text)`, string [B]; `serve_pairs(text, text_pair)`, string [B] each: `label` string [B], `probability`
    float32 [B], `probabilities` float32 [B, C], `truncated` bool [B].
    """
    labels = tf.constant(model.config.id2label)

    def of_group(text, text_pair):
        first, second = serving.valid_text(text), serving.valid_text(text_pair)
        rows, truncated = serving.pair_rows(tokenizer, first, second, config.max_seq_length)

        def probabilities_of(numbers):
            features = rows.padded(numbers, tokenizer.pad_id)
            return model_calls.outputs(model, features)["probabilities"]

        probabilities = in_batches(
            probabilities_of,
            rows.input_ids.row_lengths(),
            floats(len(model.config.id2label)),
            config.rows_per_batch,
        )
        return {"probabilities": probabilities, "truncated": truncated}

    @tf.function(input_signature=[strings("text"), strings("text_pair")])
    def serve_pairs(text, text_pair):
        answer = in_groups(of_group, text, text_pair)
        probabilities = answer["probabilities"]
        return {
            "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
            "probability": tf.reduce_max(probabilities, axis=-1),
            **answer,
        }

    @tf.function(input_signature=[strings("text")])
    def serve_text(text):
        return serve_pairs(text, tf.fill(tf.shape(text), ""))

    return {"serve_text": serve_text, "serve_pairs": serve_pairs}, [tokenizer]
