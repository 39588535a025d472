"""The key that a browser has signed in with: a cookie that no script reads and no other site's page has sent along.

It is good for whatever its key is good for, but a write must also say, as browsers do and programs don't, that a page
of this service makes it; ``app.http.origin.check_write`` has then made sure that it is one.
"""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

from app.http.origin import READING, Headers

NAME = "steward-key"
SIGN_IN = "/ui/sign-in"
AUTHORIZATION = b"authorization"
TELLING = (b"origin", b"sec-fetch-site")
LONGEST = 8192


def with_cookie(scope: Scope, headers: Headers) -> Headers:
    """The headers with what the cookie says as ``Authorization``, where there is a cookie and nothing else."""
    if AUTHORIZATION in headers:
        return headers
    key = _key(scope)
    told = scope["method"] in READING or any(name in headers for name in TELLING)
    return {**headers, AUTHORIZATION: f"Bearer {key}".encode("latin-1", "replace")} if key and told else headers


def _key(scope: Scope) -> str:
    given = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
    if not given or len(given) > LONGEST:
        return ""
    try:
        found = SimpleCookie(given.decode("latin-1")).get(NAME)
    except CookieError:
        return ""
    return "" if found is None else found.value


def is_page(scope: Scope) -> bool:
    """Whether a browser asks for a page that people sign in for."""
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    path = scope["path"]
    return scope["method"] == "GET" and b"text/html" in accept and (path == "/" or path.startswith("/ui/"))
