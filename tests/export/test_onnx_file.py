"""ONNX gives the model's numbers, and what it cannot hold is refused before anything is done."""

import numpy as np
import pytest

from rembert_tf.export import onnx_file, sizes
from rembert_tf.models.sequence_classification import RemBertForSequenceClassification

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")


@pytest.fixture
def features():
    rng = np.random.default_rng(1)
    return {
        "input_ids": rng.integers(5, 300, (4, 20)).astype("int32"),
        "attention_mask": (np.arange(20) < np.array([[20], [7], [1], [13]])).astype("int32"),
        "token_type_ids": rng.integers(0, 2, (4, 20)).astype("int32"),
    }


def test_onnxruntime_gives_the_models_numbers_and_int8_is_smaller(models, features, tmp_path):
    model = models["classifier"]
    expected = model(features).numpy()
    files = {}
    for int8 in (False, True):
        files[int8] = tmp_path / "new" / f"{int8}.onnx"
        onnx_file.export_onnx(model, files[int8], int8=int8)
        session = onnxruntime.InferenceSession(files[int8])
        assert {x.name for x in session.get_inputs()} == set(features)
        (logits,) = session.run(["logits"], features)
        np.testing.assert_allclose(logits, expected, atol=0.5 if int8 else 1e-4)
        assert np.abs(expected).max() > 0.5
    assert {path.name for path in files[True].parent.iterdir()} == {"False.onnx", "True.onnx"}
    assert files[True].stat().st_size < files[False].stat().st_size


def test_what_onnx_cannot_hold_is_refused(models, tmp_path, monkeypatch):
    config = models["classifier"].config
    half = RemBertForSequenceClassification(config.replace(vocab_size=300), dtype="bfloat16")
    with pytest.raises(ValueError, match="Received: RemBertForSequenceClassification in bfloat16"):
        onnx_file.export_onnx(half, tmp_path / "a.onnx")
    monkeypatch.setattr(sizes, "LARGEST_PROTOBUF", 1_000_000)
    with pytest.raises(ValueError, match=r"holds at most 1\.00 MB.*Received: weights of 1\.3"):
        onnx_file.export_onnx(models["classifier"], tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())


def test_a_file_with_other_numbers_is_not_kept(models, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file, "TOLERANCE", 0.0)
    with pytest.raises(ValueError, match="must give the model's numbers to 0.0. Received: a diff"):
        onnx_file.export_onnx(models["tagger"], tmp_path / "a.onnx")
    assert not list(tmp_path.iterdir())
