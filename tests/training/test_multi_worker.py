"""Two real worker processes on 127.0.0.1 give the weights of one device, stop together and go on together."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from rembert_tf.training.run_folder import read_metrics

pytestmark = pytest.mark.slow

RUN_WORKERS = pathlib.Path(__file__).parent / "run_workers.py"
STEPS, STOP, STOP_AGAIN = 12, 7, 9  # neither a checkpoint nor an evaluation is due at 7 and 9
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "input_embedding_size": 8, "output_embedding_size": 24, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip


def run_workers(jobs):
    """Returns, for each job by name, [exit status, standard error, seconds] of each worker."""
    result = subprocess.run(
        [sys.executable, RUN_WORKERS, json.dumps(list(jobs.values()))],
        capture_output=True, text=True, timeout=900,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},  # TensorFlow's C++ is not what is looked at
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return dict(zip(jobs, json.loads(result.stdout), strict=True))


# A user's own `fit`


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    jobs = {
        "one": {"workers": 1, "train": str(folder / "one")},
        "two": {"workers": 2, "train": str(folder / "two"), "gradient_accumulation_steps": 2},
    }
    results = run_workers(jobs)
    for workers in results.values():
        for status, log, _ in workers:
            assert status == 0, log
    names = {"one": "one-0", "first": "two-0", "second": "two-1"}
    return {name: dict(np.load(folder / f"{file}.npz")) for name, file in names.items()}


@pytest.mark.parametrize("worker", ["first", "second"])
def test_two_workers_give_weights_history_and_counters_of_one_device(trained, worker):
    """Dropout, uneven mask counts and batches of one row included; here in two micro-batches a worker."""
    one, two = trained["one"], trained[worker]
    assert one.keys() == two.keys()
    assert len([name for name in one if name.startswith("weights/")]) > 10
    for name, value in one.items():
        if name.startswith("weights/"):
            np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_allclose(two[name], value, rtol=1e-4, err_msg=name)
    assert {"history/loss", "history/val_loss", "history/val_masked_lm_accuracy"} <= one.keys()
    assert one["batch_number"] == 12 and one["tokens_seen"] == 4 * (9 * 12 - 6)


def test_both_workers_stop_when_one_is_asked(trained):
    for numbers in trained.values():
        assert not numbers["stop_requested"] and numbers["stop_requested_at_last"]


# The binary


@pytest.fixture(scope="module")
def runs(records_folder, vocabulary_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    (folder / "config.json").write_text(json.dumps(SHAPE))
    flags = [
        f"--records_dir={records_folder}", f"--tokenizer={vocabulary_file}", "--languages=en,zh",
        f"--model_config={folder / 'config.json'}", f"--steps={STEPS}", "--batch_size=7",
        "--max_seq_length=24", "--shuffle_buffer=64", "--learning_rate=2e-2", "--log_every=5",
        "--checkpoint_every=5", "--evaluate_every=10", "--evaluation_sequences=4", "--deterministic",
    ]  # fmt: skip

    def job(name, *more, workers=2, signals=None):
        distribution = "multi_worker" if workers > 1 else "one_device"
        more = [f"--model_dir={folder / name}", f"--distribution={distribution}", *more]
        return {"binary": "pretrain", "workers": workers, "flags": [*flags, *more],
                "signals": signals or {}}  # fmt: skip

    jobs = {
        "one": job("one", workers=1),
        "unbroken": job("unbroken"),
        "stopped": job("two", signals={"1": [[STOP, 0, "SIGTERM"]]}),
        "stopped_again": job("two", "--resume", signals={"0": [[STOP_AGAIN, 0, "SIGTERM"]]}),
        "resumed": job("two", "--resume"),
        "diverging": job("diverging", "--learning_rate=1e30", "--checkpoint_every=1"),
        "too_many": job("too_many", "--batch_size=1"),
        "killed": job("killed", signals={"1": [[STOP, 0, "SIGKILL"]]}),
        "chief_killed": job("chief_killed", signals={"0": [[STOP, 0, "SIGKILL"]]}),
    }
    return run_workers(jobs), folder


def lines(folder, kind):
    return {line["step"]: line for line in read_metrics(folder) if line["kind"] == kind}


@pytest.mark.parametrize("name, step", [("stopped", STOP), ("stopped_again", STOP_AGAIN)])
def test_a_signal_to_any_one_worker_ends_all_after_the_same_step(runs, name, step):
    """The first time the other worker gets it, the second time the chief."""
    results, folder = runs
    for status, log, _ in results[name]:
        assert status == 75, log
        last = log.strip().splitlines()[-1]
        assert f"stopped by a signal after step {step}, which is saved" in last
        assert f"{folder}/two/checkpoints/ckpt-{step}" in last
        assert f"--flagfile={folder}/two/flags.txt --resume" in last


def weights(folder):
    return safetensors.numpy.load_file(folder / "model/model.safetensors")


def test_two_workers_resumed_end_bit_for_bit_as_two_that_nothing_stopped(runs):
    results, folder = runs
    for status, log, _ in [*results["unbroken"], *results["resumed"]]:
        assert status == 0, log
    unbroken, two = weights(folder / "unbroken"), weights(folder / "two")
    assert unbroken.keys() == two.keys()
    for name, value in unbroken.items():
        np.testing.assert_array_equal(two[name], value, err_msg=name)
    for kind in ("train", "heldout"):
        expected, got = lines(folder / "unbroken", kind), lines(folder / "two", kind)
        assert got.keys() == expected.keys()
        for step, line in expected.items():
            # The sums of two replicas come back as equal shares: the same means, up to their rounding.
            assert got[step]["loss"] == pytest.approx(line["loss"], rel=1e-6)


def test_two_workers_end_as_one_device(runs):
    results, folder = runs
    for status, log, _ in results["one"]:
        assert status == 0, log
    two = weights(folder / "two")
    for name, value in weights(folder / "one").items():
        np.testing.assert_allclose(two[name], value, rtol=0, atol=1e-5, err_msg=name)
    for kind, names in (("train", ["loss", "gradient_norm"]), ("heldout", ["loss"])):
        for step, line in lines(folder / "one", kind).items():
            for name in names:
                assert lines(folder / "two", kind)[step][name] == pytest.approx(
                    line[name], rel=1e-4
                )
    assert sorted(lines(folder / "two", "train")) == [5, 10, STEPS]
    assert sorted(lines(folder / "two", "heldout")) == [0, 10, STEPS]


def test_more_workers_than_rows_are_refused_before_the_run(runs):
    results, folder = runs
    for status, log, _ in results["too_many"]:
        assert status == 1, log
        assert "`workers` must not exceed the rows of a batch, 1" in log.strip().splitlines()[-1]
    assert not (folder / "too_many").exists()


def test_numbers_that_are_not_finite_are_the_same_line_on_all_workers(runs):
    """It names a checkpoint of the run's folder, also on the worker that writes to a folder of its own."""
    results, folder = runs
    last_lines = []
    for status, log, _ in results["diverging"]:
        assert status == 1, log
        last_lines.append(log.strip().splitlines()[-1])
        assert "is the first whose loss or gradient is not finite" in last_lines[-1]
    assert last_lines[0] == last_lines[1]
    good = re.search(r"The last good checkpoint is (\S+)\. ", last_lines[0])[1]
    assert good.startswith(f"{folder}/diverging/checkpoints/ckpt-")
    assert pathlib.Path(f"{good}.index").exists()


def test_only_the_chief_logs_and_writes(runs):
    results, folder = runs
    one, two = (
        sorted(
            path.relative_to(folder / name).as_posix()
            for path in (folder / name).rglob("*")
            if "tfevents" not in path.name and "ckpt-" not in path.name
        )
        for name in ("one", "two")
    )
    assert one == two
    (_, of_chief, _), (_, of_other, _) = results["resumed"]
    assert f"resuming at step {STOP_AGAIN} from" in of_chief and f"step {STEPS}/{STEPS}" in of_chief
    # What is left are lines of TensorFlow's C++.
    assert not [
        line for line in of_other.splitlines() if "grpc" not in line and "absl::" not in line
    ]


@pytest.mark.parametrize("name, survivor", [("killed", 0), ("chief_killed", 1)])
def test_the_death_of_a_worker_ends_the_others_with_one_line(runs, name, survivor):
    results, folder = runs
    status, log, seconds = results[name][survivor]
    assert results[name][1 - survivor][0] == -9, results[name][1 - survivor]
    assert status == 1, log
    last = log.strip().splitlines()[-1]
    assert "error: another worker has gone" in last and "restart all workers with --resume" in last
    assert "Traceback" not in log
    assert seconds < 120
    assert (folder / name / "checkpoints/ckpt-5.index").exists()
