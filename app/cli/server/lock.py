"""One `steward serve` with workers for a data folder: a lock that the kernel lifts when its process ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from app.startup import StartupError

NAME = "serve.lock"
ENDING_SECONDS, LOOK_SECONDS = 15.0, 0.2
"""A service that was told to stop has handed its jobs back, or is killed by whoever told it, within that time."""


@contextmanager
def exclusive(
    folder: Path, say: Callable[[str], None] = print, patience_seconds: float = ENDING_SECONDS
) -> Iterator[None]:
    """Hold the folder, once who held it has ended; its file tells others the id of this process.

    Args:
        folder: of the service's data.
        say: hears that another process holds it.
        patience_seconds: for which that one is waited for.

    Raises:
        StartupError: another process goes on holding it, or files can't be locked there.
    """
    with (folder / NAME).open("a+") as file:
        if not _locked(file):
            say(f"waits up to {patience_seconds:g} s for process {holder(folder)}, which serves {folder}, to end")
            _wait(file, folder, time.monotonic() + patience_seconds)
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _wait(file: IO[str], folder: Path, until: float) -> None:
    while not _locked(file):
        if time.monotonic() > until:
            raise StartupError(
                f"STEWARD_DATA_DIR={str(folder)!r}: process {holder(folder)} serves it already; stop that one, "
                "choose another folder (--data), or start one more API beside it: "
                "steward serve --workers 0 --port …"
            )
        time.sleep(LOOK_SECONDS)


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StartupError(
            f"STEWARD_DATA_DIR: {file.name!r} can't be locked ({error.strerror}); choose a folder on a local disk"
        ) from error
    return True


def holder(folder: Path) -> str | None:
    """Id of the process that holds the folder; None where none does, or none can."""
    try:
        with (folder / NAME).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "another"
    except OSError:  # there is no such file, or files can't be locked there
        return None
    return None
