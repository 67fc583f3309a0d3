"""A name map: a user's JSON file that says which variable of ours a tensor of a checkpoint is."""

import difflib
import os
import re
from collections.abc import Collection

from rembert_tf.checkpoints import names
from rembert_tf.config import read_json_object

_LOOK_UPS = (names.by_variable_path, names.by_google_tf1_name, names.by_hugging_face_key)
_LAYER = re.compile(r"(?<=layer[_.])\d+")


def read_name_map(path: str | os.PathLike, stored: Collection[str]) -> dict[str, names.TensorNames]:
    """Reads a name map, `{"name in the checkpoint": "name we know", ...}`.

    Args:
        path: The file.
        stored: The names in the checkpoint.

    Returns:
        The rows of the table of names, by the checkpoint's names.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no JSON object, or an entry names nothing in the checkpoint, nothing
            that we know, or what another entry already named.
    """
    path = os.fspath(path)
    rows, sources = {}, {}
    for source, target in read_json_object(path).items():
        entry = f"{path}: {source!r}: {target!r}"
        if source not in stored:
            hint = _did_you_mean(source, stored)
            raise ValueError(f"{entry}: the checkpoint has no variable {source!r}.{hint}")
        row = _find_row(target)
        if row is None:
            raise ValueError(
                f"{entry}: {target!r} is no path of a variable of ours, no name of Google's and no "
                f"key of Hugging Face's.{_did_you_mean(str(target), _known_names(str(target)))}"
            )
        if row.ours in sources:
            raise ValueError(f"{entry}: {sources[row.ours]!r} is already placed there")
        rows[source], sources[row.ours] = row, source
    return rows


def _find_row(target):
    for look_up in _LOOK_UPS if isinstance(target, str) and "#" not in target else ():
        try:
            return look_up(target)
        except KeyError:
            continue
    return None


def _known_names(target):
    """Returns all names of the table, for the layer that `target` speaks of."""
    layer = _LAYER.search(target)
    number = layer.group() if layer else "0"
    known = [name for row in names.TABLE for name in (row.ours, row.google_tf1, row.hugging_face)]
    return [name.replace("#", number) for name in known]


def _did_you_mean(name, candidates):
    close = difflib.get_close_matches(name, candidates, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
