"""``GET /docs``: interactive API documentation, served without any other host."""

from __future__ import annotations

from importlib.resources import files

import fastapi_offline
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from app.dashboard.rendering import ENVIRONMENT
from app.http.limits import inline, policy

STATIC = files(fastapi_offline) / "static"
FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
PAGE = ENVIRONMENT.get_template("docs.html").render()
HEADERS = policy(
    script=inline(PAGE, "script"),
    script_src="'self'",
    style_src="'self' 'unsafe-inline'",  # the inline styles of Swagger UI can't be allowed by digests
    img_src="'self' data:",
    connect_src="'self'",
)

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def docs() -> Response:
    """The interactive documentation of the API (Swagger UI), under a policy that allows no other site."""
    return HTMLResponse(PAGE, headers=HEADERS)


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
