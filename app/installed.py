"""Entry points of the packages that are installed now."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path


def points(group: str) -> EntryPoints:
    """Entry points of a group; metadata is read again only after a folder of the module path has changed."""
    return _read(group, tuple((folder, _changed_at(folder)) for folder in sys.path))


def _changed_at(folder: str) -> int:
    """Time of the last change to the folder's list of files, in nanoseconds; 0 if there is no such folder."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=8)
def _read(group: str, path: tuple[tuple[str, int], ...]) -> EntryPoints:
    del path  # part of the key alone
    return entry_points(group=group)
