"""Which file of a Hugging Face folder holds the weights, and who opens it."""

import importlib.util
import os

from rembert_tf.checkpoints.stored_weights import StoredWeights

# The files that hold the weights, or list the files that do, the preferred first; and the pattern
# of those others.
WEIGHT_FILES = {
    "model.safetensors": (),
    "model.safetensors.index.json": ("model-*.safetensors",),
    "pytorch_model.bin": (),
    "pytorch_model.bin.index.json": ("pytorch_model-*.bin",),
    "tf_model.h5": (),
    "tf_model.h5.index.json": ("tf_model-*.h5",),
}
_LFS_POINTER = b"version https://git-lfs"


def open_hugging_face_folder(folder: str | os.PathLike) -> StoredWeights:
    """Opens the weights in a folder of Hugging Face's form.

    Args:
        folder: The folder; of several weight files in it, the first in `WEIGHT_FILES` is taken,
            PyTorch's only if torch is installed or there are no others.

    Raises:
        FileNotFoundError: If there is no such folder, or it holds no weights.
        ImportError: If it holds only PyTorch's files, and torch is not installed.
        ValueError: If the weights are damaged.
    """
    folder = os.fspath(folder)
    present = sorted(os.listdir(folder))
    usable = [name for name in WEIGHT_FILES if name in present]
    if importlib.util.find_spec("torch") is None:  # PyTorch's files last: they cannot be read
        usable.sort(key=lambda name: name.startswith("pytorch_model"))
    name = next(iter(usable), None)
    if name is None:
        wanted, *others = WEIGHT_FILES
        raise FileNotFoundError(
            f"{folder}: no {wanted}, nor {', '.join(others)}. "
            f"Found: {', '.join(present) or 'an empty folder'}"
        )
    path = os.path.join(folder, name)
    with open(path, "rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise ValueError(
                f"{path}: only a pointer to the weights, as git leaves it without Git LFS: "
                "run `git lfs pull` in the folder"
            )
    # Imported where needed: a download needs neither Keras nor what the files are read with.
    if name.startswith("pytorch_model"):
        from rembert_tf.checkpoints import pytorch_file

        return pytorch_file.open_pytorch(path)
    from rembert_tf.checkpoints import safetensors_file, tensorflow_file

    if name.startswith("tf_model"):
        return tensorflow_file.open_tensorflow_h5(path)
    if tensorflow_file.is_tensorflow_safetensors(path):
        return tensorflow_file.open_tensorflow_safetensors(path)
    return safetensors_file.open_safetensors(path)
