"""The installed actuators (entry points of group ``steward.actuators``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from .contract import GROUP, Actuator, ActuatorError, Factory, Range


def installed() -> dict[str, EntryPoint]:
    """Entry points of the installed actuators by name, in alphabetical order; imports none of them."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def factory(name: str) -> Factory:
    """Import and return the factory of the actuator ``name``.

    Raises:
        ActuatorError: no actuator of that name is installed, or it can't be imported.
    """
    points = installed()
    if name not in points:
        raise ActuatorError(f"actuator {name!r} is not installed; there are: {', '.join(points) or 'none'}")
    try:
        factory: Factory = points[name].load()
    except ImportError as error:
        raise ActuatorError(f"actuator {name!r} ({points[name].value}) can't be imported: {error}") from error
    return factory


def options_of(factory: Factory) -> list[str]:
    """Names of a factory's options: its parameters without the first, ``wanted``."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, one in inspect.signature(factory).parameters.items() if one.kind in kinds][1:]


def create(name: str, wanted: Mapping[str, Range], options: Mapping[str, str] | None = None) -> Actuator:
    """Make an actuator that can set the wanted resources.

    Args:
        name: name of the actuator.
        wanted: range of each resource that will be set, by name.
        options: options of the actuator, as texts.

    Raises:
        ActuatorError: no such actuator is installed, it can't be imported, or it has no such option.
        Unavailable: it can't be used here.
        CannotSet: it can't set a wanted resource, or not in that range.
    """
    result, values = factory(name), dict(options or {})
    known = options_of(result)
    for option, value in values.items():
        if option not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise ActuatorError(f"actuator {name!r} has no option {option}={value}; {has}")
    return result(wanted, **values)


def introduce(actuator: Actuator, say: Callable[[str], None]) -> None:
    """Report by ``say`` how the actuator sets each of its resources, one line each."""
    for name, settable in actuator.resources().items():
        say(f"{name}: set by {settable.how}")
