"""Predictions by an exported model, as rembert-predict makes them by a model folder."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rembert_tf.export import load_exported as exported
from rembert_tf.export.load_exported import LoadedExport, load_exported
from rembert_tf.pipelines import answer_spans, classification, squad_files, tagging

# Strings of one request.
_STRINGS = 1024


def served_predictor(
    path: str, kind: str
) -> tuple[Callable[[Sequence[Any], str], list[Any]], LoadedExport]:
    """Loads an export.

    Args:
        path: the export, as `load_exported` takes it.
        kind: the task's kind, which decides the signature.

    Returns:
        The function from examples (and the name of a progress bar, which is not drawn) to predictions; the export.
        Lengths are those of the export.

    Raises:
        ValueError: the export is of another kind of model.
        FileNotFoundError: there is no export.
    """
    served = load_exported(path)
    signature, predict = _BY_KIND[kind]
    if signature not in served.signatures or bool(served.config.id2label) == (
        kind == "question_answering"
    ):
        raise ValueError(
            f"`saved_model` must be the text/ folder of a model for {kind}. Received: an export with the signatures "
            f"{', '.join(served.signatures)}"
        )

    def in_blocks(examples, progress):
        del progress
        blocks = (examples[i : i + _STRINGS] for i in range(0, len(examples), _STRINGS))
        return [made for block in blocks for made in predict(served, block)]

    return in_blocks, served


def _labels(served: LoadedExport, pairs: Sequence[classification.SentencePair]) -> list[str]:
    first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
    return served("serve_pairs", text=first, text_pair=second)["label"].tolist()


def _tags(served: LoadedExport, sentences: Sequence[tagging.TaggedSentence]) -> list[list[str]]:
    """Returns a tag for each word; words that a row had no room for are sent in a row of their own."""
    tags = [[] for _ in sentences]
    while left := [n for n, s in enumerate(sentences) if len(tags[n]) < len(s.words)]:
        # The last word stands even if it is empty, which `serve_words` takes for the end of a row.
        rows = [list(sentences[n].words[len(tags[n]) :]) for n in left]
        rows = [[word or _INVISIBLE for word in row] for row in rows]
        answers = [
            answer
            for request in _requests(rows)
            for answer in served("serve_words", words=request)["tags"].tolist()
        ]
        for number, answer in zip(left, answers, strict=True):
            tags[number] += [tag for tag in answer if tag]
    return tags


def _requests(rows: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """Yields neighbouring rows, as many as an export takes when they are filled up to the longest."""
    request, longest = [], 0
    for row in rows:
        longest = max(longest, len(row))
        if request and (len(request) + 1) * longest > exported.MOST_WORDS:
            yield request
            request, longest = [], len(row)
        request.append(row)
    yield request


# Like an empty word, it has no piece, so it gets the unknown one.
_INVISIBLE = "\u200b"


def _answers(
    served: LoadedExport, questions: Sequence[squad_files.Question]
) -> list[answer_spans.AnswerPrediction]:
    """Returns the best answer to each question."""
    answer = served(
        question=[question.question for question in questions],
        context=[question.context for question in questions],
    )
    names = ("answer", "start", "end", "start_logit", "end_logit", "probability")
    rows = zip(*(answer[name].tolist() for name in names), strict=True)
    return [
        answer_spans.AnswerPrediction(
            question.id, (answer_spans.Candidate(*row),) if row[0] else ()
        )
        for question, row in zip(questions, rows, strict=True)
    ]


_BY_KIND = {
    "classification": ("serve_pairs", _labels),
    "tagging": ("serve_words", _tags),
    "question_answering": ("serve_text", _answers),
}
