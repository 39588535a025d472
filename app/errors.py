"""Errors that callers see; each has an HTTP status, a type URI and a title (RFC 9457).

StewardError
├── Unauthorised (401) ── SignIn (303)   ├── Forbidden (403)    ├── NotFound (404)     ├── NotAcceptable (406)
├── Conflict (409)       ├── TooLarge (413)     ├── UnsupportedMedia (415)
├── Misdirected (421)    ├── Invalid (422)      ├── TooManyRequests (429)
├── Unavailable (503) ── Timeout, DiskFull (503)
└── Broken (500)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from app.kinds.contract.inputs import MOST_ERRORS, Contradiction, InvalidInput

Limit = Literal["requests", "reports", "streams", "uploads", "jobs", "executions"]
"""Limits of a tenant: of its request rate, of concurrent work, and of stored executions."""


@dataclass(frozen=True)
class FieldError:
    """One invalid field: JSON pointer into the body (or `/query/name`), what is accepted, and the given value."""

    pointer: str
    message: str
    value: Any = None


class StewardError(Exception):
    """Base of all errors that callers see; `detail` names the field, its value and what is accepted.

    Only the first ``MOST_ERRORS`` field errors are kept. `retry_after` is in seconds; None: unknown.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "/problems/internal"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors[:MOST_ERRORS])
        self.retry_after = retry_after
        self.headers = dict(headers or {})


class BadRequest(StewardError):
    """The request can't be read, e.g. its body ended early."""

    status, type, title = 400, "/problems/bad-request", "Bad request"


class Unauthorised(StewardError):
    """The credential is missing or invalid."""

    status, type, title = 401, "/problems/unauthorised", "Unauthorised"


class SignIn(Unauthorised):
    """The credential of a page's request is missing or invalid; the browser is redirected to sign-in."""

    status, type, title = 303, "/problems/sign-in", "Sign in"


class Forbidden(StewardError):
    """The credential doesn't permit the request, or a page of another origin made it."""

    status, type, title = 403, "/problems/forbidden", "Forbidden"


class NotFound(StewardError):
    """The object does not exist, or belongs to another tenant."""

    status, type, title = 404, "/problems/not-found", "Not found"


class NotAcceptable(StewardError):
    """None of the media types that the caller accepts can be produced."""

    status, type, title = 406, "/problems/not-acceptable", "Not acceptable"


class Conflict(StewardError):
    """The request contradicts the present state."""

    status, type, title = 409, "/problems/conflict", "Conflict"


class TooLarge(StewardError):
    """The request's body exceeds its size limit."""

    status, type, title = 413, "/problems/too-large", "Body too large"


class UnsupportedMedia(StewardError):
    """The content type is not one of those accepted."""

    status, type, title = 415, "/problems/unsupported-media", "Unsupported media type"


class Misdirected(StewardError):
    """The Host header names a host that this service doesn't serve."""

    status, type, title = 421, "/problems/misdirected", "Misdirected request"


class Invalid(StewardError):
    """The body or a parameter is invalid; `errors` names each field."""

    status, type, title = 422, "/problems/invalid", "Invalid input"


class TooManyRequests(StewardError):
    """A rate limit or quota is exceeded; `retry_after` says when to try again.

    Args:
        detail: which limit, and what is accepted.
        limit: its name in the metric `steward_refusals_total`.
        retry_after: in seconds; None: unknown.
    """

    status, type, title = 429, "/problems/too-many-requests", "Too many requests"

    def __init__(self, detail: str, limit: Limit = "requests", *, retry_after: int | None = None) -> None:
        super().__init__(detail, retry_after=retry_after)
        self.limit = limit


class Unavailable(StewardError):
    """A dependency such as the database is unavailable; nothing was written."""

    status, type, title = 503, "/problems/unavailable", "Unavailable"


class Timeout(Unavailable):
    """The request exceeded its time limit."""

    type, title = "/problems/timeout", "Timed out"


class DiskFull(Unavailable):
    """The database's disk is full."""

    type, title = "/problems/disk-full", "Disk full"


class Broken(StewardError):
    """A stored row can't be read; repeating the request doesn't help."""

    type, title = "/problems/broken-row", "Stored row is broken"


def problem(error: StewardError, instance: str | None = None) -> dict[str, Any]:
    """The RFC 9457 document of an error; `instance` is the path of the failed request or job, None: without."""
    document: dict[str, Any] = {
        "type": error.type,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
    }
    if instance is not None:
        document["instance"] = instance
    if error.errors or error.status == Invalid.status:
        document["errors"] = [
            {"pointer": item.pointer, "message": item.message, "value": item.value} for item in error.errors
        ]
    return document


def as_steward_error(error: InvalidInput) -> StewardError:
    """A kind's InvalidInput as an error for callers: Conflict for a Contradiction, else Invalid."""
    family = Conflict if isinstance(error, Contradiction) else Invalid
    return family(str(error), errors=[FieldError(*issue) for issue in error.errors])
