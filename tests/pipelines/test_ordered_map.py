import itertools
import os
import signal
import subprocess
import sys
import time

import pytest

from rembert_tf.pipelines.ordered_map import ordered_map

# Functions of the standard library: what runs in other processes must be found there by name.
PRELOAD = "rembert_tf.pipelines.config"


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_order_and_the_stream_is_not_read_far_ahead(processes):
    read = []
    stream = (read.append(n) or -n for n in itertools.count())
    with ordered_map(processes, PRELOAD, os.getpid) as parallel:
        results = list(itertools.islice(parallel(abs, stream), 20))
    assert results == list(range(20))
    assert len(read) <= 20 + 2 * 3 + 1


@pytest.mark.parametrize("processes", [1, 2])
def test_the_first_error_in_the_order_of_the_stream_counts(processes):
    def stream():
        yield from ("1", "2", "three", "4")
        raise OSError("the stream broke")

    with ordered_map(processes, PRELOAD, os.getpid) as parallel:
        found = []
        with pytest.raises(ValueError, match="three"):
            for result in parallel(int, stream()):
                found.append(result)
        assert found == [1, 2]
        with pytest.raises(OSError, match="the stream broke"):
            for result in parallel(str.upper, stream()):
                found.append(result)
        assert found == [1, 2, "1", "2", "THREE", "4"]


def test_work_is_done_in_other_processes_and_a_killed_one_is_named():
    with ordered_map(2, PRELOAD, os.getpid) as parallel:
        (process,) = parallel(os.getpgid, [0])
        assert process == os.getpgid(0)
    with pytest.raises(OSError, match="was killed; .*memory.* Received: num_processes=2"):
        with ordered_map(2, PRELOAD, os.getpid) as parallel:
            list(parallel(os._exit, [9]))


PARENT = """
import os, sys, time
from rembert_tf.pipelines.ordered_map import ordered_map
if __name__ == "__main__":
    with ordered_map(2, "rembert_tf.pipelines.config", os.getpid) as parallel:
        for _ in parallel(os.system, ["echo $PPID", "echo $PPID", "sleep 600"]):
            sys.stdout.flush()
"""


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    command = [sys.executable, str(tmp_path / "parent.py")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    workers = {int(parent.stdout.readline()) for _ in range(2)}
    assert parent.pid not in workers
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(100):
        workers = {pid for pid in workers if os.path.exists(f"/proc/{pid}/exe") and running(pid)}
        if not workers:
            return
        time.sleep(0.1)
    raise AssertionError(f"{workers} go on without their parent")


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
