"""Styles and scripts of the pages: they come with the package, under names that hold digests of what is in them."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Header, Path
from fastapi.responses import Response

from app.errors import NotFound

STATIC = files("app.dashboard") / "static"
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("dashboard.css", "dashboard.js", "htmx.min.js", "icon.svg", "pico.min.css", "sse.min.js", "vega.js")
FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is sent, plain and compressed."""

    digest: str
    plain: bytes
    packed: bytes


@cache
def asset(name: str) -> Asset:
    """One of ``NAMES``."""
    data = (STATIC / name).read_bytes()
    return Asset(hashlib.sha256(data).hexdigest()[:16], data, gzip.compress(data, 9, mtime=0))


@cache
def address(name: str) -> str:
    """Where a file is to be had; another one once there is something else in it."""
    return f"/ui/static/{asset(name).digest}/{name}"


@router.get("/ui/static/{digest}/{name}")
def static(
    digest: Annotated[str, Path(max_length=64)],
    name: Annotated[str, Path(max_length=64)],
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """A style or a script."""
    if name not in NAMES or asset(name).digest != digest:
        raise NotFound(f"no file {name!r} of digest {digest!r}")
    found, headers = asset(name), {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    kind = TYPES[name.rpartition(".")[2]]
    if "gzip" in accept_encoding:
        return Response(found.packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.plain, media_type=kind, headers=headers)
