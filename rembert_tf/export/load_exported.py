"""Loads an export and asks it from Python: lists and strings in, NumPy arrays and strings out.

Needs nothing of the model's own code: what is loaded is the SavedModel.
"""

import os
import pathlib
from itertools import chain

import numpy as np
import tensorflow as tf

from rembert_tf.config import RemBertConfig

# Lists of words are filled up to the longest: one long list among many short ones would take any room.
MOST_WORDS = 1 << 22


class LoadedExport:
    """An exported model.

    Args:
        folder: one version's folder, `.../text/1` or `.../ids/1`.

    Attributes:
        folder: where it lies.
        config: the model's configuration; `config.id2label` are the labels.
        signatures: names of what can be asked.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._module = tf.saved_model.load(str(folder))  # keeps the variables alive
        self.signatures = tuple(sorted(self._module.signatures))
        self.config = RemBertConfig.from_json_file(folder / "assets" / "config.json")

    def __call__(self, signature: str = "serve_text", **inputs) -> dict[str, np.ndarray]:
        """Asks.

        Args:
            signature: one of `signatures`.
            **inputs: the signature's inputs, such as `text=["..."]`; lists of words may differ in length.

        Returns:
            Outputs by name; strings are Python's, in arrays of objects.

        Raises:
            ValueError: there is no such signature, or it takes other inputs; lists of words, filled up to the longest,
                would hold more than `MOST_WORDS`.
        """
        specs = self.inputs(signature)
        if set(inputs) != set(specs):
            raise ValueError(
                f"{signature} takes {', '.join(specs)}. Received: {', '.join(inputs) or 'nothing'}"
            )
        tensors = {
            name: tf.convert_to_tensor(_encoded(value, specs[name].shape.rank), specs[name].dtype)
            for name, value in inputs.items()
        }
        answer = self._module.signatures[signature](**tensors)
        return {name: _decoded(value.numpy()) for name, value in answer.items()}

    def inputs(self, signature: str) -> dict[str, tf.TensorSpec]:
        """Returns what a signature takes, by name.

        Raises:
            ValueError: there is no such signature.
        """
        if signature not in self.signatures:
            raise ValueError(
                f"`signature` must be one of {', '.join(self.signatures)}. Received: signature={signature!r}"
            )
        return self._module.signatures[signature].structured_input_signature[1]


def load_exported(path: str | os.PathLike) -> LoadedExport:
    """Loads an export.

    Args:
        path: what `rembert-export` was given as `--output_dir`, `text/` or `ids/` below it, or one version's folder
            there. Above, `text/` and the highest version are taken.

    Returns:
        The model, ready to be asked.

    Raises:
        FileNotFoundError: there is no SavedModel.
        ImportError: it takes strings, and tensorflow_text cannot be imported.

    Example:
        >>> served = load_exported(exported_folder)
        >>> served(text=["The old house"])["truncated"]
        array([False])
    """
    folder = _version(pathlib.Path(path))
    if b"Sentencepiece" in (folder / "saved_model.pb").read_bytes():
        try:
            import tensorflow_text  # noqa: F401
        except ImportError as error:
            minor = ".".join(tf.__version__.split(".")[:2])
            raise ImportError(
                f"{folder} takes strings: `import tensorflow_text` before loading it "
                f"(pip install 'tensorflow-text=={minor}.*'), or load the folder ids/, which needs TensorFlow alone."
            ) from error
    return LoadedExport(folder)


def _version(path: pathlib.Path) -> pathlib.Path:
    """Returns the folder of the highest version."""
    if (path / "saved_model.pb").is_file():
        return path
    folder = path / "text" if (path / "text").is_dir() else path
    versions = [
        int(p.parent.name) for p in folder.glob("*/saved_model.pb") if p.parent.name.isdigit()
    ]
    if not versions:
        raise FileNotFoundError(
            f"`path` must be an exported folder. Received: no SavedModel in {path}"
        )
    return folder / str(max(versions))


def _encoded(value, rank: int):
    """Returns strings as bytes, and lists of words of different lengths filled up with ""; numbers as they are.

    Nothing at all, which a list says with one axis, gets the axes that are asked for.

    TensorFlow takes no lone surrogates, which are read as question marks. NumPy's own strings would all take as much
    room as the longest, and lose NUL bytes at their end: hence arrays of objects.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS":
        return value
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        value = _filled_up(value)
    array = value if isinstance(value, np.ndarray) else np.array(value, object)
    flat = array.ravel().tolist()
    if not flat and array.ndim < rank:
        return array.reshape([0] * rank)
    if flat and not any(isinstance(item, str | bytes) for item in flat):
        return value
    if not all(isinstance(item, str | bytes) for item in flat):
        raise ValueError(f"strings must not stand beside other values. Received: {value!r:.100}")
    flat = [x.encode(errors="replace") if isinstance(x, str) else x for x in flat]
    return np.array(flat, object).reshape(array.shape)


def _filled_up(rows: list[list]) -> list[list]:
    width = max(map(len, rows))
    if all(len(row) == width for row in rows) or not isinstance(
        next(chain.from_iterable(rows)), str | bytes
    ):
        return rows
    if len(rows) * width > MOST_WORDS:
        raise ValueError(
            f"lists of words, filled up to the longest, may hold {MOST_WORDS:,} words: ask in several requests. "
            f"Received: {len(rows):,} lists, the longest of {width:,}"
        )
    return [row + [""] * (width - len(row)) for row in rows]


def _decoded(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "O":
        return array
    flat = [x.decode(errors="replace") for x in array.ravel()]
    return np.array(flat, object).reshape(array.shape)
