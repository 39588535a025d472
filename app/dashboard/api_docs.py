"""``GET /docs``: interactive API documentation, served without any other host."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import fastapi_offline
from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, Response

from app.http.limits import inline, policy

STATIC = files(fastapi_offline) / "static"
FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
PARAMETERS: dict[str, Any] = {"validatorUrl": None}
"""Swagger UI's options: by default it sends the schema's address to an external validator."""

router = APIRouter(include_in_schema=False)


@cache
def _page() -> tuple[str, dict[str, str]]:
    """Swagger UI's page, and its content security policy for the inline script and the icons.

    Its inline styles can't be allowed by digests.
    """
    made = get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Steward",
        swagger_js_url="/docs/swagger-ui-bundle.js",
        swagger_css_url="/docs/swagger-ui.css",
        swagger_favicon_url="data:,",
        swagger_ui_parameters=PARAMETERS,
    )
    text = bytes(made.body).decode()
    headers = policy(
        script=inline(text, "script"),
        script_src="'self'",
        style_src="'self' 'unsafe-inline'",
        img_src="'self' data:",
        connect_src="'self'",
    )
    return text, headers


@router.get("/docs")
async def docs() -> Response:
    """The interactive documentation of the API (Swagger UI), under a policy that allows no other site."""
    text, headers = _page()
    return HTMLResponse(text, headers=headers)


@router.get("/docs/swagger-ui.css")
def style() -> Response:
    """The style sheet of Swagger UI, as CSS."""
    return _file("swagger-ui.css")


@router.get("/docs/swagger-ui-bundle.js")
def script() -> Response:
    """The script of Swagger UI, as JavaScript."""
    return _file("swagger-ui-bundle.js")


def _file(name: str) -> Response:
    return Response((STATIC / name).read_bytes(), media_type=FILES[name], headers={"Cache-Control": "max-age=86400"})
