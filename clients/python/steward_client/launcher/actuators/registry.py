"""The actuators that are installed: entry points ``steward.actuators``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from .contract import GROUP, Actuator, ActuatorError, Factory, Range


def installed() -> dict[str, EntryPoint]:
    """Entry points by name; nothing is imported yet."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def factory(name: str) -> Factory:
    """The factory of an actuator.

    Raises:
        ActuatorError: none of that name is installed, or it can't be imported.
    """
    points = installed()
    if name not in points:
        raise ActuatorError(f"actuator {name!r} is not installed; there are: {', '.join(points) or 'none'}")
    try:
        found: Factory = points[name].load()
    except ImportError as error:
        raise ActuatorError(f"actuator {name!r} ({points[name].value}) can't be imported: {error}") from error
    return found


def options_of(made: Factory) -> list[str]:
    """Names of the options that a factory takes."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, one in inspect.signature(made).parameters.items() if one.kind in kinds][1:]


def create(name: str, wanted: Mapping[str, Range], options: Mapping[str, str] | None = None) -> Actuator:
    """An actuator that can set what is wanted.

    Raises:
        ActuatorError: see `factory`; or it has no such option.
        Unavailable: it can't be used here.
        CannotSet: it can't set a resource, or not in that range.
    """
    made, given = factory(name), dict(options or {})
    known = options_of(made)
    for option, value in given.items():
        if option not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise ActuatorError(f"actuator {name!r} has no option {option}={value}; {has}")
    return made(wanted, **given)


def introduce(actuator: Actuator, say: Callable[[str], None]) -> None:
    """Say by what it sets each resource."""
    for name, settable in actuator.resources().items():
        say(f"{name}: set by {settable.how}")
