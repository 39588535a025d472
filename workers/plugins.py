"""What packages add through entry points: found by name, imported when it is asked for.

Errors: ``PluginError`` (a ``LookupError``): nothing of that name is installed, or what is can't be imported.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

LEARNED_KINDS = "steward.learned_kinds"


class PluginError(LookupError):
    """There is no such plug-in, or it is broken; the message names group, plug-in and package."""


def names(group: str) -> tuple[str, ...]:
    """Every plug-in of a group, in order."""
    return tuple(_found(group))


@cache
def load(group: str, name: str) -> Any:
    """The object that a package has under this name.

    Raises:
        PluginError: see the module.
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
