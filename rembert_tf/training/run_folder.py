"""The folder of a run: its settings, its metrics, and the guard against mixing two runs."""

import dataclasses
import hashlib
import json
import pathlib
from typing import Any

from rembert_tf import atomic_files

# Settings that may change when a run is resumed; every other one decides what the run computes.
_FREE_ON_RESUME = (
    "model_dir", "log_every", "checkpoint_every", "evaluate_every", "keep_checkpoints", "keep_best",
    "deterministic", "profile_steps", "evaluation_sequences", "distribution", "cpu_replicas",
    "tpu_address", "gradient_accumulation_steps", "remat", "num_parallel_calls",
)  # fmt: skip

FLAGS = "flags.txt"
# Comments for absl, settings for us.
_DATA = "# sha256 of the data"
_THREADS = "# threads of the deterministic run"


def open_run_folder(
    model_dir: str | pathlib.Path,
    resume: bool,
    configs: list,
    data_files: list,
    threads: int | None = None,
) -> pathlib.Path:
    """Makes `model_dir` for a new run, or checks that a resumed run has the settings it began with.

    Writes `flags.txt`, an absl flagfile that repeats the run; a comment in it holds a checksum of the data. A setting
    that an older `flags.txt` does not know had its default then.

    Args:
        model_dir: the run's folder.
        resume: whether the run goes on from its last checkpoint.
        configs: dataclasses that hold the run's settings.
        data_files: files whose content decides what the run computes.
        threads: in a deterministic run, the threads of an operation, which decide its bits.

    Returns:
        The folder.

    Raises:
        ValueError: the folder holds a run and `resume` is off; or a setting or the data differ from the run's.
    """
    folder = pathlib.Path(model_dir)
    fields = {
        field.name: (getattr(config, field.name), field.default)
        for config in configs
        for field in dataclasses.fields(config)
        if field.name != "resume"
    }
    # No line stands for None: a flagfile cannot say it.
    settings = {
        name: _flag_value(value) for name, (value, _) in fields.items() if value is not None
    }
    defaults = {
        name: _flag_value(default)
        for name, (_, default) in fields.items()
        if default is not dataclasses.MISSING
    }
    digest = hashlib.sha256(b"".join(pathlib.Path(file).read_bytes() for file in data_files))
    settings[_DATA] = digest.hexdigest()
    if threads is not None:
        settings[_THREADS] = str(threads)
        defaults[_THREADS] = str(
            threads
        )  # a run that was not deterministic so far promised no bits
    path = folder / FLAGS
    if path.exists() and not resume:
        raise ValueError(
            f"{folder} holds a run already: add --resume to go on with it, or choose another "
            f"`model_dir`. Received: model_dir={str(model_dir)!r}"
        )
    if path.exists():
        _check_same(read_flagfile(path), settings, defaults, path)
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(
        f"{name}={value}\n" if name.startswith("#") else f"--{name}={value}\n"
        for name, value in settings.items()
    )
    atomic_files.write_bytes(path, lines.encode())
    return folder


def _flag_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def read_flagfile(path: pathlib.Path) -> dict[str, str]:
    """Returns the settings of a run, name to text, as `flags.txt` holds them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.removeprefix("--").partition("=")[::2] for line in lines)


def _check_same(
    before: dict[str, str], now: dict[str, str], defaults: dict[str, str], path: pathlib.Path
) -> None:
    for name in sorted(set(before) | set(now)):
        if name in _FREE_ON_RESUME or (name == _THREADS and name not in now):
            continue
        old, new = before.get(name, defaults.get(name)), now.get(name, "None")
        if old != new:
            raise ValueError(
                f"{path}: a resumed run keeps its settings and its data; this one began with "
                f"{name}={old}. Received: {name}={new}"
            )


class MetricsLog:
    """`<model_dir>/metrics.jsonl`: one JSON object a line, with a `step` and a `kind`.

    A resumed run drops the lines after the step it resumes from, and a line that is there is not written again: each
    step stands once.

    Args:
        folder: the run's folder.
        start_step: the step at which the run starts or resumes.
    """

    def __init__(self, folder: pathlib.Path, start_step: int):
        self._path = folder / "metrics.jsonl"
        kept = [line for line in read_metrics(folder) if line["step"] <= start_step]
        kept = kept if start_step else []  # a run without a checkpoint begins again
        self._written = {(line["kind"], line["step"]) for line in kept}
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in kept]
        atomic_files.write_bytes(self._path, "".join(lines).encode())

    def write(self, kind: str, step: int, values: dict[str, Any]) -> None:
        """Appends one line, unless this step has one of this kind."""
        if (kind, step) in self._written:
            return
        self._written.add((kind, step))
        line = json.dumps({"kind": kind, "step": step, **values}, ensure_ascii=False)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_metrics(folder: str | pathlib.Path) -> list[dict[str, Any]]:
    """Returns the lines of `<folder>/metrics.jsonl`; a last line that a kill cut short is left out."""
    path = pathlib.Path(folder) / "metrics.jsonl"
    lines = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                break
    return lines
