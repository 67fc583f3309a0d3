"""Says what kind of files lie at a path."""

import os

import tensorflow as tf

from rembert_tf.checkpoints.hugging_face_folder import WEIGHT_FILES
from rembert_tf.checkpoints.tensorflow_checkpoint import OBJECT_GRAPH, CheckpointReader

HUGGING_FACE = "hugging_face"
GOOGLE_TF1 = "google_tf1"
MODEL_GARDEN = "model_garden"

# What each layout is called in messages, and how its weights get into a folder of ours.
_DESCRIPTION = {
    HUGGING_FACE: "a model folder (config.json and weights)",
    GOOGLE_TF1: "a TensorFlow 1 checkpoint of Google's BERT code",
    MODEL_GARDEN: "a TensorFlow 2 checkpoint of Model Garden",
    "run": "the checkpoints of a training run",
    "saved_model": "a SavedModel",
    "keras": "a file of Keras 3",
    "weights": "weights without their config.json",
}
_NEXT_STEP = {
    GOOGLE_TF1: "rembert-convert --input={path} --output=FOLDER makes a model folder of it",
    MODEL_GARDEN: "rembert-convert --input={path} --output=FOLDER makes a model folder of it",
    "run": "the trained model is in <model_dir>/model",
    "saved_model": "it answers, but gives no weights back: take the folder it was exported from",
    "keras": "load it with keras.saving.load_model (.keras) or model.load_weights (.weights.h5), "
    "then model.save_pretrained(FOLDER)",
    "weights": "put the config.json of that model beside them",
}


def find_layout(path: str | os.PathLike) -> str | None:
    """Returns the name of the layout that lies at a path, or None.

    Args:
        path: A folder, a file, or the prefix of a TensorFlow checkpoint.

    Returns:
        "hugging_face", "google_tf1", "model_garden"; or "run", "saved_model", "keras", "weights",
        from which no model can be loaded; or None if it is nothing we know.

    Raises:
        ValueError: If the index of a TensorFlow checkpoint is damaged.
    """
    path = os.fspath(path)
    names = set(os.listdir(path)) if os.path.isdir(path) else {os.path.basename(path)}
    if names & set(WEIGHT_FILES):
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        has_config = os.path.exists(os.path.join(folder, "config.json"))
        return HUGGING_FACE if has_config else "weights"
    if "saved_model.pb" in names:
        return "saved_model"
    if any(name.endswith((".keras", ".weights.h5")) for name in names):
        return "keras"
    prefix = checkpoint_prefix(path)
    if prefix is None:
        return None
    keys = CheckpointReader(prefix).shapes
    if OBJECT_GRAPH not in keys:
        return GOOGLE_TF1
    return "run" if any(key.startswith("tokens_seen/") for key in keys) else MODEL_GARDEN


def checkpoint_prefix(path: str | os.PathLike) -> str | None:
    """Returns the prefix of the TensorFlow checkpoint at a path, or None if there is none.

    Args:
        path: The prefix, its `.index` file, or a folder that holds one checkpoint, or whose
            `checkpoint` file names the latest.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        state = tf.train.get_checkpoint_state(path)
        indices = sorted(name for name in os.listdir(path) if name.endswith(".index"))
        # Old state files hold absolute paths: the folder may have been moved since.
        latest = os.path.basename(state.model_checkpoint_path) if state else None
        if f"{latest}.index" not in indices:
            if len(indices) != 1:
                return None
            latest = indices[0].removesuffix(".index")
        return os.path.join(path, latest)
    prefix = path.removesuffix(".index")
    return prefix if os.path.exists(f"{prefix}.index") else None


def describe(path: str | os.PathLike) -> str:
    """Returns what lies at a path and what to do with it, for messages."""
    layout = find_layout(path)
    if layout is None:
        return _describe_unknown(os.fspath(path))
    step = _NEXT_STEP.get(layout, "").format(path=os.fspath(path))
    return _DESCRIPTION[layout] + (f": {step}" if step else "")


def _describe_unknown(path):
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    prefixes = [name.removesuffix(".index") for name in names if name.endswith(".index")]
    if len(prefixes) > 1:
        return f"a folder of several checkpoints: give the prefix of one of them: {', '.join(prefixes[:8])}"
    found = f" (it holds {', '.join(names[:8]) or 'nothing'})" if os.path.isdir(path) else ""
    return (
        f"no layout that is known here{found}. Known are a folder with config.json and one of "
        f"{', '.join(WEIGHT_FILES)}, and the prefix of a TensorFlow checkpoint"
    )
