"""What has made each prediction file, noted beside it: the model, the settings and the files that were read."""

import hashlib
import json
import pathlib
from collections.abc import Iterable
from typing import Any

from rembert_tf import atomic_files
from rembert_tf.pipelines import xtreme

# What identifies one file that was read: its path below the data folder, its size and its hash.
Fingerprint = dict[str, str | int]


class PredictionRecord:
    """The file `.predictions.json` of a folder of predictions.

    Args:
        path: where it lies.
        made_by: the model and the settings, as JSON: what all files of this run have in common.
    """

    def __init__(self, path: pathlib.Path, made_by: dict[str, Any]):
        self._path = path
        self._made_by = made_by
        self._files = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def has(self, output: pathlib.Path, inputs: list[Fingerprint]) -> bool:
        """Tells whether a file is there; raises `ValueError` if anything else than `inputs` and this run made it."""
        if not output.is_file() or output.name not in self._files:
            return False
        before, now = self._files[output.name], self._entry(inputs)
        differing = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
        if differing:
            raise ValueError(
                f"{output} was made by another model or with other settings or data ({', '.join(differing)}): choose "
                "another `output_dir`, or leave out `resume`. Received: resume=True"
            )
        return True

    def add(self, output: pathlib.Path, inputs: list[Fingerprint]) -> None:
        """Notes a file that has been written."""
        self._files[output.name] = self._entry(inputs)
        atomic_files.write_json(self._path, self._files)

    def _entry(self, inputs: list[Fingerprint]) -> dict[str, Any]:
        return {**self._made_by, "inputs": inputs}


def files_read(task: xtreme.Task, files: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """Returns the files whose content counts: in retrieval, those in English and with gold pairs beside them, too."""
    if task.kind != "retrieval":
        return list(files)
    return [found for path in files for found in sorted(path.parent.glob(f"{path.stem}.*"))]


def fingerprints(paths: Iterable[pathlib.Path], data_dir: str) -> list[Fingerprint]:
    """Returns what identifies files of a data folder, which may itself move."""
    found = []
    for path in paths:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = path.relative_to(data_dir).as_posix()
        found.append({"path": name, "bytes": path.stat().st_size, "sha256": digest})
    return found
