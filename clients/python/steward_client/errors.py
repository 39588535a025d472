"""The client's errors, all a ``ClientError``: refusals (``StewardError``) and missing answers (``Unreachable``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

UNKNOWN, PARTS = "unknown name", 3


class ClientError(Exception):
    """What the client raises: the service refused, could not be heard, or what it was given can't be used."""


class StewardError(ClientError):
    """The service refused a call: a problem document (RFC 9457).

    Attributes:
        status: HTTP status.
        type, title, detail: what went wrong; ``type`` is a stable URI.
        errors: for each offending field its ``pointer``, a ``message`` and the ``value`` given.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", "error"))
        self.detail = str(problem.get("detail", ""))
        self.errors: Sequence[Mapping[str, Any]] = problem.get("errors") or ()
        fields = [(f"{e.get('pointer')}: {e.get('message')}", e.get("value")) for e in self.errors]
        more = "".join(f"; {text} (got {value!r})" for text, value in fields if text not in self.detail)
        super().__init__(f"{self.status} {self.title}: {self.detail}{more}")

    @property
    def unknown(self) -> set[tuple[str, str]]:
        """Metrics and features that the service does not know, as (part, name)."""
        found = [
            str(e.get("pointer", "")).split("/") for e in self.errors if str(e.get("message", "")).startswith(UNKNOWN)
        ]
        return {(path[1], path[2]) for path in found if len(path) == PARTS and path[1] in ("metrics", "features")}

    @classmethod
    def of(cls, response: httpx.Response) -> "StewardError":
        """The error that a response carries, whoever answered."""
        try:
            problem = response.json()
        except (ValueError, RecursionError):
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": response.reason_phrase, "detail": " ".join(response.text[:500].split())}
        return cls(response.status_code, problem)


class Unreachable(ClientError):
    """The service did not answer in time; the last attempt's error is the cause.

    Attributes:
        asked: the service's ``Retry-After`` in seconds; 0 if it sent none.
    """

    def __init__(self, message: str, asked: float = 0.0) -> None:
        super().__init__(message)
        self.asked = asked
