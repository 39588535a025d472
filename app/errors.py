"""The one tree of errors a caller can meet; each carries its HTTP status, type URI and title (RFC 9457).

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
from typing import Any, ClassVar

from app.kinds.contract.inputs import MOST_ERRORS, Contradiction, InvalidInput


@dataclass(frozen=True)
class FieldError:
    """One offending field: JSON pointer into the body (or `/query/name`), what is wrong, and the value given."""

    pointer: str
    message: str
    value: Any = None


class StewardError(Exception):
    """Base of all errors that a caller is told about; `detail` names the field, its value and what is accepted.

    Of many offending fields the first ``MOST_ERRORS`` are told.
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
    """The request cannot be read at all, e.g. its body ended early."""

    status, type, title = 400, "/problems/bad-request", "Bad request"


class Unauthorised(StewardError):
    """No key, or one that isn't valid."""

    status, type, title = 401, "/problems/unauthorised", "Unauthorised"


class SignIn(Unauthorised):
    """The same of a page that a person asks for, who is sent to where one signs in."""

    status, type, title = 303, "/problems/sign-in", "Sign in"


class Forbidden(StewardError):
    """A valid key that may not do this, or a request that a foreign page has a browser make."""

    status, type, title = 403, "/problems/forbidden", "Forbidden"


class NotFound(StewardError):
    """No such thing under that name."""

    status, type, title = 404, "/problems/not-found", "Not found"


class NotAcceptable(StewardError):
    """None of the media types that the caller accepts can be produced."""

    status, type, title = 406, "/problems/not-acceptable", "Not acceptable"


class Conflict(StewardError):
    """The request contradicts what is already there."""

    status, type, title = 409, "/problems/conflict", "Conflict"


class TooLarge(StewardError):
    """The body exceeds the limit."""

    status, type, title = 413, "/problems/too-large", "Body too large"


class UnsupportedMedia(StewardError):
    """The content type is not one of those accepted."""

    status, type, title = 415, "/problems/unsupported-media", "Unsupported media type"


class Misdirected(StewardError):
    """The request names a host that isn't this service's."""

    status, type, title = 421, "/problems/misdirected", "Misdirected request"


class Invalid(StewardError):
    """The body or a parameter is wrong; `errors` names each field."""

    status, type, title = 422, "/problems/invalid", "Invalid input"


class TooManyRequests(StewardError):
    """The caller is too fast; `retry_after` says when to come back."""

    status, type, title = 429, "/problems/too-many-requests", "Too many requests"


class Unavailable(StewardError):
    """Something Steward needs is away for the moment; nothing was written."""

    status, type, title = 503, "/problems/unavailable", "Unavailable"


class Timeout(Unavailable):
    """The request took too long and was ended."""

    type, title = "/problems/timeout", "Timed out"


class DiskFull(Unavailable):
    """The database has no room left on its disk."""

    type, title = "/problems/disk-full", "Disk full"


class Broken(StewardError):
    """Something that is stored can't be read any more; asking otherwise does not help."""

    type, title = "/problems/broken-row", "Stored row is broken"


def problem(error: StewardError, instance: str | None = None) -> dict[str, Any]:
    """The RFC 9457 document of an error; `instance` is the path of the request or job that met it."""
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


def refused(error: InvalidInput) -> StewardError:
    """What a kind refuses, as the caller is told."""
    family = Conflict if isinstance(error, Contradiction) else Invalid
    return family(str(error), errors=[FieldError(*issue) for issue in error.errors])
