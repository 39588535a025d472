"""Rendering of pages from templates; static files; error pages."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.charts import figures
from app.charts.text import NOTHING, currency, duration, moment, number
from app.errors import NotFound, SignIn, StewardError
from app.http.caller import current_caller
from app.http.limits import policy
from app.keys.access import is_page
from app.nouns import OPERATIONS

# Static files come with the package; their URLs contain digests of their content.


STATIC = files("app.dashboard") / "static"
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = (
    "actions.js",
    "dashboard.css",
    "dashboard.js",
    "docs.css",
    "htmx.min.js",
    "icon.svg",
    "pico.min.css",
    "sse.min.js",
    "vega.js",
)
FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A static file: the digest in its URL, its content, and its content compressed by gzip."""

    digest: str
    plain: bytes
    packed: bytes


@cache
def asset(name: str) -> Asset:
    """Read and compress a static file, one of ``NAMES``; its digest is 16 hexadecimal digits of SHA-256; cached."""
    data = (STATIC / name).read_bytes()
    return Asset(hashlib.sha256(data).hexdigest()[:16], data, gzip.compress(data, 9, mtime=0))


@cache
def address(name: str) -> str:
    """URL of a static file; it changes with the content."""
    return f"/ui/static/{asset(name).digest}/{name}"


@router.get("/ui/static/{digest}/{name}")
def static(
    digest: Annotated[str, Path(max_length=64)],
    name: Annotated[str, Path(max_length=64)],
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """Send a static file named by its digest; raises NotFound for an unknown name."""
    if name not in NAMES or asset(name).digest != digest:
        raise NotFound(f"no file {name!r} of digest {digest!r}")
    result, headers = asset(name), {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
    kind = TYPES[name.rpartition(".")[2]]
    if "gzip" in accept_encoding:
        return Response(result.packed, media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response(result.plain, media_type=kind, headers=headers)


# Pages from templates: data are escaped, and only the package's own scripts run.


POLICY = policy(
    script_src="'self'", style_src="'self'", img_src="'self' data:", connect_src="'self'", form_action="'self'"
)
HEADERS: Mapping[str, str] = {"Cache-Control": "no-store", **POLICY}
THEMES = {"light": figures.config(), "dark": figures.config(dark=True)}
MOST_PARTS = 20
"""Number of parts of a decision that are listed."""


def when(at: datetime | None) -> Markup:
    """A time as HTML; narrow screens hide its date. Empty for None."""
    day, _, rest = moment(at).partition(" ")
    return Markup('<span class="date">{} </span>{}').format(day, rest) if rest else Markup("")


def plain(value: object) -> str:
    """A value as text: thousands separators, yes and no, names without underscores."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else cell(value).replace("_", " ")


def cell(value: object) -> str:
    """Text of a cell of a figure's table; “–” for None."""
    if value is None:
        return NOTHING
    return number(value, 4) if isinstance(value, float) else str(value)


def may(operation: str) -> bool:
    """Whether the caller of the current request may do an operation of the API, such as ``DELETE /runs/{run}``.

    KeyError if there is no such operation.
    """
    caller = current_caller.get()
    return caller is not None and bool(caller.scopes & set(OPERATIONS[operation].split()))


def _environment() -> Environment:
    jinja = Environment(
        loader=PackageLoader("app.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {one.__name__: one for one in (moment, when, duration, cell, plain)}
    jinja.globals |= {"may": may, "asset": address, "themes": THEMES, "MOST_PARTS": MOST_PARTS, "documentation": ""}
    jinja.globals["currency"] = currency
    return jinja


ENVIRONMENT = _environment()


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """HTTP response with a template rendered with ``values``."""
    return HTMLResponse(ENVIRONMENT.get_template(template).render(**values), status, headers=dict(HEADERS))


# Error pages for people, instead of JSON.


REMEDIES = {
    403: "Sign in with a key that may do this.",
    404: "It may have been deleted, or the address is not complete.",
    503: "Load the page again in a moment.",
}


def error_page(request: Request, error: StewardError) -> HTMLResponse | None:
    """An error as a page; None if the request isn't a browser's for a whole page, or redirects to sign-in."""
    if not is_page(request.scope) or "hx-request" in request.headers or isinstance(error, SignIn):
        return None
    remedy = REMEDIES.get(error.status, "")
    detail = "" if error.detail.lower() == error.title.lower() else error.detail
    detail = detail.removeprefix(f"{error.title.lower()}; ")
    if error.status == NotFound.status:
        detail = detail.partition("; ")[0]  # the rest is a request of the API
    words = {"title": error.title, "detail": detail, "remedy": remedy, "forbidden": error.status == 403}
    return page("error.html", error.status, section="", **words)
