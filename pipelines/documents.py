"""From sentences to documents, and which of the documents are held out."""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from rembert_tf.pipelines.manifest import Split

Document = list[np.ndarray]


def collect_documents(
    sentences: Iterable[np.ndarray | None], max_tokens: int
) -> Iterator[Document]:
    """Collects sentences into documents.

    Args:
        sentences: Ids of each sentence, int32 [pieces], with None between documents.
        max_tokens: A document ends in front of the sentence that would take it past this number of pieces; a single
            longer sentence is a document by itself.

    Yields:
        The sentences of each document.
    """
    document: Document = []
    size = 0
    for sentence in itertools.chain(sentences, (None,)):
        if document and (sentence is None or size + len(sentence) > max_tokens):
            yield document
            document, size = [], 0
        if sentence is not None:
            document.append(sentence)
            size += len(sentence)


def split_documents(
    stream: Iterable[Document], heldout_fraction: float
) -> Iterator[tuple[Split, Document]]:
    """Says for each document whether it is trained on or held out.

    With k = 1 / fraction, rounded, the second document and every k-th after it are held out. A language of a single
    document is cut: its last sentences, that share of them and at least one, are held out.

    Args:
        stream: Documents.
        heldout_fraction: Share to hold out, 0 to 0.5.

    Yields:
        "train" or "heldout", and the document.
    """
    stream = iter(stream)
    first_two = list(itertools.islice(stream, 2))
    if heldout_fraction and len(first_two) == 1 and len(first_two[0]) > 1:
        (document,) = first_two
        cut = len(document) - max(1, round(len(document) * heldout_fraction))
        yield "train", document[:cut]
        yield "heldout", document[cut:]
        return
    every = round(1 / heldout_fraction) if heldout_fraction else 0
    for number, document in enumerate(itertools.chain(first_two, stream)):
        yield ("heldout" if every and number % every == 1 else "train"), document
