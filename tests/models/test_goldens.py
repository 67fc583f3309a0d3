"""Committed numbers of models whose weights are no accident: they change only with the architecture."""

import json
import pathlib

import keras
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parent
GOLDENS = json.loads((FOLDER / "goldens.json").read_text())


def _assert_golden(name, found):
    assert found.keys() == GOLDENS[name].keys()
    for output, values in found.items():
        np.testing.assert_allclose(values, GOLDENS[name][output], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in GOLDENS if name.startswith("RemBert")])
def test_outputs(golden_models, name):
    cases = {f"{c.__name__}, {shape}": (c, shape) for c, shape in golden_models.CASES}
    assert [*cases, "losses around a step"] == list(GOLDENS)
    _assert_golden(name, golden_models.outputs_of_case(*cases[name]))


def test_losses_around_a_step_of_plain_fit(golden_models):
    before, after = golden_models.losses_around_a_step()
    _assert_golden("losses around a step", {"loss": [before, after]})
    assert after < before


def test_every_case_has_numbers_of_its_own():
    numbers = [json.dumps(values) for values in GOLDENS.values()]
    assert len(set(numbers)) == len(numbers)


def test_a_keras_file_of_an_earlier_release_loads(golden_models):
    """`tied_masked_lm.keras` was written by 0.1.0: `make_model(RemBertForMaskedLM, "tied").save(...)`."""
    model = keras.saving.load_model(FOLDER / "tied_masked_lm.keras")
    _assert_golden("RemBertForMaskedLM, tied", golden_models.outputs(model))
