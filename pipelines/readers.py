"""One reader a kind of task: what turns its files into features and predictions into files."""

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rembert_tf.pipelines import classification, features, retrieval_files, tagging, tsv


class Reader(NamedTuple):
    """The functions of one kind of task; each module documents its own.

    Attributes:
        read_examples: `(path, labels=None, *, language="")` to a list of examples.
        read_text: lines of plain text to examples, one a line.
        inputs_of: an example to what a model sees of it, as a tuple of strings. Examples whose first
            string is the same are a group (a premise, a text), which `dev_fraction` keeps together.
        labels_of: examples to the set of labels that occur.
        make_features: `(examples, tokenizer, labels, max_seq_length)` to features.
        predictions: `(features, outputs)` to one prediction an example.
        write_predictions: `(path, predictions)` writes them in XTREME's layout.
        format_line: a prediction to one line of plain text.
        feature_settings: fields of `LengthConfig` that `make_features` takes as keywords, too.
        prediction_settings: the same for `predictions`.
        label_field: the field of an example that holds its labels, `None` where there are none.
    """

    read_examples: Callable[..., list[Any]]
    read_text: Callable[..., list[Any]]
    inputs_of: Callable[[Any], tuple[str, ...]]
    labels_of: Callable[[Iterable[Any]], set[str]]
    make_features: Callable[..., features.Features]
    predictions: Callable[..., list[Any]]
    write_predictions: Callable[..., None]
    format_line: Callable[[Any], str]
    feature_settings: tuple[str, ...] = ()
    prediction_settings: tuple[str, ...] = ()
    label_field: str = ""

    def without_labels(self, examples: Iterable[Any]) -> list[Any]:
        """Returns examples as they are in a file without labels: a prediction needs none."""
        if not self.label_field:
            return list(examples)
        nothing = {self.label_field: None}
        return [dataclasses.replace(example, **nothing) for example in examples]


@functools.cache
def get_reader(kind: str) -> Reader:
    """Returns the reader of a kind of task; questions alone need TensorFlow to be read.

    Raises:
        ValueError: there is no reader of this kind.
    """
    if kind == "tagging":
        return Reader(
            tagging.read_sentences,
            tagging.read_text,
            tagging.inputs_of,
            tagging.labels_of,
            tagging.make_features,
            tagging.predicted_tags,
            tagging.write_predictions,
            tagging.format_line,
            label_field="tags",
        )
    if kind == "classification":
        return Reader(
            classification.read_pairs,
            classification.read_text,
            classification.inputs_of,
            classification.labels_of,
            classification.make_features,
            classification.predicted_labels,
            classification.write_predictions,
            classification.format_line,
            label_field="label",
        )
    if kind == "question_answering":
        from rembert_tf.pipelines import answer_spans, question_answering, squad_files

        return Reader(
            squad_files.read_questions,
            squad_files.read_text,
            squad_files.inputs_of,
            squad_files.labels_of,
            question_answering.make_features,
            answer_spans.predictions,
            answer_spans.write_predictions,
            answer_spans.format_line,
            feature_settings=("doc_stride", "max_query_length"),
            prediction_settings=("n_best_size", "max_answer_length"),
        )
    if kind == "retrieval":
        return Reader(
            retrieval_files.read_sentences,
            _not_for_retrieval,
            _not_for_retrieval,
            _not_for_retrieval,
            _not_for_retrieval,
            _not_for_retrieval,
            tsv.write_lines,
            str,
        )
    raise ValueError(f"`kind` must be one that is fine-tuned. Received: kind={kind!r}")


def _not_for_retrieval(*args, **kwargs):
    """Stands in for what a kind of task that compares two whole files does not have."""
    raise ValueError(
        "`kind` must be one whose examples are looked at one by one. Received: kind='retrieval'"
    )


def settings(names: Iterable[str], config) -> dict[str, Any]:
    """Returns the fields of a configuration that have these names, as keyword arguments."""
    return {name: getattr(config, name) for name in names}
