"""Runs measurements of two sides by turns and compares their medians.

Either each measurement is a command of its own, in a fresh process, that prints a JSON object of numbers as its last
line (`by_turns`); or each side is a `Worker`, a process that is started once and answers request after request.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

# Other load on the machine spoils figures.
_QUIET = 0.5


def check_quiet() -> str:
    """Returns a line on the machine's load, with a warning if it is not idle."""
    load = os.getloadavg()[0]
    line = f"load average at the start: {load:.2f} ({os.cpu_count()} cores)"
    return line if load <= _QUIET else f"{line}: NOT IDLE, the figures below are spoilt"


def by_turns(
    commands: Mapping[str, Sequence[str]], repetitions: int
) -> dict[str, dict[str, list[float]]]:
    """Runs every command `repetitions` times, the sides alternating.

    Args:
        commands: Command by side.
        repetitions: Runs of each.

    Returns:
        For each side, the values of each number that its command prints.

    Raises:
        RuntimeError: If a command fails; the end of its output is in the message.
    """
    values = {side: {} for side in commands}
    for _ in range(repetitions):
        for side, command in commands.items():
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                raise RuntimeError(f"{side}: {' '.join(command)}\n{result.stderr[-2000:]}")
            for name, value in json.loads(result.stdout.splitlines()[-1]).items():
                values[side].setdefault(name, []).append(value)
            print(".", end="", flush=True, file=sys.stderr)
    return values


def medians(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Returns the median of each number."""
    return {name: statistics.median(samples) for name, samples in values.items()}


class Worker:
    """A process that is started once and answers requests, one line of JSON each.

    Args:
        command: Starts it. It answers once by itself, when it is ready, then each line of its standard input; see
            `answers` and `requests`.
        folder: Where its standard error goes to, as a file.

    Attributes:
        ready: Its first answer.

    Raises:
        RuntimeError: If it ends; the end of its standard error is in the message.
    """

    def __init__(self, command: Sequence[str], folder: str):
        self._command = " ".join(command)
        self._errors = open(os.path.join(folder, f"{os.path.basename(command[-1])}.log"), "w+")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.ready = self._answer()

    def ask(self, **request) -> dict[str, float]:
        """Sends a request and waits for the answer."""
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # `_answer` says why
        return self._answer()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(f"{self._command}\n{self._errors.read()[-2000:]}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._errors.close()


def answers() -> Callable[[Mapping[str, float]], None]:
    """Returns, in a worker, the function that answers; whatever else is printed goes to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return lambda values: print(json.dumps(values), file=channel, flush=True)


def requests() -> Iterator[dict]:
    """Yields, in a worker, the requests."""
    return map(json.loads, sys.stdin)


def reset_peak_memory() -> None:
    """Lets `peak_memory` start anew, from what is resident now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak_memory() -> int:
    """Returns the largest resident set of this process (VmHWM) so far, or since the last reset, in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
