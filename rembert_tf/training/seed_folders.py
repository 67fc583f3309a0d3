"""What a series of seeds leaves behind: `<model_dir>/seed_1/`, `seed_2/`, ..., and their scores in `summary.json`."""

import json
import pathlib

SUMMARY, RESULT = "summary.json", "result.json"


def seed_folder(model_dir: str | pathlib.Path, number: int) -> pathlib.Path:
    """Returns the folder of a run of a series, counted from 1."""
    return pathlib.Path(model_dir) / f"seed_{number}"


def find_seeds(model_dir: str | pathlib.Path) -> list[pathlib.Path]:
    """Returns the folders of the runs of a series that has ended; none where there is no series.

    Runs that are no part of the last series in this folder are left out: `summary.json` says how many it has.

    Raises:
        FileNotFoundError: the series has not ended.
    """
    folder = pathlib.Path(model_dir)
    if not seed_folder(folder, 1).is_dir():
        return []
    summary, seeds = folder / SUMMARY, []
    if summary.is_file():
        number = len(json.loads(summary.read_text(encoding="utf-8"))["seeds"])
        seeds = [seed_folder(folder, n) for n in range(1, number + 1)]
    # The results too, for a summary may be that of an earlier series in this folder.
    for path in [summary, *(seed / RESULT for seed in seeds)]:
        if not path.is_file():
            raise FileNotFoundError(
                f"No file {path}: not all seeds have ended. Go on with --resume, or take the model of one, "
                f"{seed_folder(folder, 1) / 'model'}."
            )
    return seeds


def refuse_seeds(model: str) -> None:
    """Raises `ValueError` if a folder of several seeds stands where one model must."""
    if seeds := find_seeds(model):
        raise ValueError(
            f"`model` must be one model here, such as {seeds[0] / 'model'}; this folder holds {len(seeds)} seeds. "
            f"Received: model={model!r}"
        )
