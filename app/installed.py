"""What is installed now: this distribution, its extras, and entry points of all packages."""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from importlib.metadata import EntryPoints, PackageNotFoundError, distribution, entry_points, requires, version
from pathlib import Path

DISTRIBUTION = "steward-allocation"
EXTRAS = {
    "worker": "fits, trainings, evaluations and charts",
    "archive": "archives of deleted data",
    "mcp": "tools for assistants",
    "otel": "traces",
    "ray": "trainings on Ray",
    "scaling": "metrics for autoscalers",
}
"""What each extra of the distribution is for, without those of its developers."""


class NotInstalledError(Exception):
    """This distribution has no metadata here, as after an upgrade of a checkout that had another name."""


def declared() -> list[str]:
    """Requirements that this distribution declares; raises NotInstalledError, whose text has a remedy."""
    try:
        return requires(DISTRIBUTION) or []
    except PackageNotFoundError as error:
        remedy = "`pip uninstall steward`, then install it anew"
        raise NotInstalledError(f"{DISTRIBUTION} is not installed here: {remedy}") from error


def missing(extra: str) -> list[str]:
    """Distributions that an extra requires and that are not installed; NotInstalledError without own metadata."""
    matches = [re.match(rf"([\w.-]+)[^;]*; extra == .{extra}.$", text) for text in declared()]
    return [name[1] for name in matches if name is not None and not _has(name[1])]


def _has(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def command(extra: str) -> str:
    """Command that installs an extra from where this distribution came: a checkout, a wheel, or a package index."""
    try:
        # PEP 610; absent if it came from an index
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    if "dir_info" in origin:
        return f"in the checkout, pip install -e '.[{extra}]'"
    if "archive_info" in origin:
        return f'pip install "$(echo dist/{DISTRIBUTION.replace("-", "_")}-*.whl)[{extra}]"'
    return f"pip install '{DISTRIBUTION}[{extra}]'"


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
