"""The dependency that all ordinary routes have: a query holds what its route declares, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from app.http.query import check_query, query_values

Names = frozenset[str]
_declared: dict[Callable[..., Any], tuple[Names, Names]] = {}
"""Of each endpoint: its query parameters, and those of them that are lists."""


async def known_query(request: Request) -> None:
    """Refuse parameters that the route does not declare, and repeated ones that are no lists.

    Async, though it never waits: so it takes no thread.

    Raises:
        Invalid: there is one.
    """
    route = request.scope.get("route")
    if request.scope["query_string"] and isinstance(route, APIRoute):
        if route.endpoint not in _declared:
            parameters = list(_parameters(route.dependant))
            more = (route.openapi_extra or {}).get("parameters", ())
            lists = [p.alias for p in parameters if _is_list(p.field_info.annotation)]
            lists += [p["name"] for p in more if p["schema"]["type"] == "array"]
            names = [*(p.alias for p in parameters), *(p["name"] for p in more)]
            _declared[route.endpoint] = frozenset(names), frozenset(lists)
        check_query(query_values(request.scope), *_declared[route.endpoint])


def _parameters(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for dependency in dependant.dependencies:
        yield from _parameters(dependency)


def _is_list(annotation: Any) -> bool:
    return getattr(annotation, "__origin__", annotation) is list
