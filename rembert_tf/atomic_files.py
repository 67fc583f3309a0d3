"""Files that appear under their name complete or not at all."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator

INCOMPLETE = ".incomplete"


@contextlib.contextmanager
def naming(path: str | os.PathLike) -> Iterator[None]:
    """Adds the path to an OSError that names no file, as those of a full disk do not."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Gives a temporary path in the same folder, which takes the name `path` when the block ends well.

    Args:
        path: The final name. An existing file is replaced.

    Yields:
        The path to write to.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}{INCOMPLETE}")
    try:
        with naming(path):
            yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike, content: bytes):
    """Writes a file as a whole."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: str | os.PathLike, value):
    """Writes indented JSON as a whole."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
