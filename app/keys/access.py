"""Authorisation: the table of required scopes, its documentation in OpenAPI, and the sign-in cookie of pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, compile_path
from starlette.types import Scope

from app.http.caller import ADMIN, ALL
from app.http.limits import READING, OriginHeaders
from app.nouns import OPERATIONS

PUBLIC, RUN = "public", "run"
"""Words of the table beside scopes: no credential required; a run's own token is accepted."""

TABLE: dict[str, str] = {
    "GET /healthz": "public",
    "GET /readyz": "public",
    "GET /": "read",
    "GET /ui/static/{digest}/{name}": "public",
    "GET /ui/sign-in": "public",
    "POST /ui/sign-in": "public",
    "POST /ui/sign-out": "public",
    "GET /ui/workloads/{workload}": "read",
    "GET /ui/workloads/{workload}/agents/{version}": "read",
    "GET /ui/workloads/{workload}/changes": "read",
    "GET /ui/workloads/{workload}/spec": "read",
    "GET /ui/runs": "read",
    "GET /ui/runs.csv": "read",
    "GET /ui/compare": "read",
    "GET /ui/runs/{run}": "read",
    "GET /ui/runs/{run}/decisions": "read",
    "GET /ui/runs/{run}/changes": "read",
    "GET /ui/runs/{run}/others": "read",
    "GET /ui/runs/{run}/iterations.csv": "read",
    "GET /ui/jobs": "read",
    "GET /ui/jobs.csv": "read",
    "GET /ui/jobs/{job}": "read",
    "GET /ui/jobs/{job}/changes": "read",
    "GET /ui/evaluations": "read",
    "GET /ui/evaluations.csv": "read",
    "POST /ui/examples/{kind}": "train",
    "GET /docs": "read",
    "GET /docs/swagger-ui.css": "read",
    "GET /docs/swagger-ui-bundle.js": "read",
    "GET /openapi.json": "read",
    "GET /metrics": "read",
    **OPERATIONS,
}


class Need(NamedTuple):
    """Requirements of a route.

    Attributes:
        scopes: the caller needs one of these.
        public: whether no credential is required.
        run: whether the token of the run in the path is accepted.
    """

    scopes: frozenset[str]
    public: bool = False
    run: bool = False

    @property
    def words(self) -> list[str]:
        """The scopes in alphabetical order."""
        return sorted(self.scopes)


ANY = Need(ALL)
"""Requirement of unknown paths: any credential, before a 404 is answered."""


def need(method: str, template: str) -> Need:
    """Requirements of a route by method and path template; scope `admin` if the table doesn't list it."""
    words = TABLE.get(f"{method} {template}", ADMIN).split()
    return Need(frozenset(words) & ALL, PUBLIC in words, RUN in words)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return compile_path(template)[0]


class Access:
    """Requirements of all routes of an application.

    Args:
        routes: the routes, in the application's order.

    Raises:
        TypeError: a route has no path or methods.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._needs: dict[tuple[str, str], Need] = {}
        for route in iter_route_contexts(routes):
            if route.path is None or route.methods is None:
                raise TypeError(f"{route.original_route!r}: its required scopes are unknown")
            self._patterns[route.path] = _pattern(route.path)
            for method in route.methods - {"HEAD"}:
                self._needs[method, route.path] = need(method, route.path)

    def requirement(self, method: str, template: str) -> Need:
        """Requirements of a route by method and path template; KeyError if there is none."""
        return self._needs["GET" if method == "HEAD" else method, template]

    def of(self, method: str, path: str) -> tuple[Need, dict[str, str]]:
        """Requirements of a request by its path, and its path parameters; for an unknown path any scope and {}."""
        method = "GET" if method == "HEAD" else method
        for template, regex in self._patterns.items():
            match = regex.match(path)
            if match is not None and (method, template) in self._needs:
                return self._needs[method, template], match.groupdict()
        return ANY, {}


# OpenAPI documentation of required scopes.


BEARER = "bearer"
SCHEMES = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key (`stw_…`), a run's own token (`stw_run_…`), or a token of the identity provider. A "
        "service without keys, which listens on loopback only, requires none.",
    }
}
PUBLIC_LACKS = ("401", "403", "429")


def document_access(schema: dict[str, Any]) -> None:
    """Add the required scopes to each operation of the OpenAPI schema; changes ``schema``."""
    schema["components"]["securitySchemes"] = SCHEMES
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            needed = need(method.upper(), path)
            if needed.public:
                operation["security"] = []
                for status in PUBLIC_LACKS:
                    operation["responses"].pop(status, None)
            else:
                operation["security"] = [{BEARER: [*needed.words, *([RUN] if needed.run else ())]}]


# The sign-in cookie of browsers: HttpOnly and SameSite, with the key as its value.
#
# It grants the scopes of its key, but a write must also have an Origin or Sec-Fetch-Site header, which shows that a
# page
# of this service made it; ``app.http.limits.check_write`` has checked these headers.


NAME = "steward-key"
SIGN_IN = "/ui/sign-in"
AUTHORIZATION = b"authorization"
TELLING = (b"origin", b"sec-fetch-site")
LONGEST = 8192


def with_cookie(scope: Scope, headers: OriginHeaders) -> OriginHeaders:
    """The headers with the sign-in cookie's key as ``Authorization``, if there is no such header.

    A write needs an Origin or Sec-Fetch-Site header too; otherwise the cookie is ignored.
    """
    if AUTHORIZATION in headers:
        return headers
    key = _key(scope)
    detailed = scope["method"] in READING or any(name in headers for name in TELLING)
    return {**headers, AUTHORIZATION: f"Bearer {key}".encode("latin-1", "replace")} if key and detailed else headers


def _key(scope: Scope) -> str:
    text = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
    if not text or len(text) > LONGEST:
        return ""
    try:
        result = SimpleCookie(text.decode("latin-1")).get(NAME)
    except CookieError:
        return ""
    return "" if result is None else result.value


def is_page(scope: Scope) -> bool:
    """Whether a browser requests a page that requires signing in."""
    accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    path = scope["path"]
    return scope["method"] == "GET" and b"text/html" in accept and (path == "/" or path.startswith("/ui/"))
