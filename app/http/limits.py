"""Limits of a request: body length, media type, origin, host and method; security headers of responses."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from fastapi import Request
from starlette.routing import Match
from starlette.types import Scope

from app.errors import BadRequest, FieldError, Forbidden, Misdirected, TooLarge, UnsupportedMedia
from app.settings import Settings

JSON = b"application/json"
HOT_BYTES = 4 << 20
MOST_VALUES = 50_000
"""Values in the JSON of an ordinary request: each may give several errors, and is checked on the event loop."""
FORM, FORMS = b"application/x-www-form-urlencoded", ("/ui/sign-in", "/ui/sign-out")
"""Media type of HTML forms, and the paths that accept it."""


class Limits(NamedTuple):
    """Limits of one request.

    Attributes:
        body_bytes: largest body, in bytes.
        seconds: longest time until the response begins.
        json: whether the body must be plain JSON.
    """

    body_bytes: int
    seconds: float
    json: bool


def of_json(settings: Settings) -> Limits:
    """Limits of all requests except uploads and those to hot routes, which the gateway serves itself."""
    return Limits(settings.json_limit_bytes, settings.request_timeout_seconds, json=True)


def of_hot(settings: Settings) -> Limits:
    """Limits of a request to a hot route, served by the gateway: a smaller body, as decoding blocks the interpreter."""
    return of_json(settings)._replace(body_bytes=min(settings.json_limit_bytes, HOT_BYTES))


def of_upload(settings: Settings) -> Limits:
    """Limits of a sample upload, whose endpoint checks media type and compression itself."""
    return Limits(settings.upload_limit_bytes, settings.upload_timeout_seconds, json=False)


def is_upload(scope: Scope) -> bool:
    """Whether this is a sample upload."""
    return scope["method"] == "POST" and str(scope["path"]).endswith("/samples")


def check_headers(scope: Scope, limits: Limits) -> None:
    """Reject a body before it is read, by its headers.

    Raises:
        TooLarge: its declared length exceeds the limit.
        UnsupportedMedia: its content type or encoding isn't plain JSON, where that is required.
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
        raise _unsupported_media("Content-Type", "application/json", media)
    if encoding.strip().lower() not in (b"", b"identity"):
        raise _unsupported_media("Content-Encoding", "identity", encoding)


def _unsupported_media(header: str, accepted: str, data: bytes) -> UnsupportedMedia:
    value, message = data.decode("latin-1"), f"must be {accepted}"
    field = FieldError(f"/header/{header}", message, value)
    return UnsupportedMedia(f"{header} {message}, not {value!r}", errors=[field])


def values(text: bytes) -> int:
    """Estimated number of values in JSON text: at most one too low, and too high if strings contain commas."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def too_many_values() -> TooLarge:
    """The error of JSON with more than ``MOST_VALUES`` values."""
    return TooLarge(
        f"the body has more than {MOST_VALUES:,} values, counted by commas and opening brackets; send fewer at once"
    )


def too_large(limit: int, size: int) -> TooLarge:
    """The error of a body with more than ``limit`` bytes; ``size``: bytes known so far."""
    return TooLarge(f"the body has {size:,} bytes or more; at most {limit:,} are accepted")


# The framework knows the methods of each route, but not of all routes with the same path.


METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def allowed_methods(request: Request) -> list[str]:
    """Methods that the request's path accepts, in alphabetical order; HEAD wherever GET is."""
    routes = request.app.router.routes

    def matches_route(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    results = [method for method in METHODS if matches_route(method)]
    return sorted([*results, "HEAD"]) if "GET" in results else results


# Security headers: browsers run, load, frame and guess nothing that a page's policy does not name.


Headers = Sequence[tuple[bytes, bytes]]

POLICY = b"content-security-policy"
NONE = {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'"}
NOTHING = "; ".join(f"{name} {source}" for name, source in NONE.items())
NO_GUESSING = (b"x-content-type-options", b"nosniff")
COMMON: Headers = (
    NO_GUESSING,
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def add_security_headers(headers: Headers) -> Headers:
    """A response's headers with the common security headers; an own content security policy replaces the common one."""
    own = any(name == POLICY for name, _ in headers)
    return [*headers, *COMMON] if own else [*headers, *COMMON, (POLICY, NOTHING.encode())]


def policy(*, style: str = "", script: str = "", **sources: str) -> dict[str, str]:
    """Content-Security-Policy header of a page that allows only one inline style and one inline script, by SHA-256.

    Args:
        style, script: exact text between the tags.
        sources: additional sources by directive: ``img_src="data:"``.
    """
    allowed = {name.replace("_", "-"): source for name, source in sources.items()}
    for directive, text in (("style-src", style), ("script-src", script)):
        if text:
            allowed[directive] = f"'sha256-{_digest(text)}' {allowed.get(directive, '')}".rstrip()
    return {"Content-Security-Policy": "; ".join(f"{name} {origins}" for name, origins in {**NONE, **allowed}.items())}


def inline(page: str, tag: str) -> str:
    """Text between a page's first opening and closing tag of this name; empty without one."""
    match = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return "" if match is None else match[1]


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# Checks of the Host and Origin headers.
#
# A service without keys trusts all callers on loopback, and a browser on this machine is one, for any page that it
# shows. So the host is checked against DNS rebinding, and writes are checked against cross-site requests by their
# origin.


LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_PAGES = (b"same-origin", b"none")

OriginHeaders = Mapping[bytes, bytes]


def check_host(headers: OriginHeaders, hosts: Collection[str]) -> None:
    """Check the Host header; raises Misdirected if it is missing or none of ``hosts``."""
    text = headers.get(b"host", b"").decode("latin-1").lower()
    # The name or address of a Host header
    name, colon, port = text.rpartition(":")
    host = name if colon and port.isdigit() and (not name.count(":") or name.endswith("]")) else text
    if host not in hosts:
        accepted = ", ".join(sorted(hosts))
        raise Misdirected(f"Host {text[:200]!r} is not this service's; accepted: {accepted} (STEWARD_ALLOWED_HOSTS)")


def check_write(method: str, headers: OriginHeaders, origins: Collection[str]) -> None:
    """Check that a write doesn't come from a page of another origin; programs send no Origin or Sec-Fetch-Site header.

    ``origins``: additional accepted origins. Raises Forbidden for another page's write.
    """
    if method in READING or (b"origin" not in headers and b"sec-fetch-site" not in headers):
        return
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if origin in origins:
        return
    site = headers.get(b"sec-fetch-site")
    own = origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower()
    if (site is not None and site not in OWN_PAGES) or (origin and not own):
        raise Forbidden(f"a page of {origin[:200] or 'another site'} may not write here (STEWARD_ALLOWED_ORIGINS)")


def single(pairs: Collection[tuple[bytes, bytes]], names: frozenset[bytes]) -> dict[bytes, bytes]:
    """The headers of these names; raises BadRequest if one is repeated, as two readers could take different values."""
    chunks: dict[bytes, bytes] = {}
    for name, value in pairs:
        if name in names:
            if name in chunks:
                raise BadRequest(f"{name.decode().title()} must be given once")
            chunks[name] = value
    return chunks
