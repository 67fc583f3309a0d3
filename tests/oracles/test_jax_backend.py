"""Layers, models and folders on Keras' JAX backend, in a process of its own, against the committed numbers."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.oracle
pytest.importorskip("jax")

MODELS = pathlib.Path(__file__).parent.parent / "models"
GOLDENS = json.loads((MODELS / "goldens.json").read_text())
SCRIPT = """
import json, pathlib, runpy, sys, tempfile
import keras
from rembert_tf.checkpoints.folder import load_pretrained

folder = pathlib.Path(sys.argv[1])
golden = runpy.run_path(folder / "golden_models.py")
loaded = keras.saving.load_model(folder / "tied_masked_lm.keras")
numbers = golden["all_numbers"]() | {"file": golden["outputs"](loaded)}

with tempfile.TemporaryDirectory() as saved:
    masked_lm = golden["make_model"](golden["RemBertForMaskedLM"], "tied, one width")
    masked_lm.save_pretrained(saved + "/model", dtype="float32")
    again, report = load_pretrained(saved + "/model", type(masked_lm), strict=True)
    numbers["folder"] = golden["outputs"](again)
    encoder, _ = load_pretrained(saved + "/model", dtype="bfloat16")
    assert encoder.pooler.kernel.dtype == "bfloat16" and encoder.newly_made == (
        "rembert/pooler/kernel", "rembert/pooler/bias")
assert "tensorflow" not in sys.modules

keras.utils.set_random_seed(1)
tagger = golden["make_model"](golden["RemBertForTokenClassification"], "dropout")
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
tagger.compile(keras.optimizers.AdamW(1e-2), loss)
features = golden["FEATURES"]
losses = tagger.fit(features, features["input_ids"] % 3, epochs=5, verbose=0).history["loss"]
print(json.dumps({"backend": keras.backend.backend(), "numbers": numbers, "losses": losses}))
"""


@pytest.fixture(scope="module")
def on_jax():
    """What the golden models compute, and a few steps of `fit`, where Keras runs on JAX."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, MODELS],
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def _assert_golden(found, name):
    assert found.keys() == GOLDENS[name].keys()
    for output, values in found.items():
        np.testing.assert_allclose(values, GOLDENS[name][output], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", GOLDENS)
def test_numbers_are_those_of_tensorflow(on_jax, name):
    assert on_jax["backend"] == "jax"
    _assert_golden(on_jax["numbers"][name], name)


def test_a_file_written_by_tensorflow_loads(on_jax):
    _assert_golden(on_jax["numbers"]["file"], "RemBertForMaskedLM, tied")


def test_a_folder_is_written_and_loaded(on_jax):
    _assert_golden(on_jax["numbers"]["folder"], "RemBertForMaskedLM, tied, one width")


def test_a_step_of_plain_fit_lowers_the_loss(on_jax):
    before, after = on_jax["numbers"]["losses around a step"]["loss"]
    assert after < before - 0.1


def test_plain_fit_draws_its_own_dropout_keys(on_jax):
    losses = on_jax["losses"]
    assert np.all(np.isfinite(losses)) and losses[-1] < 0.7 * losses[0]
