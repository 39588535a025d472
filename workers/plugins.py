"""Plug-ins from entry points: found by name, imported on first use."""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

LEARNED_KINDS = "steward.learned_kinds"


class PluginError(LookupError):
    """The plug-in is not installed, or cannot be imported; the message names group, plug-in and package."""


def names(group: str) -> tuple[str, ...]:
    """Names of all plug-ins of a group, sorted; imports nothing."""
    return tuple(_found(group))


@cache
def load(group: str, name: str) -> Any:
    """Import and return the object of this plug-in.

    Raises:
        PluginError: it is not installed, or cannot be imported.
    """
    found = _found(group)
    if name not in found:
        raise PluginError(f"{group} has no {name!r}; installed are {', '.join(found) or 'none'}")
    entry = found[name]
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        package = entry.dist.name if entry.dist is not None else entry.module
        raise PluginError(f"{name!r} of {group}, in package {package}, can't be loaded: {error}") from error


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=group), key=lambda entry: entry.name)}
