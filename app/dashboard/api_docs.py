"""``GET /docs``: interactive API documentation, served without any other host."""

from __future__ import annotations

from importlib.resources import files

import fastapi_offline
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from app.dashboard.rendering import address
from app.http.limits import inline, policy

STATIC = files(fastapi_offline) / "static"
FILES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>API – Steward</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="{style}">
</head>
<body>
<nav aria-label="Main"><a href="/">‹ Steward</a></nav>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script>
const preferred = matchMedia("(prefers-color-scheme: dark)");
function dress() {
  let theme = null;
  try {
    theme = localStorage.getItem("theme"); // as the dashboard's switch left it
  } catch {
    // storage may be switched off
  }
  document.documentElement.classList.toggle("dark-mode", theme ? theme === "dark" : preferred.matches);
}
dress();
preferred.addEventListener("change", dress);
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  showExtensions: true,
  showCommonExtensions: true,
  validatorUrl: null, // by default the schema's address is sent to an external validator
});
</script>
</body>
</html>
"""
PAGE = _PAGE.replace("{style}", address("docs.css"))
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
