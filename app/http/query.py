"""Validation of requests' characters, JSON nesting and query parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.types import Scope

from app.errors import FieldError, Invalid
from app.http.limits import is_upload
from app.kinds.contract.inputs import DEEPEST, TOO_DEEP, TWICE, deep_place, invalid, repeated_place

# Rejects values that can't be stored or are ambiguous, before any route reads them:
#
# NUL characters, lone surrogates, and JSON that is nested too deeply or repeats a member.


LARGE_BYTES = 1 << 16
"""Bytes of a body above which a check takes more than a millisecond."""
ESCAPED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")  # also finds whole pairs, which are looked at more closely
UNKEPT = re.compile("[\0\ud800-\udfff]")
MESSAGE = "must not contain NUL characters or unpaired surrogates"


async def check_body(body: bytes, *checks: Callable[[bytes], None]) -> None:
    """Run checks on a body, for a large one in a thread, so that the event loop isn't blocked.

    Raises:
        Invalid: a check fails.
    """
    for check in checks:
        if len(body) > LARGE_BYTES:
            await run_in_threadpool(check, body)
        else:
            check(body)


def check_address(path: Mapping[str, object], query: bytes) -> None:
    """Reject NUL characters in parameters of path and query; raises Invalid with the parameter's name."""
    for name, value in path.items():
        if "\0" in str(value):
            raise _invalid(f"/path/{name}", value)
    if b"%00" in query:
        for name, values in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if "\0" in name or "\0" in values:
                raise _invalid(f"/query/{name}", values)


def check_json(body: bytes) -> None:
    """Reject NUL characters and lone surrogates in a JSON body, and JSON that is nested too deeply.

    Malformed JSON is left to the decoder.

    Raises:
        Invalid: with a pointer to the string, to the object with the name, or to the deep value.
    """
    if body.count(b"[") + body.count(b"{") > DEEPEST and (place := deep_place(body)) is not None:
        raise Invalid(f"{place or '/'}: {TOO_DEEP}", errors=[FieldError(place, TOO_DEEP)])
    if b"\\u" not in body or ESCAPED.search(body) is None:
        return
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return
    for pointer, text in _strings(value):
        if UNKEPT.search(text) is not None:
            raise _invalid(pointer, text)


def check_names(body: bytes, members: int = -1) -> None:
    """Reject JSON that repeats a member's name within an object.

    Args:
        members: number of decoded members, -1: unknown; a body with no more names isn't parsed again.

    Raises:
        Invalid: the message has a pointer to the repeated member.
    """
    place = repeated_place(body, members)
    if place is not None:
        raise Invalid(f"{place or '/'}: {TWICE}", errors=[FieldError(place, TWICE)])


def _strings(value: Any) -> Iterator[tuple[str, str]]:
    """Yield (JSON pointer, string) of each string and member name in a JSON value; a name has its object's pointer."""
    left = [("", value)]
    while left:
        pointer, value = left.pop()
        if isinstance(value, str):
            yield pointer, value
        elif isinstance(value, dict):
            yield from ((pointer, name) for name in value)
            left += [(f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}", item) for name, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{pointer}/{number}", item) for number, item in enumerate(value)]


def _invalid(pointer: str, value: object) -> Invalid:
    return Invalid(f"{pointer or '/'}: {MESSAGE}", errors=[FieldError(pointer, MESSAGE, value)])


async def storable(request: Request) -> None:
    """Dependency of every route: runs ``check_address`` and, except for uploads, ``check_json`` and ``check_names``.
    Raises Invalid, as these do."""
    check_address(request.path_params, request.scope["query_string"])
    if not is_upload(request.scope):
        await check_body(await request.body(), check_json, check_names)


# Parsing and validation of query parameters, the same on every route.


Values = Mapping[str, list[str]]


def query_values(scope: Scope) -> dict[str, list[str]]:
    """Query parameters of a request: decoded values by name, in order."""
    values: dict[str, list[str]] = {}
    for part in scope["query_string"].decode("latin-1").split("&"):
        if part:
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            values.setdefault(name, []).append(value)
    return values


def check_query(values: Values, known: Collection[str], lists: Collection[str] = ()) -> None:
    """Reject unknown query parameters, and repeated ones that aren't lists; raises InvalidInput with the name."""
    for name, value in values.items():
        if name not in known:
            accepted = ", ".join(sorted(known)) or "none"
            raise invalid(f"/query/{name}", f"unknown parameter; accepted: {accepted}", value[0])
        if len(value) > 1 and name not in lists:
            raise invalid(f"/query/{name}", "must be given once", value)


# Dependency of all ordinary routes: a query may only contain declared parameters.


Names = frozenset[str]
_known: dict[Callable[..., Any], tuple[Names, Names]] = {}
"""Query parameters of each endpoint, and those that are lists."""


def _is_list(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "array" or any(map(_is_list, schema.get("anyOf", ())))


async def known_query(request: Request) -> None:
    """Dependency: raises InvalidInput for undeclared query parameters, and repeated ones that aren't lists.

    It is async without waiting, so that FastAPI uses no thread for it."""
    route = request.scope.get("route")
    if request.scope["query_string"] and isinstance(route, APIRoute):
        if route.endpoint not in _known:
            # The OpenAPI entry says which; generated without response models, which take a second for some routes
            plain = APIRoute(route.path, route.endpoint, response_model=None, openapi_extra=route.openapi_extra)
            (operations,) = get_openapi(title="", version="", routes=[plain])["paths"].values()
            parameters = [one for one in operations["get"].get("parameters", ()) if one["in"] == "query"]
            lists = frozenset(one["name"] for one in parameters if _is_list(one["schema"]))
            _known[route.endpoint] = (frozenset(one["name"] for one in parameters), lists)
        check_query(query_values(request.scope), *_known[route.endpoint])
