"""A real process gets a real signal, and the run that goes on ends as the unbroken one."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import safetensors.numpy

from rembert_tf.training.preemption import stopping_on_signals
from rembert_tf.training.run_folder import read_metrics

RUN_PROCESSES = pathlib.Path(__file__).parent / "run_processes.py"
SAMPLE = pathlib.Path(__file__).parents[2] / "pipelines" / "sample"
STEPS, STOP = 12, 7  # 7: neither a checkpoint nor an evaluation is due
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "input_embedding_size": 8, "output_embedding_size": 24, "max_position_embeddings": 32,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(records_folder, vocabulary_file, tmp_path_factory):
    """All processes of this file: [status, standard error] by name, and the folder of the runs."""
    folder = tmp_path_factory.mktemp("preemption")
    (folder / "config.json").write_text(json.dumps(SHAPE))
    flags = [
        f"--records_dir={records_folder}", f"--tokenizer={vocabulary_file}", "--languages=en,zh",
        f"--model_config={folder / 'config.json'}", f"--steps={STEPS}", "--batch_size=8",
        "--max_seq_length=24", "--shuffle_buffer=64", "--learning_rate=2e-2", "--log_every=5",
        "--checkpoint_every=5", "--evaluate_every=10", "--evaluation_sequences=4", "--keep_best",
        "--deterministic",
    ]  # fmt: skip

    def job(name, *more, signals=(), begun=flags):
        return {"binary": "pretrain", "signals": signals,
                "flags": [*begun, f"--model_dir={folder / name}", *more]}  # fmt: skip

    jobs = {
        "unbroken": job("unbroken", "--profile_steps=2,3"),
        "stopped": job("stopped", "--profile_steps=6,9", signals=[[STOP, 0, "SIGTERM"]]),
        "resumed": job("stopped", "--resume", begun=[f"--flagfile={folder / 'stopped/flags.txt'}"]),
        "diverging": job("diverging", "--learning_rate=1e30"),
    }
    return run_processes(jobs), folder


def run_processes(jobs):
    result = subprocess.run(
        [sys.executable, RUN_PROCESSES, json.dumps(list(jobs.values()))],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return dict(zip(jobs, json.loads(result.stdout), strict=True))


def weights(folder):
    return safetensors.numpy.load_file(folder / "model" / "model.safetensors")


def lines(folder):
    """The lines of the log without what depends on the clock."""
    return [
        {name: value for name, value in line.items() if "per_second" not in name and "mib" not in name}
        for line in read_metrics(folder)
    ]  # fmt: skip


def test_a_signal_ends_the_run_after_the_step_with_a_checkpoint_and_status_75(runs):
    (status, log), folder = runs[0]["stopped"], runs[1] / "stopped"
    assert status == 75, log
    assert "SIGTERM: the run saves and ends after this step" in log
    last = log.strip().splitlines()[-1]
    assert f"stopped by a signal after step {STOP}, which is saved" in last
    assert f"checkpoints/ckpt-{STOP}" in last
    assert f"to go on: --flagfile={folder / 'flags.txt'} --resume" in last
    assert "Traceback" not in log and "model: " not in log


def test_the_resumed_run_ends_as_the_unbroken_one(runs):
    results, folder = runs
    for name in ("unbroken", "resumed"):
        status, log = results[name]
        assert status == 0, log
        assert (f"resuming at step {STOP} from" in log) == (name == "resumed")
    stopped, unbroken = folder / "stopped", folder / "unbroken"
    for name, value in weights(unbroken).items():
        np.testing.assert_array_equal(weights(stopped)[name], value, err_msg=name)
    # Steps 6 and 7, before the signal, are in the mean that the line of step 10 gives.
    assert lines(stopped) == lines(unbroken)
    assert [line["step"] for line in lines(stopped) if line["kind"] == "train"] == [5, 10, STEPS]
    # Step 7 is no multiple of `evaluate_every`: a run that a signal ended was not evaluated there.
    assert [line["step"] for line in lines(stopped) if line["kind"] == "heldout"] == [0, 10, STEPS]


def test_a_second_signal_ends_the_process_at_once():
    child = os.fork()
    if child == 0:
        with stopping_on_signals(lambda: None):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGTERM


def test_the_first_signal_is_heard_while_the_main_thread_is_busy():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    heard = threading.Event()
    with stopping_on_signals(heard.set):
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert heard.wait(5)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_numbers_that_are_not_finite_are_one_line_and_status_1(runs):
    status, log = runs[0]["diverging"]
    assert status == 1 and "Traceback" not in log
    last = log.strip().splitlines()[-1]
    message = (
        r"rembert-pretrain: error: step (\d+) is the first whose loss .*; it trained on batch (\d+)"
    )
    step, batch = re.match(message, last).groups()
    assert int(batch) == int(step) - 1
    assert not (runs[1] / "diverging" / "model").exists()


def test_the_threads_of_a_deterministic_run_are_one_of_its_settings(runs):
    flags = (runs[1] / "unbroken" / "flags.txt").read_text().splitlines()
    threads = [line for line in flags if line.startswith("# threads of the deterministic run=")]
    assert len(threads) == 1 and int(threads[0].partition("=")[2]) > 0


def test_the_best_heldout_model_is_kept(runs):
    for name in ("stopped", "unbroken"):
        folder = runs[1] / name
        heldout = [line for line in lines(folder) if line["kind"] == "heldout"]
        best = min(heldout, key=lambda line: line["loss"])["step"]
        assert [path.stem for path in (folder / "checkpoints/best").glob("*.index")] == [
            f"ckpt-{best}"
        ]
        published = safetensors.numpy.load_file(folder / "best_model/model.safetensors")
        table = "rembert.embeddings.word_embeddings.weight"
        assert np.array_equal(published[table], weights(folder)[table]) == (best == STEPS)


def test_the_steps_that_were_asked_for_are_profiled(runs):
    (profile,) = (runs[1] / "unbroken").glob("tensorboard/train/plugins/profile/*/*.xplane.pb")
    assert b"train" in profile.read_bytes()
    assert "profile of steps 2 to 3: " in runs[0]["unbroken"][1]
    # A signal ends a profile, and what is left of the range is profiled after the resume.
    assert len(list((runs[1] / "stopped").rglob("*.xplane.pb"))) == 2
    assert f"profile of steps 6 to {STOP}: " in runs[0]["stopped"][1]
    assert f"profile of steps {STOP + 1} to 9: " in runs[0]["resumed"][1]


@pytest.mark.slow
def test_finetuning_too_goes_on_after_a_signal(vocabulary_file, tmp_path):
    """The second signal comes in the step of an evaluation, which publishes a model and is not done twice.

    LoRA's matrices, and the frozen encoder under them, go on after a SIGKILL.
    """
    (tmp_path / "config.json").write_text(json.dumps(SHAPE))
    flags = [
        "--task=udpos", f"--data_dir={SAMPLE}", f"--tokenizer={vocabulary_file}",
        f"--model_config={tmp_path / 'config.json'}", "--max_train_examples=40", "--batch_size=16",
        "--max_seq_length=32", "--pad_to_max", "--epochs=5", "--learning_rate=2e-2", "--log_every=1",
        "--checkpoint_every=100", "--evaluate_every=4",
    ]  # fmt: skip

    def job(name, *signals, more=()):
        more = [f"--model_dir={tmp_path / name}", "--resume", *more]
        return {"binary": "finetune", "flags": [*flags, *more], "signals": signals}

    lora = ["--lora_rank=2", "--deterministic", "--checkpoint_every=3"]

    processes = run_processes({
        "unbroken": job("unbroken"),
        "first": job("stopped", [5, 0, "SIGTERM"]),
        "second": job("stopped", [8, 0, "SIGTERM"]),
        "last": job("stopped"),
        "lora": job("lora", more=lora),
        "lora_killed": job("lora_killed", [8, 0, "SIGKILL"], more=lora),
        "lora_resumed": job("lora_killed", more=lora),
    })  # fmt: skip
    assert [status for status, _ in processes.values()] == [0, 75, 75, 0, 0, -9, 0], processes
    assert "resuming at step 5 from" in processes["second"][1]
    assert "resuming at step 8 from" in processes["last"][1]
    stopped, unbroken = tmp_path / "stopped", tmp_path / "unbroken"
    for name, value in weights(unbroken).items():
        np.testing.assert_allclose(weights(stopped)[name], value, rtol=0, atol=1e-6, err_msg=name)
    assert "resuming at step 6 from" in processes["lora_resumed"][1]
    for name, value in weights(tmp_path / "lora").items():
        np.testing.assert_array_equal(weights(tmp_path / "lora_killed")[name], value, err_msg=name)
    assert lines(tmp_path / "lora_killed") == lines(tmp_path / "lora")
    steps = [(line["kind"], line["step"]) for line in lines(unbroken)]
    assert [(line["kind"], line["step"]) for line in lines(stopped)] == steps
    assert ("dev", 8) in steps and ("dev", 5) not in steps
