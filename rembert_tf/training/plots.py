"""Pictures of a run, drawn from its `metrics.jsonl`."""

import pathlib

from rembert_tf.training.run_folder import read_metrics

_INK, _BLUE, _ORANGE, _GREY = "#222222", "#2f6db3", "#d9822b", "#8a8a8a"


def plot_pretraining(folder: str | pathlib.Path) -> pathlib.Path:
    """Draws loss and accuracy of training and of held-out text, beside the unigram baseline.

    Args:
        folder: a pre-training run's `model_dir`.

    Returns:
        The path of the picture, `<folder>/loss.png`.
    """
    lines = read_metrics(folder)
    panels = [
        ("loss", "masked-LM loss (nats)", 1),
        ("masked_lm_accuracy", "masked-LM accuracy (%)", 100),
    ]
    figure, axes = _figure(len(panels))
    for axis, (name, title, factor) in zip(axes, panels, strict=True):
        _line(axis, lines, "train", name, factor, _GREY, "training", marker="")
        _line(axis, lines, "heldout", name, factor, _BLUE, "held out", marker="o")
        baseline = "unigram_loss" if name == "loss" else "unigram_accuracy"
        _line(axis, lines, "heldout", baseline, factor, _ORANGE, "each language's unigrams",
              marker="", linestyle="--")  # fmt: skip
        axis.set_title(title, loc="left", fontsize=11, color=_INK)
        axis.set_xlabel("step")
    axes[0].legend(frameon=False)
    return _save(figure, pathlib.Path(folder) / "loss.png")


def plot_finetuning(folder: str | pathlib.Path) -> pathlib.Path:
    """Draws the training loss and the English dev score; returns `<folder>/loss.png`."""
    lines = read_metrics(folder)
    figure, axes = _figure(2)
    _line(axes[0], lines, "train", "loss", 1, _GREY, "training", marker="")
    _line(axes[1], lines, "dev", "score", 100, _BLUE, "dev", marker="o")
    axes[0].set_title("training loss (nats)", loc="left", fontsize=11, color=_INK)
    axes[1].set_title("dev accuracy (%)", loc="left", fontsize=11, color=_INK)
    for axis in axes:
        axis.set_xlabel("step")
    return _save(figure, pathlib.Path(folder) / "loss.png")


def _figure(panels: int):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(5.2 * panels, 3.6), layout="constrained")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axis.set_axisbelow(True)
    return figure, axes


def _line(axis, lines, kind, name, factor, color, label, **style):
    points = [(line["step"], factor * line[name]) for line in lines if line["kind"] == kind]
    if points:
        axis.plot(*zip(*points, strict=True), color=color, label=label, markersize=4, **style)


def _save(figure, path: pathlib.Path) -> pathlib.Path:
    from matplotlib import pyplot

    temporary = path.with_name(f"tmp-{path.name}")
    figure.savefig(temporary, dpi=130)
    pyplot.close(figure)
    temporary.replace(path)
    return path
