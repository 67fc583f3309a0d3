"""A tagger that takes strings: words separated by spaces, words that are given, or any text, piece by piece."""

import keras
import tensorflow as tf

from rembert_tf.export import model_calls
from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines import serving
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.string_groups import Answer, in_groups
from rembert_tf.pipelines.tokenization import RemBertTokenizer
from rembert_tf.pipelines.word_splitting import split_words


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `serve_text`, `serve_words` and `serve_pieces` of a tagger (B texts, W words or pieces).

    * `serve_text(text)`, string [B], words are separated by white space: `words` and `tags` string [B, W],
      `probability` float32 [B, W], `starts` and `ends` int32 [B, W] (code points in the text), `truncated` bool [B].
    * `serve_words(words)`, string [B, W], filled with "" behind a text's last word: `tags`, `probability`, `truncated`.
    * `serve_pieces(text)`, string [B], for text without spaces between words: as `serve_text`, with `pieces` in place
      of words.

    Shorter rows are filled with "", 0 and -1. What begins beyond `max_seq_length` pieces has no tag and is left out.
    """
    labels = tf.constant(model.config.id2label)
    spans = SpanTokenizer(tokenizer)

    def tagged(rows, positions):
        """Returns tag and probability at some positions, ragged int64 [B, (W)]."""

        def probabilities_of(numbers):
            features = rows.padded(numbers, tokenizer.pad_id)
            probabilities = model_calls.outputs(model, features)["probabilities"]
            return serving.at_positions(probabilities, positions, numbers)

        probabilities = in_batches(
            probabilities_of,
            rows.input_ids.row_lengths(),
            floats(len(model.config.id2label)),
            config.rows_per_batch,
            positions.row_lengths(),
        )
        tags = tf.gather(labels, tf.argmax(probabilities, axis=-1))
        return positions.with_values(tags), positions.with_values(
            tf.reduce_max(probabilities, axis=-1)
        )

    def tagged_text(text):
        words = split_words(text)
        rows, positions, truncated = serving.word_rows(
            tokenizer, words.strings, config.max_seq_length
        )
        tags, probability = tagged(rows, positions)
        kept, starts, ends = (serving.cut(x, positions.row_lengths()) for x in words)
        return {
            "words": kept,
            "tags": tags,
            "probability": probability,
            "starts": starts,
            "ends": ends,
            "truncated": truncated,
        }

    def tagged_words(words):
        count = tf.shape(words, tf.int64)[1]
        is_word = tf.where(words != "", tf.range(1, count + 1), 0)
        lengths = tf.maximum(tf.reduce_max(is_word, axis=1), 0)  # up to the last word
        ragged = tf.RaggedTensor.from_tensor(serving.valid_text(words), lengths)
        rows, positions, truncated = serving.word_rows(tokenizer, ragged, config.max_seq_length)
        tags, probability = tagged(rows, positions)
        return {"tags": tags, "probability": probability, "truncated": truncated}

    def tagged_pieces(text):
        pieces = spans.tokenize(serving.valid_text(text))
        limit = tf.constant(config.max_seq_length - 2, tf.int64)
        lengths = pieces.ids.row_lengths()
        ids, starts, ends = (serving.cut(x, tf.minimum(lengths, limit)) for x in pieces)
        positions = tf.ragged.range(ids.row_lengths()) + 1
        tags, probability = tagged(serving.join(tokenizer, [ids]), positions)
        return {
            "pieces": ids.with_values(serving.spell(tokenizer, ids.values)),
            "tags": tags,
            "probability": probability,
            "starts": starts,
            "ends": ends,
            "truncated": lengths > limit,
        }

    @tf.function(input_signature=[strings("text")])
    def serve_text(text):
        return _filled(in_groups(tagged_text, text))

    @tf.function(input_signature=[strings("words", 2)])
    def serve_words(words):
        return _filled(in_groups(tagged_words, words), tf.shape(words)[1])

    @tf.function(input_signature=[strings("text")])
    def serve_pieces(text):
        return _filled(in_groups(tagged_pieces, text))

    by_name = {"serve_text": serve_text, "serve_words": serve_words, "serve_pieces": serve_pieces}
    return by_name, [tokenizer, spans]


def _filled(answer: Answer, width: tf.Tensor | int = 0) -> dict[str, tf.Tensor]:
    """Returns ragged rows as wide as the longest, and at least `width`, filled up with "", 0 and -1."""
    fillings = {"probability": 0.0, "starts": -1, "ends": -1}
    filled = dict(answer)
    for name, rows in answer.items():
        if isinstance(rows, tf.RaggedTensor):
            filling = fillings.get(name, "")
            dense = rows.to_tensor(filling)
            missing = tf.maximum(width - tf.shape(dense)[1], 0)
            filled[name] = tf.pad(dense, [[0, 0], [0, missing]], constant_values=filling)
    return filled
