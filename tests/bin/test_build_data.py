import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from rembert_tf.pipelines.config import RecordsConfig
from rembert_tf.pipelines.manifest import Manifest
from rembert_tf.pipelines.record_builder import build_records

COMMAND = [sys.executable, "-m", "rembert_tf.bin.build_data"]
LINES = "The old man reads a book in the garden.\nWe eat bread.\n\n" * 22_000  # more than a chunk


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def text(text_folder, tmp_path):
    """Text in two small languages and one large one, which comes in the middle."""
    folder = tmp_path / "text"
    folder.mkdir()
    for language in ("el", "zh"):
        shutil.copy(text_folder / f"{language}.txt", folder)
    (folder / "sw.txt").write_text(LINES)
    return folder


def wait_for(path, process):
    for _ in range(1200):
        if path.exists():
            return
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear")


def test_a_killed_run_leaves_nothing_half_written_and_is_resumed(text, vocabulary_file, tmp_path):
    """A pipe that gives half of the text holds the run in the middle of a language: case F12."""
    unbroken = tmp_path / "unbroken"
    settings = dict(input_dir=str(text), tokenizer=str(vocabulary_file))
    build_records(RecordsConfig(output_dir=str(unbroken), **settings))

    records = tmp_path / "records"
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    command = [*COMMAND, *arguments, f"--output_dir={records}"]
    (text / "sw.txt").unlink()
    os.mkfifo(text / "sw.txt")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    pipe = os.open(text / "sw.txt", os.O_RDWR)  # does not wait for the reader
    try:
        # One chunk, and less beyond it than a pipe holds, so the thread ends before the chunk is built.
        begin = LINES[: (1 << 20) + 60_000].encode()
        threading.Thread(target=os.write, args=(pipe, begin), daemon=True).start()
        wait_for(records / ".sw.incomplete" / "train-00000.part", process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        os.close(pipe)

    complete = {"el", "sentencepiece.model"}
    assert {p.name for p in records.iterdir()} == complete | {".sw.incomplete"}
    assert not list(records.rglob("sw/*"))
    with pytest.raises(FileNotFoundError, match="was its run cut short"):
        Manifest.read(records)
    finished = (records / "el" / "language.json").stat().st_mtime_ns

    (text / "sw.txt").unlink()
    (text / "sw.txt").write_text(LINES)
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert "1 of 3 languages are complete already" in result.stderr
    assert (records / "el" / "language.json").stat().st_mtime_ns == finished
    assert contents(records) == contents(unbroken)
    Manifest.read(records).check_sizes()


def test_records_are_verified(records_folder, tmp_path):
    shutil.copytree(records_folder, tmp_path / "records")
    command = [*COMMAND, "--verify", f"--output_dir={tmp_path / 'records'}"]
    path = sorted((tmp_path / "records" / "ru").glob("train-*.tfrecord"))[0]
    content = path.read_bytes()
    path.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert (
        last.startswith("build_data.py: error: ")
        and f"2 damages, the first: {path}: sha256" in last
    )
    assert f"{path}: record " in result.stderr and "el: right" in result.stderr
