"""Query parameters: their values, and errors that point at them; the same on every route."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import unquote_plus

from starlette.types import Scope

from app.errors import FieldError, Invalid

LARGEST_ITERATION = 2**31 - 1
Values = Mapping[str, list[str]]


def query_values(scope: Scope) -> dict[str, list[str]]:
    """The query's values by name, in order."""
    values: dict[str, list[str]] = {}
    for part in scope["query_string"].decode("latin-1").split("&"):
        if part:
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            values.setdefault(name, []).append(value)
    return values


def check_query(values: Values, known: Collection[str], lists: Collection[str] = ()) -> None:
    """Refuse parameters that aren't ``known``, and those given twice that aren't ``lists``.

    Raises:
        Invalid: there is one.
    """
    for name, given in values.items():
        if name not in known:
            accepted = ", ".join(sorted(known)) or "none"
            raise invalid(f"/query/{name}", f"unknown parameter; known here: {accepted}", given[0])
        if len(given) > 1 and name not in lists:
            raise invalid(f"/query/{name}", "must be given once", given)


def whole_number(values: list[str], name: str) -> int:
    """The one value of a query parameter as a number, 0 or greater."""
    if len(values) > 1:
        raise invalid(f"/query/{name}", "must be given once", values)
    return number_at(f"/query/{name}", values[0])


def number_at(pointer: str, text: str) -> int:
    """A whole number, 0 or greater, as it stands in a path or a query."""
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > LARGEST_ITERATION:
        raise invalid(pointer, "must be a whole number, 0 or greater", text)
    return int(text)


def invalid(pointer: str, message: str, value: object) -> Invalid:
    """What is wrong with one field."""
    return Invalid(f"{pointer}: {message}", errors=[FieldError(pointer, message, value)])
