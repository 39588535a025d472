"""Bodies of reports: read fast, and where that fails read again by Pydantic, whose errors name each field."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from app.kinds.contract.inputs import TOO_DEEP, deep_place, invalid
from app.kinds.contract.row_reading import first_issue

LONGEST_NAMED = 1 << 15
"""Bytes of the longest body that is read again to name each field that is wrong."""
Encoded = TypeVar("Encoded")


def decoded(body: bytes, decoder: msgspec.json.Decoder[Encoded], model: type[BaseModel], **dumped: Any) -> Encoded:
    """The report.

    Args:
        decoder: of the fast twin of ``model``.
        model: what a report may say.
        dumped: options of ``model_dump`` that make the twin of one.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if len(body) > LONGEST_NAMED:  # each of its values may be wrong: the first of them is told
            issue = first_issue(body, error)
            raise invalid(issue.pointer, issue.message, issue.value) from error
        return named(body, decoder.type, model, **dumped)


def named(body: bytes, twin: type[Encoded], model: type[BaseModel], **dumped: Any) -> Encoded:
    """The report as Pydantic reads it; see ``decoded``."""
    place = deep_place(body)
    if place is not None:
        raise invalid(place, TOO_DEEP, None)
    return msgspec.convert(model.model_validate_json(body, strict=True).model_dump(**dumped), twin)
