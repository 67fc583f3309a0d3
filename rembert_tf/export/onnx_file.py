"""Export of `serving_default` as ONNX: float32, or with int8 weights.

tf2onnx turns the graph into ONNX; then onnxruntime has to give the model's own numbers, or no file is written. Protocol
Buffers, in which ONNX is written, hold 2 GiB: a larger model is refused before anything is done.
"""

import importlib
import os
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from rembert_tf.export import model_calls, sizes

OPSET = 17
TOLERANCE = 1e-4


def export_onnx(model: keras.Model, path: str | os.PathLike, *, int8: bool = False) -> None:
    """Writes `serving_default` of a model as an ONNX file, checked with onnxruntime.

    Args:
        model: any of our models, in float32.
        path: the file, replaced if it is there.
        int8: whether to write the weights of all products as int8 (`quantize_dynamic`): a quarter of their size, and
            other numbers, whose largest difference from the model's is logged.

    Raises:
        ImportError: tf2onnx, onnx or onnxruntime is missing.
        ValueError: the model is larger than ONNX can hold, or not float32; the file gives other numbers than the model.
    """
    check(model)
    tf2onnx, onnxruntime = _imported("tf2onnx"), _imported("onnxruntime")
    path = pathlib.Path(path)
    signature = model_calls.serving_default(model, 0)
    proto, _ = tf2onnx.convert.from_function(signature, signature.input_signature, opset=OPSET)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        made = os.path.join(folder, "float32.onnx")
        pathlib.Path(made).write_bytes(proto.SerializeToString())
        difference = _largest_difference(signature, model, onnxruntime.InferenceSession(made))
        if not difference <= TOLERANCE:
            raise ValueError(
                f"{path}: onnxruntime must give the model's numbers to {TOLERANCE}. "
                f"Received: a difference of {difference}"
            )
        if int8:
            _imported("onnxruntime.quantization").quantize_dynamic(made, made := f"{made}.int8")
            session = onnxruntime.InferenceSession(made)
            difference = _largest_difference(signature, model, session)
        os.replace(made, path)
    logging.info(
        "%s: %s, at most %.1e from the model's numbers",
        path, sizes.readable(path.stat().st_size), difference,
    )  # fmt: skip


def check(model: keras.Model) -> None:
    """Raises `ValueError` if ONNX cannot hold a model, and `ImportError` if a package for it is missing."""
    if not isinstance(model, model_calls.MODELS) or model.dtype_policy.name != "float32":
        raise ValueError(
            "`model` must be one of ours, in float32. "
            f"Received: {type(model).__name__} in {model.dtype_policy.name}"
        )
    size = sizes.weight_bytes(model)
    if size > sizes.LARGEST_PROTOBUF:
        raise ValueError(
            f"an ONNX file holds at most {sizes.readable(sizes.LARGEST_PROTOBUF)}: export fewer layers or a smaller "
            f"vocabulary, or the SavedModel alone. Received: weights of {sizes.readable(size)}"
        )
    for name in ("tf2onnx", "onnx", "onnxruntime"):
        _imported(name)


def _imported(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"ONNX needs {name.split('.')[0]}: pip install 'rembert_tf[onnx]'"
        ) from error


def _largest_difference(signature, model: keras.Model, session) -> float:
    """Returns how far onnxruntime is from the model, over rows of several lengths."""
    rng = np.random.default_rng(0)
    lengths = np.array([[12], [5], [1]])
    features = {
        "input_ids": rng.integers(0, model.config.vocab_size, (3, 12)),
        "attention_mask": np.arange(12) < lengths,
        "token_type_ids": rng.integers(0, model.config.type_vocab_size, (3, 12)),
        "masked_lm_positions": np.array([[0, 11], [3, 0], [0, 0]]),
    }
    names = [spec.name for spec in signature.input_signature]
    features = {name: features[name].astype(np.int32) for name in names}
    expected = signature(*(tf.constant(features[name]) for name in names))
    outputs = [output.name for output in session.get_outputs()]
    answer = dict(zip(outputs, session.run(outputs, features), strict=True))
    return max(float(np.abs(answer[name] - expected[name]).max()) for name in expected)
