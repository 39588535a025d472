"""What both databases' backups have in common: what they hold, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class BackupError(Exception):
    """It was not done, and nothing was changed; the message says why, and what helps."""


class Contents(NamedTuple):
    """What a backup holds.

    Attributes:
        revision: of its tables.
        rows: by table, where they could be counted.
    """

    revision: str
    rows: Mapping[str, int]


def partial(file: Path) -> Path:
    """Where this process writes a file until it is whole."""
    return file.with_name(f".{file.name}.{os.getpid()}")


@contextmanager
def written(file: Path, *, force: bool) -> Iterator[Path]:
    """A place to write a file to, which is there under its name only once it is whole and on disk.

    Raises:
        BackupError: there is one already, and it is not to be replaced.
    """
    if file.exists() and not force:
        raise BackupError(f"{file} is there already; choose another name, or replace it with --force")
    if not file.absolute().parent.is_dir():
        raise BackupError(f"{file}: there is no folder {file.parent}")
    beside = partial(file)
    try:
        yield beside
        with beside.open("rb") as handle:
            os.fsync(handle.fileno())
        beside.replace(file)
    except OSError as error:
        raise BackupError(f"{file}: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    handle_of_folder = os.open(file.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(handle_of_folder)
    finally:
        os.close(handle_of_folder)
