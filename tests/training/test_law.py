"""The law as a table: the same data give the same weights, however a batch is shared out.

Twenty steps of a small masked LM on batches of 4, 4 and 1 rows, with uneven mask counts and repeated ids, on one device
and in three other ways, with every combination of settings. `python tests/training/test_law.py` prints the table in
Markdown, in about five minutes on two cores.
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import pytest

RUN_WORKERS = pathlib.Path(__file__).parent / "run_workers.py"
SETTINGS = {
    "optimizer": ("adamw", "lamb"),
    "dtype": ("float32", "mixed_bfloat16"),
    "tied": (False, True),
    "dropout": (0.0, 0.1),
    "remat": (False, True),
}
ONE_DEVICE = {"workers": 1}
WAYS = {
    "2 replicas": {"workers": 1, "replicas": 2},
    "2 micro-batches": {"workers": 1, "gradient_accumulation_steps": 2},
    "2 workers": {"workers": 2},
}
# Six rows in which any two columns show all four combinations: of the settings, and of the first two ways.
PAIRWISE = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1],
        [0, 1, 1, 1, 0, 0],
        [1, 0, 1, 1, 0, 1],
        [1, 1, 0, 1, 1, 0],
        [1, 1, 1, 0, 1, 1],
    ]
)
# The largest difference of a weight, where float32 computes.
FLOAT32_TOLERANCE = 1e-5
# The length of the difference beside that of the way the weights went, where bfloat16 computes. It keeps 8 bits, so a
# rounding is off by up to 2**-8 (0.4 %), and of a batch that is cut in two each half is rounded on its own.
BFLOAT16_TOLERANCE = 4 * 2**-8


def every_cell():
    """The settings of each cell by its number, whose bits are the choices."""
    choices = itertools.product(*SETTINGS.values())
    return {
        number: dict(zip(SETTINGS, values, strict=True)) for number, values in enumerate(choices)
    }


def train(groups, folder):
    """Trains cells, given by number, in some ways; the ways of a group run side by side.

    Returns:
        For each way, the numbers of each worker: arrays by `<number of the cell>/<what>`.
    """
    jobs = [
        [{**way, "cells": cells, "law": f"{folder}/{name}"} for name, (way, cells) in group.items()]
        for group in groups
    ]
    result = subprocess.run(
        [sys.executable, RUN_WORKERS, json.dumps(jobs)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    for workers in itertools.chain.from_iterable(json.loads(result.stdout)):
        for status, log, _ in workers:
            assert status == 0, log
    return {
        name: [dict(np.load(f"{folder}/{name}-{worker}.npz")) for worker in range(way["workers"])]
        for group in groups
        for name, (way, _) in group.items()
    }


def weights(numbers, number, what="end"):
    prefix = f"{number}/{what}/"
    found = {name.removeprefix(prefix): x for name, x in numbers.items() if name.startswith(prefix)}
    assert len(found) > 20
    return found


def largest(a, b):
    """The largest difference between two sets of weights."""
    assert a.keys() == b.keys()
    return max(float(np.abs(b[name] - value).max()) for name, value in a.items())


def relative(a, b, start):
    """The length of the difference, over the length of the way from the start to the first set."""
    apart, moved = (
        np.sqrt(sum(np.sum((x[name] - value) ** 2) for name, value in a.items()))
        for x in (b, start)
    )
    return float(apart / moved)


def assert_law(one, other, number, cell):
    a, b, start = weights(one, number), weights(other, number), weights(one, number, "start")
    assert largest(a, start) > 0.05, cell  # something was trained
    assert relative(a, b, start) <= BFLOAT16_TOLERANCE, cell
    if cell["dtype"] == "float32":
        assert largest(a, b) <= FLOAT32_TOLERANCE, cell
    rtol = 1e-5 if cell["dtype"] == "float32" else 1e-3
    np.testing.assert_allclose(one[f"{number}/loss"], other[f"{number}/loss"], rtol=rtol)


def pairwise():
    """Pairs of the number of a cell and the name of a way."""
    for *choices, way in PAIRWISE:
        yield int("".join(map(str, choices)), base=2), list(WAYS)[way]


def train_pairwise(folder):
    cells = every_cell()
    group = {"one": (ONE_DEVICE, {number: cells[number] for number, _ in pairwise()})}
    for number, name in pairwise():
        group.setdefault(name, (WAYS[name], {}))[1][number] = cells[number]
    return train([group], folder)


def train_every_cell(folder):
    cells = every_cell()
    in_one_process = {name: way for name, way in WAYS.items() if way["workers"] == 1}
    return train(
        [
            {"one": (ONE_DEVICE, cells), **{n: (way, cells) for n, way in in_one_process.items()}},
            {"2 workers": (WAYS["2 workers"], cells)},
        ],
        folder,
    )


def table(trained):
    """Markdown: the largest difference to the weights of one device; for bfloat16 also the relative one."""
    lines = [
        "| " + " | ".join([*SETTINGS, *WAYS]) + " |",
        "| " + " | ".join(["---"] * len(SETTINGS) + ["---:"] * len(WAYS)) + " |",
    ]
    for number, cell in every_cell().items():
        one = trained["one"][0]
        a, start = weights(one, number), weights(one, number, "start")
        row = [str(value) for value in cell.values()]
        for name in WAYS:
            b = weights(trained[name][0], number)
            text = f"{largest(a, b):.1e}"
            if cell["dtype"] != "float32":
                text += f" ({100 * relative(a, b, start):.2f} %)"
            row.append(text)
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def trained(request, tmp_path_factory):
    """Every cell, if the test of all of them is among those that run; else the pairwise ones alone."""
    here = [item for item in request.session.items if item.path == request.path]
    every = any(item.get_closest_marker("slow") for item in here)
    return (train_every_cell if every else train_pairwise)(tmp_path_factory.mktemp("law"))


def test_each_pair_of_settings_keeps_the_law(trained):
    for columns in itertools.combinations(PAIRWISE.T, 2):
        assert len(set(zip(*columns, strict=True))) == 4
    for number, name in pairwise():
        assert_law(trained["one"][0], trained[name][0], number, every_cell()[number])


@pytest.mark.slow
def test_every_cell_of_the_table_keeps_the_law(trained):
    print(table(trained))
    cells = every_cell()
    assert len(cells) == 32
    for name in WAYS:
        for numbers in trained[name]:
            for number, cell in cells.items():
                assert_law(trained["one"][0], numbers, number, cell)
    # Rematerialisation (the last setting) changes nothing; dropout (the one before) does, far more than is tolerated.
    one = trained["one"][0]
    for number, cell in cells.items():
        if cell["remat"] and cell["dtype"] == "float32":
            assert largest(weights(one, number - 1), weights(one, number)) <= FLOAT32_TOLERANCE
        if cell["dropout"]:
            a, b = weights(one, number - 2), weights(one, number)
            assert relative(a, b, weights(one, number, "start")) > 10 * BFLOAT16_TOLERANCE


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(table(train_every_cell(folder)))
