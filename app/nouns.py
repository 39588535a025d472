"""The table of nouns: what the API has, under which paths, who may do what, and its names in commands.

Routes, OpenAPI tags, access, groups of commands and remedies of the command line follow from it. A noun needs an entry
here, a package ``app.<package>`` whose module ``endpoints`` exports ``router`` (``app.http.dependencies.NounRouter``),
and its tables in ``app.database.tables``. This module imports nothing, so that ``steward --help`` stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """One noun of the API.

    Attributes:
        package: its package in ``app``.
        path: path of its collection, with parameters in braces.
        access: who may do what: by method, and path below ``path``, the scopes that allow it; beside scopes ``public``,
            for which no credential is required, and ``run``, for which the token of the run in the path is accepted.
        item: what errors call one of its items: "no agent 7".
        one, many: one or several of its items in summaries: "Read an agent", "List agents".
        operation_item: one of its items in operation ids: ``read_agent``.
        command: its group of commands; empty: it has none.
        description: the group's help, and the description of its OpenAPI tag.
    """

    package: str
    path: str
    access: Mapping[str, str]
    item: str = ""
    one: str = ""
    many: str = ""
    operation_item: str = ""
    command: str = ""
    description: str = ""

    @property
    def tag(self) -> str:
        """The OpenAPI tag: the last segment of the path."""
        return self.path.rpartition("/")[2]


_EACH = (
    Noun(
        package="workloads",
        path="/workloads",
        item="workload",
        one="a workload",
        many="workloads",
        operation_item="workload",
        command="workload",
        description="Manage workloads.",
        access={
            "POST": "train",
            "GET": "read",
            "GET /{workload}": "read",
            "PATCH /{workload}": "train",
            "DELETE /{workload}": "admin",
            "GET /{workload}/savings": "read",
        },
    ),
    Noun(
        package="samples",
        path="/workloads/{workload}/samples",
        item="execution",
        one="samples",
        many="samples",
        operation_item="samples",
        command="samples",
        description="Manage samples: executions that models are fitted to.",
        access={"POST": "train", "GET": "read", "DELETE": "admin"},
    ),
    Noun(
        package="exogenous",
        path="/workloads/{workload}/exogenous",
        item="series",
        one="a series",
        many="series",
        operation_item="exogenous",
        command="series",
        description="Manage exogenous series, such as arrivals or prices.",
        access={"GET": "read", "PUT /{series}": "train", "GET /{series}": "read", "DELETE /{series}": "train"},
    ),
    Noun(
        package="domain_models",
        path="/workloads/{workload}/models",
        item="model",
        one="a domain model",
        many="domain models",
        operation_item="model",
        command="model",
        description="Manage domain models, fitted to a workload's samples.",
        access={
            "POST": "train",
            "GET": "read",
            "GET /{version}": "read",
            "DELETE /{version}": "admin",
            "GET /{version}/forecast": "read",
            "GET /{version}/predict": "read",
        },
    ),
    Noun(
        package="agents",
        path="/workloads/{workload}/agents",
        item="agent",
        one="an agent",
        many="agents",
        operation_item="agent",
        command="agent",
        description="Manage agents.",
        access={
            "POST": "train",
            "GET": "read",
            "GET /promotions": "read",
            "GET /{version}": "read",
            "DELETE /{version}": "admin",
            "POST /{version}/promote": "train",
            "POST /{version}/rollback": "train",
            "GET /{version}/shadow": "read",
            "GET /{version}/policy": "read",
        },
    ),
    Noun(
        package="drift",
        path="/workloads/{workload}/drift",
        command="drift",
        description="Manage how a workload responds to drift.",
        access={"GET": "read", "PUT": "train"},
    ),
    Noun(
        package="retention",
        path="/workloads/{workload}/retention",
        command="retention",
        description="Manage how long a workload's data is kept.",
        access={"GET": "read", "PUT": "admin"},
    ),
    Noun(
        package="evaluations",
        path="/evaluations",
        item="evaluation",
        one="an evaluation",
        many="evaluations",
        operation_item="evaluation",
        command="evaluate",
        description="Manage evaluations.",
        access={
            "POST": "train",
            "GET": "read",
            "GET /{id}": "read",
            "DELETE /{id}": "admin",
            "GET /{id}/report": "read",
        },
    ),
    Noun(
        package="jobs",
        path="/jobs",
        item="job",
        one="a job",
        many="jobs",
        operation_item="job",
        command="job",
        description="Manage jobs: fits, trainings and evaluations.",
        access={
            "GET": "read",
            "GET /{id}": "read",
            "DELETE /{id}": "admin",
            "POST /{id}/cancel": "train",
            "POST /{id}/retry": "train",
            "GET /{id}/events": "read",
        },
    ),
    Noun(
        package="runs",
        path="/runs",
        item="run",
        one="a run",
        many="runs",
        operation_item="run",
        command="run",
        description="Manage runs.",
        access={
            "GET": "read",
            "POST": "report",
            "GET /{run}": "read report run",
            "PATCH /{run}": "report run",
            "DELETE /{run}": "admin",
            "GET /{run}/iterations": "read report run",
            "PUT /{run}/iterations/{iteration}": "report run",
        },
    ),
    Noun(
        package="caps",
        path="/caps",
        command="caps",
        description="Manage the tenant's caps on cost and duration.",
        access={"GET": "read", "PUT": "admin"},
    ),
    Noun(package="decisions", path="/decision", access={"GET": "read report run"}),
    Noun(package="keys", path="/keys", access={"POST": "admin", "GET": "admin", "DELETE /{id}": "admin"}),
    Noun(package="audit", path="/audit", access={"GET": "admin"}),
)

NOUNS: Mapping[str, Noun] = {noun.package: noun for noun in _EACH}
"""All nouns by package, in the order of the documentation."""

OPERATIONS: Mapping[str, str] = {
    f"{method} {noun.path}{below}": scopes
    for noun in _EACH
    for (method, _, below), scopes in ((operation.partition(" "), scopes) for operation, scopes in noun.access.items())
}
"""Scopes that allow each operation, by method and path: ``GET /jobs/{id}``."""
