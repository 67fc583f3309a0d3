"""Questions on contexts of any length, as strings."""

import keras
import tensorflow as tf

from rembert_tf.export import model_calls
from rembert_tf.export.signature_types import Signatures, floats, strings
from rembert_tf.export_config import ServingConfig
from rembert_tf.pipelines import served_answers, serving
from rembert_tf.pipelines.piece_spans import SpanTokenizer
from rembert_tf.pipelines.row_batches import in_batches
from rembert_tf.pipelines.string_groups import in_groups
from rembert_tf.pipelines.tokenization import RemBertTokenizer


def signatures(
    model: keras.Model, tokenizer: RemBertTokenizer, config: ServingConfig
) -> Signatures:
    """Returns `serve_text(question, context)` of a model for questions, string [B] each.

    `answer` string [B], `start` and `end` int32 [B] (code points in the context), `score` float32 [B] (comparable
    across contexts: the sum of `start_logit` and `end_logit`, float32 [B]), `probability` float32 [B] (its share among
    the `n_best_size` best), `truncated` bool [B] (the question was cut, or `max_windows` left out the end of the
    context). A context without text: "", 0, 0, least float32, 0.

    Raises:
        ValueError: no room for a context beside the question.
    """
    if config.max_seq_length < config.max_query_length + 4:
        raise ValueError(
            "`max_seq_length` must leave room for a context behind the question: at least `max_query_length` + 4. "
            f"Received: max_seq_length={config.max_seq_length}, max_query_length={config.max_query_length}"
        )
    spans = SpanTokenizer(tokenizer)

    def of_group(question, context):
        context = serving.valid_text(context)
        windows = served_answers.question_rows(
            tokenizer,
            spans,
            serving.valid_text(question),
            context,
            max_seq_length=config.max_seq_length,
            doc_stride=config.doc_stride,
            max_query_length=config.max_query_length,
            max_windows=config.max_windows,
        )
        positions = windows.positions

        def logits_of(numbers):
            features = windows.rows.padded(numbers, tokenizer.pad_id)
            ends = model_calls.outputs(model, features)
            logits = tf.stack([ends["start_logits"], ends["end_logits"]], axis=-1)
            return serving.at_positions(logits, positions, numbers)

        logits = in_batches(
            logits_of,
            windows.rows.input_ids.row_lengths(),
            floats(2),
            config.rows_per_batch,
            windows.lengths,
        )
        best = served_answers.best_answers(
            windows,
            logits,
            tf.size(context),
            n_best_size=config.n_best_size,
            max_answer_length=config.max_answer_length,
        )
        return {
            "answer": tf.strings.substr(
                context, best.starts, best.ends - best.starts, unit="UTF8_CHAR"
            ),
            "start": best.starts,
            "end": best.ends,
            "score": best.scores,
            "start_logit": best.start_logits,
            "end_logit": best.end_logits,
            "probability": best.probabilities,
            "truncated": windows.truncated,
        }

    @tf.function(input_signature=[strings("question"), strings("context")])
    def serve_text(question, context):
        return in_groups(of_group, question, context)

    return {"serve_text": serve_text}, [tokenizer, spans]
