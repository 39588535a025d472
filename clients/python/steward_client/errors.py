"""The client's errors, all a ``ClientError``: refusals (``StewardError``), missing responses (``Unreachable``)."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

UNKNOWN, EXTRA, PARTS = "unknown name", "extra field", 3


class ClientError(Exception):
    """Base of the client's errors: the service refused or didn't respond, or an argument can't be used."""


class StewardError(ClientError):
    """The service refused a call by a problem document (RFC 9457).

    Attributes:
        status: HTTP status.
        type, title, detail: URI of the problem's type, which is stable; its name; a description.
        errors: for each invalid field its ``pointer``, a ``message`` and the given ``value``.
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
        """Metrics and features unknown to the service, as pairs of part (``metrics``, ``features``) and name."""
        parts = [
            str(e.get("pointer", "")).split("/") for e in self.errors if str(e.get("message", "")).startswith(UNKNOWN)
        ]
        return {(path[1], path[2]) for path in parts if len(path) == PARTS and path[1] in ("metrics", "features")}

    @property
    def unknown_members(self) -> set[str]:
        """Members of the body that the service doesn't have, such as those of a later version."""
        pointers = [str(e.get("pointer", "")) for e in self.errors if str(e.get("message", "")).startswith(EXTRA)]
        return {pointer[1:] for pointer in pointers if pointer.count("/") == 1}

    @classmethod
    def of(cls, response: httpx.Response) -> "StewardError":
        """The error in a response; for a response that isn't the service's, its status and first 500 characters."""
        try:
            problem = response.json()
        except (ValueError, RecursionError):
            problem = None
        if not isinstance(problem, dict):
            problem = {"title": response.reason_phrase, "detail": " ".join(response.text[:500].split())}
        return cls(response.status_code, problem)


class Unreachable(ClientError):
    """The service didn't respond in time; the exception's cause is the last attempt's error.

    Attributes:
        retry_after: the service's ``Retry-After`` in seconds; 0 if it sent none.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class CapReached(KeyboardInterrupt):
    """The work stops at a cap: a run that is left with it is cancelled, with the outcome ``cap_reached``."""
