"""Plug-ins from entry points: they are looked up by name and imported on first use."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

LEARNED_KINDS = "steward.learned_kinds"


class PluginError(LookupError):
    """Raised if a plug-in is not installed or cannot be imported; the message names entry-point group and plug-in."""


def names(group: str) -> tuple[str, ...]:
    """Return the names of all plug-ins of an entry-point group, sorted, without importing them."""
    return tuple(_entry_points(group))


@cache
def load(group: str, name: str) -> Any:
    """Return the object of the plug-in ``name`` in an entry-point group, importing its module on first use.

    Raises:
        PluginError: the plug-in is not installed, or cannot be imported.
    """
    points = _entry_points(group)
    if name not in points:
        raise PluginError(f"{group} has no {name!r}; installed are {', '.join(points) or 'none'}")
    entry = points[name]
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist is not None else entry.module
        raise PluginError(f"{name!r} of {group}, in package {package}, can't be loaded: {error}") from error


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}
