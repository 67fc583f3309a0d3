"""Writes a folder whole or not at all, wherever a process is killed and whoever else writes it.

Beside `PATH/NAME` lies what a process is writing, `.NAME.incomplete.PROCESS`, and between two renames
what it replaces, `.NAME.old.PROCESS`. Nobody touches those of another process that lives.
"""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator


@contextlib.contextmanager
def replaced_folder(path: str | os.PathLike) -> Iterator[str]:
    """Gives a new folder to write, which takes the place of `path` at the end.

    What killed processes left beside `path` is removed, or taken back if it was just being replaced.
    Of two processes that write the same folder, the one that ends last has it.

    Args:
        path: The folder to replace, or to make.

    Yields:
        The folder to write.

    Raises:
        OSError: If it cannot be written; the old one then stays.
    """
    path = os.path.realpath(path)
    _tidy(path)
    parent, name = os.path.split(path)
    new, old = (f"{parent}/.{name}.{kind}.{os.getpid()}" for kind in ("incomplete", "old"))
    os.makedirs(new)
    try:
        yield new
        _replace(path, new, old)
    finally:
        _tidy(path)


def check_not_interrupted(path: str | os.PathLike) -> None:
    """Raises `FileNotFoundError` if `path` is absent, since a process was killed that replaced it."""
    path = os.path.realpath(path)
    for left, kind in _left_behind(path):
        if kind == "old" and not os.path.lexists(path):
            raise FileNotFoundError(
                f"{path}: whoever replaced it was killed between two renames. The model that was "
                f"there is in {left}: mv {left} {path}"
            )


def _replace(path, new, old):
    while True:
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, old)
        try:
            return os.rename(new, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise  # else another process was faster: its folder is the one to replace


def _tidy(path):
    for left, kind in _left_behind(path):
        if kind == "old" and not os.path.lexists(path):
            os.rename(left, path)
        shutil.rmtree(left, ignore_errors=True)


def _left_behind(path):
    """Yields what dead processes, and this one, left beside a folder, and which of the two kinds it is."""
    parent, name = os.path.split(path)
    pattern = re.compile(re.escape(f".{name}.") + r"(incomplete|old)\.(\d+)")
    for found in map(pattern.fullmatch, os.listdir(parent) if os.path.isdir(parent) else ()):
        if found and not _is_another_that_lives(int(found[2])):
            yield os.path.join(parent, found.string), found[1]


def _is_another_that_lives(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return process != os.getpid()
