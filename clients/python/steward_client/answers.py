"""Checks that a response is the service's own, and not that of a proxy, a portal or another program.

The service refuses calls by problem documents (RFC 9457): of type ``application/problem+json``, with a ``type`` that
begins with ``/problems/``, and the response's status. Other responses of the service are successes of the requested
media type. Everything else is another program's response, and says nothing about the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import httpx

T = TypeVar("T")
Read = Callable[[httpx.Response], T]
"""Parses a success; raises one of ``UNREADABLE`` if it isn't the requested content."""

PROBLEM, JSON = "application/problem+json", "application/json"
OWN_TYPES = "/problems/"
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


def document(answer: httpx.Response) -> dict[str, Any]:
    """The JSON object in a response; raises ValueError or RecursionError if the response contains none."""
    body = _of_type(answer, JSON).json()
    if not isinstance(body, dict):
        raise ValueError(f"no object, but {type(body).__name__}")
    return body


def table(answer: httpx.Response) -> str:
    """The CSV text in a response; raises ValueError if it has another media type."""
    return _of_type(answer, "text/csv").text


def artifact(answer: httpx.Response) -> bytes:
    """The bytes of a file in a response; raises ValueError if its media type isn't ``application/…``."""
    return _of_type(answer, "application/").content


def nothing(answer: httpx.Response) -> None:
    """Check that a response has no content; raises ValueError if it has any."""
    if answer.content:
        raise ValueError(f"{len(answer.content)} bytes where none are expected")


def refusal(answer: httpx.Response) -> dict[str, Any] | None:
    """The service's problem document in a response; None if the response contains none or is another program's."""
    try:
        body = _of_type(answer, PROBLEM).json()
    except UNREADABLE:
        return None
    own = isinstance(body, dict) and str(body.get("type", "")).startswith(OWN_TYPES)
    return body if own and body.get("status") == answer.status_code else None


def _of_type(answer: httpx.Response, wanted: str) -> httpx.Response:
    content_type = answer.headers.get("content-type", "")
    if not content_type.lower().startswith(wanted):
        raise ValueError(f"{content_type or 'no media type'} where {wanted} is expected")
    return answer
