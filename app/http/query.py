"""Queries of ``GET /decision``: their values, and errors that point at them."""

from __future__ import annotations

from app.errors import FieldError, Invalid

LARGEST_ITERATION = 2**31 - 1


def whole_number(values: list[str], name: str) -> int:
    """The one value of a query parameter as a number, 0 or greater."""
    text = values[0]
    if len(values) > 1:
        raise invalid(f"/query/{name}", "must be given once", values)
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) > LARGEST_ITERATION:
        raise invalid(f"/query/{name}", "must be a whole number, 0 or greater", text)
    return int(text)


def invalid(pointer: str, message: str, value: object) -> Invalid:
    """What is wrong with one field."""
    return Invalid(f"{pointer}: {message}", errors=[FieldError(pointer, message, value)])
