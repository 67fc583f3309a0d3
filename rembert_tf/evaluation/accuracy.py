"""Classification: label files (XNLI, PAWS-X) and accuracy."""

from collections.abc import Collection, Hashable, Mapping, Sequence

from rembert_tf.evaluation import files


def accuracy(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> float:
    """Returns the share of predictions that equal their gold label, from 0 to 1.

    Raises:
        ValueError: the two differ in length, or are empty.

    Example:
        >>> accuracy(["neutral", "entailment"], ["neutral", "neutral"])
        0.5
    """
    if len(gold) != len(predicted):
        raise ValueError(
            "`gold` and `predicted` must be equally long. "
            f"Received: len(gold)={len(gold)}, len(predicted)={len(predicted)}"
        )
    if not gold:
        raise ValueError("`gold` must hold at least one label. Received: gold=[]")
    return sum(g == p for g, p in zip(gold, predicted, strict=True)) / len(gold)


def read_labels(
    path: files.Source, allowed: Collection[str], aliases: Mapping[str, str] | None = None
) -> list[str]:
    """Reads one label a line, the last column where there are several.

    So both XTREME's gold files (bare labels) and its data files (sentence, sentence, label;
    csv-quoted or raw, LF or CRLF) are label files.

    Args:
        path: the file.
        allowed: the labels of the task.
        aliases: other spellings and the label each stands for.

    Raises:
        ValueError: an empty line or an unknown label; the message names file and line.
    """
    aliases = aliases or {}
    labels = []
    for number, line in enumerate(files.read_lines(path), start=1):
        label = files.last_column(line)
        label = aliases.get(label, label)
        if label not in allowed:
            raise ValueError(unknown_label_message(path, number, label, allowed))
        labels.append(label)
    if not labels:
        raise ValueError(f"{path}: the file holds no label.")
    return labels


def unknown_label_message(
    path: files.Source, number: int, label: str, allowed: Collection[str]
) -> str:
    """Returns the error text for a line whose last column is no label of the task."""
    if not label:
        return f"{path}:{number}: no label in this line. Allowed: {', '.join(sorted(allowed))}."
    shown = label if len(label) <= 40 else label[:37] + "..."
    return (
        f"{path}:{number}: unknown label. Allowed: {', '.join(sorted(allowed))} "
        f"(XTREME's own test files carry no labels). Received: label={shown!r}"
    )


def check_same_length(
    gold_path: files.Source,
    gold: Sequence[Hashable],
    predicted_path: str,
    predicted: Sequence[Hashable],
) -> None:
    """Raises `ValueError` naming both files and the first line that one of them lacks."""
    if len(gold) != len(predicted):
        raise ValueError(
            f"{predicted_path}:{min(len(gold), len(predicted)) + 1}: predictions and labels must "
            f"have the same number of lines. Received: {len(predicted)} predictions, "
            f"{len(gold)} labels in {gold_path}"
        )
