"""Numbers by name as query parameters: ``allocation=gpus:4&allocation=cpus:8``."""

from __future__ import annotations

from collections.abc import Sequence

from app.errors import FieldError, Invalid


def pairs(parameter: str, given: Sequence[str]) -> dict[str, float]:
    """``name:value`` pairs as numbers by name.

    Raises:
        Invalid: a pair can't be read, or a name is given twice.
    """
    found: dict[str, float] = {}
    for text in given:
        name, separator, value = text.partition(":")
        number = _number(value)
        if not separator or number is None or name in found:
            message = "must be name:value with a number, each name once"
            raise Invalid(f"{parameter} {text!r} {message}", errors=[FieldError(f"/query/{parameter}", message, text)])
        found[name] = number
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
