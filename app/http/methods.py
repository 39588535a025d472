"""The methods of a path: the framework knows them of each route, not of all routes that share the path."""

from __future__ import annotations

from fastapi import Request
from starlette.routing import Match

METHODS = ("DELETE", "GET", "PATCH", "POST", "PUT")


def allowed_methods(request: Request) -> list[str]:
    """Every method that is answered at the request's path; HEAD wherever GET is."""
    routes = request.app.router.routes

    def answered(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    found = [method for method in METHODS if answered(method)]
    return sorted([*found, "HEAD"]) if "GET" in found else found
