"""What a request may be, told by its headers alone: its length, its media type, its packing, its time."""

from __future__ import annotations

from typing import NamedTuple

from starlette.types import Scope

from app.errors import FieldError, TooLarge, UnsupportedMedia
from app.settings import Settings

JSON = b"application/json"
HOT_BYTES = 4 << 20
MOST_VALUES = 50_000
"""In the JSON of an ordinary route: each of them may be wrong in several ways, and is looked at on the event loop."""
FORM, FORMS = b"application/x-www-form-urlencoded", ("/ui/sign-in", "/ui/sign-out")
"""What browsers send of forms, and where that is taken."""


class Limits(NamedTuple):
    """Limits of one request.

    Attributes:
        body_bytes: its longest body.
        seconds: the longest time in which it is answered.
        json: whether its body must be plain JSON.
    """

    body_bytes: int
    seconds: float
    json: bool


def of_json(settings: Settings) -> Limits:
    """The limits of every request but uploads."""
    return Limits(settings.json_limit_bytes, settings.request_timeout_seconds, json=True)


def of_hot(settings: Settings) -> Limits:
    """The limits of a request to a hot route: a decoder holds the interpreter until it has read a whole body."""
    return of_json(settings)._replace(body_bytes=min(settings.json_limit_bytes, HOT_BYTES))


def of_upload(settings: Settings) -> Limits:
    """The limits of a sample upload, whose endpoint looks at media type and packing itself."""
    return Limits(settings.upload_limit_bytes, settings.upload_timeout_seconds, json=False)


def is_upload(scope: Scope) -> bool:
    """Whether this is a sample upload."""
    return scope["method"] == "POST" and str(scope["path"]).endswith("/samples")


def check_headers(scope: Scope, limits: Limits) -> None:
    """Refuse a body unread that is declared too long, or is no plain JSON where that is wanted.

    Raises:
        TooLarge: by its declared length.
        UnsupportedMedia: by its content type or encoding.
    """
    length, media, encoding = b"", b"", b"identity"
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = value
        elif name == b"content-type":
            media = value
        elif name == b"content-encoding":
            encoding = value
        elif name == b"transfer-encoding":
            length = value
    if not length or length == b"0":
        return
    if length.isdigit() and int(length) > limits.body_bytes:
        raise too_large(limits.body_bytes, int(length))
    if limits.json and (media != JSON or encoding != b"identity"):
        _check_json(media, encoding, form=scope["path"] in FORMS)


def _check_json(media: bytes, encoding: bytes, *, form: bool) -> None:
    plain = media.partition(b";")[0].strip().lower()
    if form and plain == FORM:
        return
    if plain != JSON and not (plain.startswith(b"application/") and plain.endswith(b"+json")):
        raise _unsupported("Content-Type", "application/json", media)
    if encoding.strip().lower() not in (b"", b"identity"):
        raise _unsupported("Content-Encoding", "identity", encoding)


def _unsupported(header: str, accepted: str, given: bytes) -> UnsupportedMedia:
    value, message = given.decode("latin-1"), f"must be {accepted}"
    field = FieldError(f"/header/{header}", message, value)
    return UnsupportedMedia(f"{header} {message}, not {value!r}", errors=[field])


def values(text: bytes) -> int:
    """About how many values JSON holds: never fewer than it does, at least by one; commas in strings count, too."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def too_many_values() -> TooLarge:
    """The error of JSON with more than ``MOST_VALUES`` values."""
    return TooLarge(
        f"the body holds more than {MOST_VALUES:,} values, of which commas and opening brackets are counted; "
        "send less at once"
    )


def too_large(limit: int, size: int) -> TooLarge:
    """The error of a body beyond the limit."""
    return TooLarge(f"the body has {size:,} bytes or more; at most {limit:,} are accepted")
