"""What each path and verb asks of its caller: the one table. What isn't in it is for admins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, compile_path

from app.http.caller import ADMIN, ALL

PUBLIC, RUN = "public", "run"
"""Words of the table beside scopes: no key is asked for; a run's own token does, too."""

TABLE: dict[str, str] = {
    "GET /healthz": "public",
    "GET /readyz": "public",
    "GET /": "read",
    "GET /ui/static/{digest}/{name}": "public",
    "GET /ui/sign-in": "public",
    "POST /ui/sign-in": "public",
    "POST /ui/sign-out": "public",
    "GET /ui/workloads/{workload}": "read",
    "GET /ui/workloads/{workload}/agents/{version}": "read",
    "GET /ui/workloads/{workload}/changes": "read",
    "GET /ui/runs": "read",
    "GET /ui/runs/{run}": "read",
    "GET /ui/runs/{run}/decisions": "read",
    "GET /ui/runs/{run}/changes": "read",
    "GET /ui/runs/{run}/others": "read",
    "GET /ui/jobs": "read",
    "GET /ui/jobs/{job}": "read",
    "GET /ui/jobs/{job}/changes": "read",
    "GET /ui/evaluations": "read",
    "POST /ui/examples/{kind}": "train",
    "GET /docs": "read",
    "GET /docs/swagger-ui.css": "read",
    "GET /docs/swagger-ui-bundle.js": "read",
    "GET /openapi.json": "read",
    "GET /metrics": "read",
    "POST /workloads": "train",
    "GET /workloads": "read",
    "GET /workloads/{workload}": "read",
    "PATCH /workloads/{workload}": "train",
    "DELETE /workloads/{workload}": "admin",
    "POST /workloads/{workload}/samples": "train",
    "GET /workloads/{workload}/samples": "read",
    "DELETE /workloads/{workload}/samples": "admin",
    "GET /workloads/{workload}/exogenous": "read",
    "PUT /workloads/{workload}/exogenous/{series}": "train",
    "GET /workloads/{workload}/exogenous/{series}": "read",
    "DELETE /workloads/{workload}/exogenous/{series}": "train",
    "POST /workloads/{workload}/models": "train",
    "GET /workloads/{workload}/models": "read",
    "GET /workloads/{workload}/models/{version}": "read",
    "DELETE /workloads/{workload}/models/{version}": "admin",
    "GET /workloads/{workload}/models/{version}/forecast": "read",
    "GET /workloads/{workload}/models/{version}/predict": "read",
    "POST /workloads/{workload}/agents": "train",
    "GET /workloads/{workload}/agents": "read",
    "GET /workloads/{workload}/agents/promotions": "read",
    "GET /workloads/{workload}/agents/{version}": "read",
    "DELETE /workloads/{workload}/agents/{version}": "admin",
    "POST /workloads/{workload}/agents/{version}/promote": "train",
    "POST /workloads/{workload}/agents/{version}/rollback": "train",
    "GET /workloads/{workload}/agents/{version}/shadow": "read",
    "GET /workloads/{workload}/agents/{version}/policy": "read",
    "GET /workloads/{workload}/drift": "read",
    "PUT /workloads/{workload}/drift": "train",
    "GET /workloads/{workload}/retention": "read",
    "PUT /workloads/{workload}/retention": "admin",
    "POST /evaluations": "train",
    "GET /evaluations": "read",
    "GET /evaluations/{id}": "read",
    "DELETE /evaluations/{id}": "admin",
    "GET /evaluations/{id}/report": "read",
    "GET /jobs": "read",
    "GET /jobs/{id}": "read",
    "DELETE /jobs/{id}": "admin",
    "POST /jobs/{id}/cancel": "train",
    "GET /jobs/{id}/events": "read",
    "GET /runs": "read",
    "POST /runs": "report",
    "GET /runs/{run}": "read report run",
    "PATCH /runs/{run}": "report run",
    "DELETE /runs/{run}": "admin",
    "GET /runs/{run}/iterations": "read report run",
    "PUT /runs/{run}/iterations/{iteration}": "report run",
    "GET /decision": "read report run",
    "POST /keys": "admin",
    "GET /keys": "admin",
    "DELETE /keys/{id}": "admin",
    "GET /audit": "admin",
}


class Need(NamedTuple):
    """What is asked of a caller.

    Attributes:
        scopes: one of these; none where every caller may.
        public: whether nobody is asked who they are.
        run: whether a run's own token will do.
    """

    scopes: frozenset[str]
    public: bool = False
    run: bool = False

    @property
    def words(self) -> list[str]:
        """The scopes in order."""
        return sorted(self.scopes)


ANY = Need(ALL)
"""Of what no route answers: whoever is known may be told so."""


def need(method: str, template: str) -> Need:
    """What a route asks for."""
    words = TABLE.get(f"{method} {template}", ADMIN).split()
    return Need(frozenset(words) & ALL, PUBLIC in words, RUN in words)


class Access:
    """What is asked of whom, by the routes that there are.

    Args:
        routes: all of the application's, in its order.
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._needs: dict[tuple[str, str], Need] = {}
        for route in iter_route_contexts(routes):
            if route.path is None or route.methods is None:
                raise TypeError(f"{route.original_route!r}: what it asks of its callers can't be told")
            self._patterns[route.path] = compile_path(route.path)[0]
            for method in route.methods - {"HEAD"}:
                self._needs[method, route.path] = need(method, route.path)

    def known(self, method: str, template: str) -> Need:
        """What a request asks for, where its route is known."""
        return self._needs["GET" if method == "HEAD" else method, template]

    def of(self, method: str, path: str) -> tuple[Need, dict[str, str]]:
        """What a request asks for, and the parameters of its path."""
        method = "GET" if method == "HEAD" else method
        for template, regex in self._patterns.items():
            match = regex.match(path)
            if match is not None and (method, template) in self._needs:
                return self._needs[method, template], match.groupdict()
        return ANY, {}
