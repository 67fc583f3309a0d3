"""The README in the assets of an export: what goes in, what comes out, a call from Python and one with curl."""

import json
import pathlib
from collections.abc import Sequence

import keras
import numpy as np

from rembert_tf.export_config import ServingConfig
from rembert_tf.models.question_answering import RemBertForQuestionAnswering
from rembert_tf.pipelines import string_groups

# Signature -> inputs of an example, and what it answers.
_ANSWERS = {
    "embed": ({"text": ["Anna sings."]}, "`embedding` float32 [B, D]"),
    "fill_mask": (
        {"text": ["Anna [MASK]."]},
        "`pieces` string [B, M, K] and `probabilities` float32 [B, M, K] for each [MASK], which begins at code point "
        "`starts` int32 [B, M]",
    ),
    "serve_pairs": (
        {"text": ["Anna sings."], "text_pair": ["Someone sings."]},
        "`label` string [B], `probability` float32 [B], `probabilities` float32 [B, C]",
    ),
    "serve_pieces": (
        {"text": ["Anna sings."]},
        "as `serve_text`, for `pieces` in place of `words`: for text without spaces between words",
    ),
    "serve_words": (
        {"words": [["Anna", "sings"]]},
        '`tags` string [B, W], `probability` float32 [B, W]; fill short rows with ""',
    ),
}
_SERVE_TEXT = {
    "RemBertForQuestionAnswering": (
        {"question": ["Who sings?"], "context": ["Anna sings."]},
        "`answer` string [B], `start` and `end` int32 [B] in code points of the context, `score` and `probability` "
        "float32 [B]",
    ),
    "RemBertForSequenceClassification": ({"text": ["Anna sings."]}, _ANSWERS["serve_pairs"][1]),
    "RemBertForTokenClassification": (
        {"text": ["Anna sings ."]},
        "`words` and `tags` string [B, W], `probability` float32 [B, W], `starts` and `ends` int32 [B, W] in code "
        "points; words are what stands between spaces",
    ),
    "RemBertForMaskedLM": _ANSWERS["fill_mask"],
    "RemBertEncoder": _ANSWERS["embed"],
}

# What each kind of model answers to a text without any piece.
_NOTHING = {
    "RemBertForQuestionAnswering": (
        'such a context has the answer "", 0, 0, with the least float32 as score and probability 0; such a question is '
        "answered as any other"
    ),
    "RemBertForSequenceClassification": "it is classified as an empty text",
    "RemBertForTokenClassification": "it has no words and no pieces, so its row is filling alone",
    "RemBertForMaskedLM": "it has no mask, so its row is filling alone",
    "RemBertEncoder": "it has the vector of an empty text",
}


def write_readme(
    path: pathlib.Path, model: keras.Model, config: ServingConfig, signatures: Sequence[str]
) -> None:
    """Writes the file.

    Args:
        path: where to.
        model: the model.
        config: what is done with text.
        signatures: names of all signatures.
    """
    class_name = type(model).__name__
    answers = _ANSWERS | {"serve_text": _SERVE_TEXT[class_name]}
    example, _ = answers["serve_text"]
    arguments = ", ".join(f"{name}=tf.constant({value!r})" for name, value in example.items())
    body = json.dumps({"signature_name": "serve_text", "inputs": example})
    parameters = sum(int(np.prod(variable.shape)) for variable in model.weights)
    labels = f"; labels: {', '.join(model.config.id2label)}" if model.config.id2label else ""
    listed = "\n".join(
        f"* `{name}({', '.join(answers[name][0])})`, string: {answers[name][1]}."
        for name in signatures
        if name in answers
    )
    path.write_text(
        f"""# {class_name}

{parameters:,} parameters, {model.dtype_policy.name}{labels}. Written by rembert_tf.

`ids/` needs TensorFlow alone. `text/` takes raw strings and needs tensorflow_text:

    import tensorflow as tf, tensorflow_text
    model = tf.saved_model.load("text/VERSION")
    model.signatures["serve_text"]({arguments})

With TensorFlow Serving:

    curl -d '{body}' http://HOST:8501/v1/models/MODEL:predict

{listed}

`serving_default` takes `input_ids`, `attention_mask` and `token_type_ids`, int32 [B, T].

## Awkward input

No string is refused. No answer depends on the other strings of a request.

* Too long: {_too_long(model, config)}
* Empty, or nothing but spaces: {_NOTHING[class_name]}.
* Bytes that are no UTF-8 are read as U+FFFD, and offsets count what is read.
* NUL bytes and other control characters are characters: they stand in offsets. The vocabulary's normalisation leaves
  most of them out, NUL among them where it says so.
* Emoji, and whatever else the vocabulary does not know: a run of unknown characters is one unknown piece, or bytes
  where the vocabulary has them. SentencePiece takes time with the square of such a run, about half a minute for 1 MB
  of them without a break: bound the length of a request where strangers ask.
* No string at all: every output is empty, with its number of axes.
* Any number of strings of any length: they are taken apart by {string_groups.MOST_BYTES // 1024} kB, or one string that
  is longer, and go through the model in batches of {config.rows_per_batch} rows. So memory grows with the longest
  string and with the answer, not with their number. Time grows with all of them.
""",
        encoding="utf-8",
    )


def _too_long(model: keras.Model, config: ServingConfig) -> str:
    """Says what becomes of a text longer than a row."""
    if not isinstance(model, RemBertForQuestionAnswering):
        return (
            f"texts are cut at {config.max_seq_length} pieces, [CLS] and [SEP] included, and `truncated` bool [B] says "
            "so."
        )
    read = f"the first {config.max_windows} of them" if config.max_windows else "all of them"
    return (
        f"questions are cut at {config.max_query_length} pieces, and `truncated` bool [B] says so. A context becomes "
        f"windows of {config.max_seq_length} pieces with the question, {config.doc_stride} pieces apart, and {read} "
        "are read: time grows with its length. `--max_windows` of rembert-export bounds the windows that go through "
        "the model; `truncated` then says where the end of a context was left out, too."
    )
