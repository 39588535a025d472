"""Refuses what can't be kept, or read in one way only, before any route looks at it.

That is: NUL and halves of surrogate pairs, and JSON that is nested too deeply or names a member twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from app.errors import FieldError, Invalid
from app.http.limits import is_upload
from app.kinds.contract.nesting import DEEPEST, TOO_DEEP, TWICE, deep_place, repeated_place

LARGE_BYTES = 1 << 16
"""Of a body, beyond which reading it takes more than a millisecond."""
ESCAPED = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")  # also finds whole pairs, which are looked at more closely
UNKEPT = re.compile("[\0\ud800-\udfff]")
MESSAGE = "must hold no NUL character and no half of a surrogate pair"


async def check_body(body: bytes, *checks: Callable[[bytes], None]) -> None:
    """Check a body: a large one in a thread, so that the event loop goes on meanwhile.

    Raises:
        Invalid: a check refuses it.
    """
    for check in checks:
        if len(body) > LARGE_BYTES:
            await run_in_threadpool(check, body)
        else:
            check(body)


def check_address(path: Mapping[str, object], query: bytes) -> None:
    """Refuse such characters in the parameters of path and query.

    Raises:
        Invalid: names the parameter.
    """
    for name, value in path.items():
        if "\0" in str(value):
            raise _invalid(f"/path/{name}", value)
    if b"%00" in query:
        for name, given in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
            if "\0" in name or "\0" in given:
                raise _invalid(f"/query/{name}", given)


def check_json(body: bytes) -> None:
    """Refuse such characters in the strings and names of a JSON body, and what is nested too deeply.

    A body that can't be read is left to its reader.

    Raises:
        Invalid: points to the string, to the object that holds the name, or to what is too deep.
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
    """Refuse JSON that names a member twice.

    Args:
        members: that were read of it, as far as is known: where it can't name more, it isn't read again.

    Raises:
        Invalid: points to the member.
    """
    place = repeated_place(body, members)
    if place is not None:
        raise Invalid(f"{place or '/'}: {TWICE}", errors=[FieldError(place, TWICE)])


def _strings(value: Any) -> Iterator[tuple[str, str]]:
    """All strings and names in a JSON value, with pointers; names first."""
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
    """A dependency of every route; the body of an upload is read, and checked, as it comes in."""
    check_address(request.path_params, request.scope["query_string"])
    if not is_upload(request.scope):
        await check_body(await request.body(), check_json, check_names)
