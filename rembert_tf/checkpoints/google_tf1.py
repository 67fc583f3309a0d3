"""Opens a checkpoint of Google's BERT code: TensorFlow 1, variables by name.

A training run of that code also saves its optimizer's slots (two thirds of the published file), the
step, and BERT's next-sentence head. They are told from the model's own variables by their names,
counted, and left out. Whatever else the table of names does not know is named in a note, and a name
map places it: no listing of Google's RemBERT variables is public, so ours is a guess in its head.
"""

import collections
import functools
import os
import re

from rembert_tf.checkpoints import layouts, names
from rembert_tf.checkpoints.name_map import read_name_map
from rembert_tf.checkpoints.stored_weights import StoredTensor, StoredWeights
from rembert_tf.checkpoints.tensorflow_checkpoint import OBJECT_GRAPH, CheckpointReader

_STEP = "global_step"
_NEXT_SENTENCE = "cls/seq_relationship/"
# A part of the name that only optimizers give: `.../kernel/adam_m`, `.../kernel/LAMB_1`, `beta1_power`.
_OPTIMIZER = re.compile(
    r"(^|/)(\w*adam\w*|lamb(_\w+)?|momentum|adafactor\w*|\w*optimizer\w*|[mv]|beta[12]_power)(/|$)",
    re.IGNORECASE,
)


def open_google_tf1(
    prefix: str | os.PathLike, name_map: str | os.PathLike | None = None
) -> StoredWeights:
    """Opens a checkpoint.

    Args:
        prefix: What the names of its files begin with (`.../rembert.ckpt`), its `.index` file, or a
            folder that holds one checkpoint or whose `checkpoint` file names the latest.
        name_map: A JSON file, `{"name in the checkpoint": "name we know", ...}`, for variables that
            are called otherwise than the table of names has it. A name we know is the path of one
            of our variables, Google's name of it, or Hugging Face's key. An entry comes before
            whatever the checkpoint's own names say.

    Returns:
        The weights; tensors are read when they are asked for.

    Raises:
        FileNotFoundError: If there is no such checkpoint, a part of it is missing, or there is no
            file `name_map`.
        ValueError: If the checkpoint is damaged or TensorFlow 2's, no variable in it is known, or
            `name_map` is wrong.
    """
    prefix = _find_prefix(os.fspath(prefix))
    shards = _find_shards(prefix)
    reader = CheckpointReader(prefix)
    shapes = reader.shapes
    if OBJECT_GRAPH in shapes:
        raise ValueError(
            f"{prefix}: a TensorFlow 2 checkpoint, which holds objects and no variables by name. "
            "One of Model Garden is read as `model_garden`, by rembert-convert too"
        )
    reader.check_size(shards)

    placed = {} if name_map is None else read_name_map(name_map, shapes)
    taken = {row.ours: name for name, row in placed.items()}
    tensors, unknown, notes, left_out = {}, [], [], collections.Counter()
    for name in sorted(shapes):
        row = placed.get(name) or _find_row(name)
        if row is None and _kind(name):
            left_out[_kind(name)] += 1
        elif row is None:
            unknown.append(name)
        elif taken.get(row.ours, name) != name:
            notes.append(
                f"left out: {name}, since the name map puts {taken[row.ours]} in its place"
            )
        else:
            transposed = row.google_tf1_transposed
            tensors[row.ours] = StoredTensor(
                key=name,
                shape=shapes[name][::-1] if transposed else shapes[name],
                read=functools.partial(reader.read, name, transposed),
            )
    if left_out:
        step = int(reader.read(_STEP)) if _STEP in left_out else None
        notes.append(_describe_left_out(left_out, step))
    if unknown:
        notes.append(_describe_unknown(unknown, shapes))
    if not tensors:
        raise ValueError(f"{prefix}: no variable of this architecture; {'; '.join(notes)}")
    return StoredWeights(prefix, tensors, {name: shapes[name] for name in unknown}, tuple(notes))


def _find_prefix(path):
    prefix = layouts.checkpoint_prefix(path)
    if prefix is not None:
        return prefix
    is_folder = os.path.isdir(path)
    folder = path if is_folder else os.path.dirname(path) or "."
    present = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [name.removesuffix(".index") for name in present if name.endswith(".index")]
    if is_folder and len(found) > 1:
        raise ValueError(
            f"{path}: more than one checkpoint, and no `checkpoint` file that names one of them. "
            f"Give the prefix of one of them: {', '.join(found[:8])}"
        )
    raise FileNotFoundError(
        f"{path}: no TensorFlow checkpoint. `prefix` is what the names of its files begin with, "
        "without .index and .data-00000-of-00001. "
        f"Found in {folder}: {', '.join(present[:8]) or 'nothing'}"
    )


def _find_shards(prefix):
    """Returns the data files of a checkpoint, none of them missing."""
    folder, name = os.path.split(prefix)
    pattern = re.compile(re.escape(name) + r"\.data-(\d{5})-of-(\d{5})")
    matches = [match for match in map(pattern.fullmatch, os.listdir(folder or ".")) if match]
    total = max((match[2] for match in matches), default="00001")
    wanted = [f"{prefix}.data-{number:05}-of-{total}" for number in range(int(total))]
    missing = [file for file in wanted if not os.path.exists(file)]
    if missing:
        raise FileNotFoundError(
            f"{prefix}.index: the checkpoint is not whole, since {', '.join(missing[:8])} "
            "is missing: download or copy it to the same folder"
        )
    return wanted


def _find_row(name):
    try:
        return names.by_google_tf1_name(name)
    except KeyError:
        return None


def _kind(name):
    """Returns what a variable is that no model of ours has, or None if its name does not tell."""
    if name == _STEP:
        return _STEP
    if _OPTIMIZER.search(name):
        return "optimizer slot"
    return "next-sentence variable" if name.startswith(_NEXT_SENTENCE) else None


def _describe_left_out(counts, step):
    parts = [
        f"{_STEP} {step:,}" if kind == _STEP else f"{count:,} {kind}{'s' * (count > 1)}"
        for kind, count in counts.items()
    ]
    return f"left out: {', '.join(parts)}"


def _describe_unknown(unknown, shapes):
    named = ", ".join(f"{name} {list(shapes[name])}" for name in unknown[:50])
    rest = f" and {len(unknown) - 50} more" if len(unknown) > 50 else ""
    return (
        f"NOT LOADED, since nothing of ours has these names: {named}{rest}. --name_map=FILE can "
        f'place them, a JSON file with {{"{unknown[0]}": "path of our variable"}}'
    )
