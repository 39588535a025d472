"""One `steward serve` with workers for a data folder: a lock that the kernel lifts when its process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.startup import StartupError

NAME = "serve.lock"


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder; its file tells others the id of this process.

    Raises:
        StartupError: another process holds it.
    """
    with (folder / NAME).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another"
            raise StartupError(
                f"STEWARD_DATA_DIR={str(folder)!r}: process {holder} serves it already; stop that one, choose another "
                "folder (--data), or start one more API beside it: steward serve --workers 0 --port …"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def holder(folder: Path) -> str | None:
    """Id of the process that holds the folder; None where none does."""
    try:
        with (folder / NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return file.read().strip() or "another"
    except FileNotFoundError:
        pass
    return None
