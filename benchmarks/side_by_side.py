"""Runs measurements of two sides by turns, each in a fresh process, and compares their medians.

A measurement is a command that prints a JSON object of numbers as its last line.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

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


def peak_memory() -> int:
    """Returns the largest resident set of this process so far (VmHWM), in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
