"""A masked LM that takes strings: which pieces fit where the text says `[MASK]`."""

import keras
import tensorflow as tf

from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.string_groups import in_groups
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `fill_mask(text)`, string [B], of a masked LM (M masks, K pieces for each).

    `pieces` string [B, M, K], most probable first, U+2581 for a space; `probabilities` float32 [B, M, K]; `starts`
    int32 [B, M], the code point where each `[MASK]` begins; `truncated` bool [B]. Texts with fewer masks are filled
    with "", 0 and -1; masks beyond `max_seq_length` pieces are left out.
    """
    width = model.config.hidden_size
    # The table may have more rows than there are pieces.
    num_pieces = tokenizer.vocab_size
    top_k = min(config.top_k, num_pieces)

    def of_group(text):
        text = serving.valid_text(text)
        rows, masks, truncated = serving.masked_rows(tokenizer, text, config.max_seq_length)

        def hidden_of(numbers):
            features = rows.padded(numbers, tokenizer.pad_id)
            hidden = model.encoder(features, training=False)["last_hidden_state"]
            return tf.cast(serving.at_positions(hidden, masks.positions, numbers), tf.float32)

        hidden = in_batches(
            hidden_of,
            rows.input_ids.row_lengths(),
            floats(width),
            config.rows_per_batch,
            masks.positions.row_lengths(),
        )

        def best_of(numbers):
            chosen = tf.cast(tf.gather(hidden, numbers), model.compute_dtype)
            logits = model.masked_lm_head(chosen[tf.newaxis])[0, :, :num_pieces]
            logits = tf.cast(logits, tf.float32)
            best, ids = tf.math.top_k(logits, top_k)
            return tf.exp(best - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)), ids

        specs = floats(top_k), tf.TensorSpec([None, top_k], tf.int32)
        order = tf.range(tf.shape(hidden)[0])
        probabilities, ids = in_batches(best_of, order, specs, config.rows_per_batch)
        return {
            "pieces": masks.positions.with_values(serving.spell(tokenizer, ids)),
            "probabilities": masks.positions.with_values(probabilities),
            "starts": masks.starts,
            "truncated": truncated,
        }

    @tf.function(input_signature=[strings("text")])
    def fill_mask(text):
        answer = in_groups(of_group, text)
        by_mask = [None, None, top_k]
        return {
            "pieces": answer["pieces"].to_tensor("", shape=by_mask),
            "probabilities": answer["probabilities"].to_tensor(0.0, shape=by_mask),
            "starts": answer["starts"].to_tensor(-1),
            "truncated": answer["truncated"],
        }

    return {"serve_text": fill_mask, "fill_mask": fill_mask}, [tokenizer]
