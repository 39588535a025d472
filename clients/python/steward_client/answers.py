"""Whose answer it is: the service's own, or that of a proxy, a portal or another program between it and the caller.

The service refuses by problem documents (RFC 9457): of type ``application/problem+json``, with a ``type`` that begins
with ``/problems/``, and the response's status. What it answers otherwise is a success of the media type that was asked
for. Everything else is somebody else's, and tells nothing of what was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
Read = Callable[[httpx.Response], T]
"""Reads a success; raises one of ``UNREADABLE`` where it is none of what was asked for."""

PROBLEM, JSON = "application/problem+json", "application/json"
OWN_TYPES = "/problems/"
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def document(answer: httpx.Response) -> dict[str, Any]:
    """The object that an answer has as JSON.

    Raises:
        ValueError, RecursionError: it is none.
    """
    found = _of_type(answer, JSON).json()
    if not isinstance(found, dict):
        raise ValueError(f"no object, but {type(found).__name__}")
    return found


def table(answer: httpx.Response) -> str:
    """The text of an answer that is CSV.

    Raises:
        ValueError: it is none.
    """
    return _of_type(answer, "text/csv").text


def artifact(answer: httpx.Response) -> bytes:
    """The bytes of an answer that is a file.

    Raises:
        ValueError: it is a page.
    """
    return _of_type(answer, "application/").content


def nothing(answer: httpx.Response) -> None:
    """An answer without content.

    Raises:
        ValueError: it has some.
    """
    if answer.content:
        raise ValueError(f"{len(answer.content)} bytes where none are expected")


def refusal(answer: httpx.Response) -> dict[str, Any] | None:
    """The service's own problem document; None: there is none, somebody else answered."""
    try:
        found = _of_type(answer, PROBLEM).json()
    except UNREADABLE:
        return None
    own = isinstance(found, dict) and str(found.get("type", "")).startswith(OWN_TYPES)
    return found if own and found.get("status") == answer.status_code else None


def _of_type(answer: httpx.Response, wanted: str) -> httpx.Response:
    said = answer.headers.get("content-type", "")
    if not said.lower().startswith(wanted):
        raise ValueError(f"{said or 'no media type'} where {wanted} is expected")
    return answer
