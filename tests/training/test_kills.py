"""SIGKILL at random moments: however often a run is killed, it ends as the unbroken one."""

import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from rembert_tf.training.run_folder import read_metrics

RUN_PROCESSES = pathlib.Path(__file__).parent / "run_processes.py"
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "input_embedding_size": 8, "output_embedding_size": 24, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip
STEPS, CHECKPOINT_EVERY = 40, 2
DEVICES = {"one_device": [], "mirrored": ["--distribution=mirrored", "--cpu_replicas=2"]}
KILLS = {"one_device": 14, "mirrored": 6}


def kill(chooser, number, kills):
    """A step in the number-th part of the run; every other kill comes some time after its begin.

    A step and its checkpoint take a few hundredths of a second, so that the delayed ones fall into steps, into
    checkpoints being written, and between the two.
    """
    part = (STEPS - CHECKPOINT_EVERY) // kills
    step = 1 + CHECKPOINT_EVERY + number * part + chooser.randrange(part)
    return [step, chooser.choice([0, chooser.uniform(0.001, 0.03)]), "SIGKILL"]


@pytest.fixture(scope="module", params=DEVICES)
def runs(request, records_folder, vocabulary_file, tmp_path_factory):
    """The unbroken run, and one that is killed again and again: exit statuses, and their two folders."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "config.json").write_text(json.dumps(SHAPE))
    flags = [
        f"--records_dir={records_folder}", f"--tokenizer={vocabulary_file}", "--languages=en,zh",
        f"--model_config={folder / 'config.json'}", f"--steps={STEPS}", "--batch_size=8",
        "--max_seq_length=24", "--shuffle_buffer=64", "--learning_rate=2e-2", "--log_every=1",
        f"--checkpoint_every={CHECKPOINT_EVERY}", "--evaluation_sequences=0",
        *DEVICES[request.param],
    ]  # fmt: skip
    chooser = random.Random(request.param)
    kills = KILLS[request.param]
    jobs = [
        {"binary": "pretrain", "flags": [*flags, f"--model_dir={folder / name}", "--resume"],
         "signals": signals}
        for name, signals in [
            ("unbroken", []),
            *(("killed", [kill(chooser, number, kills)]) for number in range(kills)),
            ("killed", []),
        ]
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, RUN_PROCESSES, json.dumps(jobs)], capture_output=True, text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1"},  # warnings, too
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), folder / "unbroken", folder / "killed"


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_the_unbroken_one(runs):
    processes, unbroken, killed = runs
    (first, log), *broken, (last, _) = processes
    assert first == 0, log
    assert (
        "auto_shard" not in log and "AutoShard" not in log
    )  # case C14: a warning that means nothing
    assert [status for status, _ in broken] == [-9] * len(broken), broken
    assert last == 0, processes[-1][1]
    expected, got = (
        safetensors.numpy.load_file(folder / "model/model.safetensors")
        for folder in (unbroken, killed)
    )
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    expected, got = (
        [(line["step"], line["loss"], line["learning_rate"]) for line in read_metrics(folder)]
        for folder in (unbroken, killed)
    )
    assert got == expected and [step for step, *_ in got] == list(range(1, STEPS + 1))


@pytest.mark.slow
def test_no_kill_costs_more_than_the_steps_since_the_last_checkpoint(runs):
    processes, _, killed = runs
    for (_, before), (_, after) in itertools.pairwise(processes[1:]):
        assert "resuming at step" in after, (before, after)
        # A line of log is written before the checkpoint of its step.
        assert steps(before)[-1] - CHECKPOINT_EVERY <= steps(after)[0] <= steps(before)[-1]
    assert not list((killed / "checkpoints").glob("*_temp*"))


def steps(log):
    """The step at which a process began, and those of its lines of progress: none if it was killed at once."""
    resumed = re.search(r"resuming at step (\d+)", log)
    lines = re.findall(rf"step (\d+)/{STEPS}  loss", log)
    return [int(resumed[1]) if resumed else 0, *map(int, lines)]
