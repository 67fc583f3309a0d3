"""Two CoNLL-like files, labels and predictions: scores without XTREME's folders.

A line is a token and a tag with spaces or tabs between (other columns may stand between the two);
a blank line ends a sentence, `-DOCSTART-` lines are skipped. So MasakhaNER's, CoNLL's and most
published prediction files can be scored. The tags say which scores make sense: spans where all are
`O`, `B-…` or `I-…`, the share of right tokens otherwise.
"""

import dataclasses

from rembert_tf.evaluation import files, tagging


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConllScores:
    """Scores of a CoNLL-like prediction file, in percent.

    Attributes:
        scores: metric → score: `accuracy` of tokens, and for spans `f1`, `precision`, `recall` as
            conlleval counts them and `f1_strict`.
        sentences: how many were scored.
        tokens: how many tokens these have.
        misfits: sentences left out: their place, `labels:line`.
        other_tokens: scored sentences of the right length whose tokens are spelt differently.
        invalid_tags: predicted `I-` tags that continue no span.
    """

    scores: dict[str, float]
    sentences: int
    tokens: int
    misfits: list[str]
    other_tokens: int
    invalid_tags: int

    def table(self) -> str:
        """Returns the scores as lines of text."""
        lines = [f"{metric:<10} {score:7.3f}" for metric, score in self.scores.items()]
        lines.append(f"{self.sentences} sentences, {self.tokens} tokens")
        if self.misfits:
            lines.append(
                f"{len(self.misfits)} sentences left out, whose number of tokens differs; the first "
                f"is {self.misfits[0]}"
            )
        if self.other_tokens:
            lines.append(f"{self.other_tokens} scored sentences have other tokens, one for one")
        if self.invalid_tags:
            lines.append(
                f"{self.invalid_tags} predicted I- tags continue no span; none was repaired"
            )
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Sentence:
    line: int
    tokens: list[str]
    tags: list[str]


def score_conll(gold_path: str, predicted_path: str, *, skip_misfits: bool = False) -> ConllScores:
    """Scores a CoNLL-like prediction file.

    Args:
        gold_path: labels.
        predicted_path: predictions.
        skip_misfits: leave out sentences that differ in their number of tokens.

    Raises:
        ValueError: a line without a tag; another number of sentences; or, unless `skip_misfits`, a
            sentence of another length. The message names files and lines.
    """
    gold, predicted = _read(gold_path), _read(predicted_path)
    if len(gold) != len(predicted):
        raise ValueError(
            f"{predicted_path}: predictions and labels must have the same number of sentences. "
            f"Received: {len(predicted)} here, {len(gold)} in {gold_path}"
        )
    pairs = list(zip(gold, predicted, strict=True))
    misfits = [(g, p) for g, p in pairs if len(g.tags) != len(p.tags)]
    if misfits and not skip_misfits:
        g, p = misfits[0]
        raise ValueError(
            f"{predicted_path}:{p.line}: a sentence must have as many tokens as in {gold_path}:"
            f"{g.line}. Received: {len(p.tags)} here, {len(g.tags)} there, and {len(misfits)} "
            "such sentences"
        )
    pairs = [(g, p) for g, p in pairs if len(g.tags) == len(p.tags)]
    gold_tags, predicted_tags = [g.tags for g, _ in pairs], [p.tags for _, p in pairs]
    scores = {"accuracy": tagging.token_accuracy(gold_tags, predicted_tags)}
    spans = all(tag[:2] in ("O", "B-", "I-") for s in (*gold_tags, *predicted_tags) for tag in s)
    if spans:
        scores |= tagging.span_scores(gold_tags, predicted_tags)._asdict()
        scores["f1_strict"] = tagging.span_scores(gold_tags, predicted_tags, strict=True).f1
    return ConllScores(
        scores={metric: 100 * score for metric, score in scores.items()},
        sentences=len(pairs),
        tokens=sum(map(len, gold_tags)),
        misfits=[f"{gold_path}:{g.line}" for g, _ in misfits],
        other_tokens=sum(g.tokens != p.tokens for g, p in pairs),
        invalid_tags=tagging.count_invalid_iob2(predicted_tags) if spans else 0,
    )


def _read(path: str) -> list[_Sentence]:
    sentences: list[_Sentence] = []
    inside = False
    for number, line in enumerate(files.read_lines(path), start=1):
        columns = line.replace("\t", " ").strip(" \r").split(" ")
        if not line.strip() or columns[0] == "-DOCSTART-":
            inside = False
            continue
        if len(columns) < 2:
            raise ValueError(
                f"{path}:{number}: a line must be a token and a tag with a space or tab between. "
                f"Received: line={line[:60]!r}"
            )
        if not inside:
            sentences.append(_Sentence(line=number, tokens=[], tags=[]))
            inside = True
        sentences[-1].tokens.append(columns[0])
        sentences[-1].tags.append(columns[-1])
    if not sentences:
        raise ValueError(f"{path}: the file holds no sentence.")
    return sentences
