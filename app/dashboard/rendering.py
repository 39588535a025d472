"""Pages from templates: everything that was given by someone is escaped, and nothing is run but the package's own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from app.charts import style
from app.charts.text import NOTHING, duration, moment, number
from app.dashboard.assets import address
from app.http.browsers import policy

POLICY = policy(
    script_src="'self'", style_src="'self'", img_src="'self' data:", connect_src="'self'", form_action="'self'"
)
HEADERS: Mapping[str, str] = {"Cache-Control": "no-store", **POLICY}
THEMES = {"light": style.config(), "dark": style.config(dark=True)}
MOST_PARTS = 20
"""Of a decision that are listed."""


def when(at: datetime | None) -> Markup:
    """As ``moment``, of which narrow screens leave the date out."""
    day, _, rest = moment(at).partition(" ")
    return Markup('<span class="date">{} </span>{}').format(day, rest) if rest else Markup("")


def plain(value: object) -> str:
    """A plain value as people write it: thousands apart, yes and no, names without underscores."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else cell(value).replace("_", " ")


def cell(value: object) -> str:
    """A cell of a figure's table."""
    if value is None:
        return NOTHING
    return number(value, 4) if isinstance(value, float) else str(value)


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("app.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {one.__name__: one for one in (moment, when, duration, cell, plain)}
    made.globals |= {"asset": address, "themes": THEMES, "MOST_PARTS": MOST_PARTS}
    return made


ENVIRONMENT = _environment()


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template's page, or part of one."""
    return HTMLResponse(ENVIRONMENT.get_template(template).render(**values), status, headers=dict(HEADERS))
