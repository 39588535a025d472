"""Query parameters: their values, and which there may be; the same on every route."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import unquote_plus

from starlette.types import Scope

from app.kinds.contract.inputs import invalid

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
        InvalidInput: there is one.
    """
    for name, given in values.items():
        if name not in known:
            accepted = ", ".join(sorted(known)) or "none"
            raise invalid(f"/query/{name}", f"unknown parameter; known here: {accepted}", given[0])
        if len(given) > 1 and name not in lists:
            raise invalid(f"/query/{name}", "must be given once", given)
