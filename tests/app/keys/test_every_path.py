"""Who may do what, on every path and verb that there is: a route that is added fails here until it is thought of."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from httpx2 import Response

from app.database.engine import Database
from app.drift.detector import Notice
from app.http.caller import SCOPES
from app.keys.access import TABLE, need
from app.main import create_app
from app.settings import Settings
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.keys.conftest import Headers, make_key
from tests.batched import SPEC as EXAMPLE

NAME = "zebra"
"""In all names of the tenant whose nouns these are."""
SPEC = {**copy.deepcopy(EXAMPLE), "name": f"{NAME}-workload"}
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
SAMPLE = {"execution": "e", "reports": [REPORT]}
NOTICE = Notice("iteration_seconds", "up", 1.3, 9, 4, "2026-01-01T00:00:00Z", 21.0, 20.0, 1, "slower")
OTHERS = "others"
PUBLIC = {
    "GET /healthz",
    "GET /readyz",
    "GET /ui/static/{digest}/{name}",
    "GET /ui/sign-in",
    "POST /ui/sign-in",
    "POST /ui/sign-out",
}
UNLISTED = {
    *(operation for operation in TABLE if " /ui/" in operation),
    "GET /",
    "GET /docs",
    "GET /docs/swagger-ui.css",
    "GET /docs/swagger-ui-bundle.js",
    "GET /openapi.json",
}
"""Pages, which the schema doesn't tell of."""

BODIES: dict[str, Any] = {
    "POST /workloads": SPEC,
    "PATCH /workloads/{workload}": {"weights": {"sla": 2.0}},
    "POST /workloads/{workload}/samples": {"samples": [SAMPLE]},
    "PUT /workloads/{workload}/exogenous/{series}": {
        "issued_at": "2026-01-01T00:00:00Z",
        "rows": [{"time": "2026-01-01T00:00:00Z", "mean": 1.0, "low": 0.5, "high": 2.0}],
    },
    "POST /workloads/{workload}/models": {},
    "POST /workloads/{workload}/agents": {},
    "POST /workloads/{workload}/agents/{version}/promote": {},
    "POST /workloads/{workload}/agents/{version}/rollback": {},
    "PUT /workloads/{workload}/drift": {"respond": "off"},
    "PUT /workloads/{workload}/retention": {},
    "PUT /caps": {},
    "POST /evaluations": {"workload": SPEC["name"]},
    "POST /runs": {"workload": SPEC["name"]},
    "PATCH /runs/{run}": {"state": "finished"},
    "PUT /runs/{run}/iterations/{iteration}": REPORT,
    "POST /keys": {"scopes": ["read"]},
    "POST /ui/examples/{kind}": None,
}
QUERIES: dict[str, str] = {
    "GET /ui/runs/{run}/decisions": "before=1",
    "GET /decision": "run={run}",
    "DELETE /workloads/{workload}/samples": "execution=e",
    "GET /workloads/{workload}/models/{version}/predict": "allocation=gpus:4&iteration=0&feature=batch:128",
}


class Service(NamedTuple):
    """A service with the nouns of one tenant, and callers of it and of another one."""

    client: TestClient
    names: dict[str, str]
    own: dict[str, Headers]
    other: Headers
    run_token: Headers
    operations: list[str]


def names_of(client: TestClient, owner: Headers, database: Database) -> dict[str, str]:
    """One noun of each kind, by the name of its parameter."""

    def prepare(method: str, path: str, body: Any) -> dict[str, Any]:
        answer = client.request(method, path, json=body, headers={**owner, "Idempotency-Key": path})
        assert answer.is_success, answer.text
        result: dict[str, Any] = answer.json()
        return result

    home = f"/workloads/{prepare('POST', '/workloads', SPEC)['name']}"
    prepare("POST", f"{home}/samples", {"samples": [SAMPLE]})
    prepare("PUT", f"{home}/exogenous/{NAME}-series", BODIES["PUT /workloads/{workload}/exogenous/{series}"])
    publish_model(database, SPEC["name"])
    publish_agent(database, SPEC["name"], promote=True)
    run, token = (prepare("POST", "/runs", {"workload": SPEC["name"], "token": True})[name] for name in ("id", "token"))
    prepare("PUT", f"/runs/{run}/iterations/0", REPORT)
    return {
        "workload": SPEC["name"],
        "series": f"{NAME}-series",
        "version": "1",
        "run": run,
        "iteration": "1",
        "jobs": (job := prepare("POST", f"{home}/models", {})["id"]),
        "job": job,
        "kind": "iterative",
        "evaluations": publish_evaluation(database, SPEC["name"]),
        "keys": prepare("POST", "/keys", {"name": NAME})["id"],
        "token": token,
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Any) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("paths")
    url = f"sqlite:///{folder / 'steward.db'}"
    (folder / "steward.db").write_bytes(_sqlite_template.read_bytes())
    settings = Settings(data_dir=folder, database_url=url, stream_seconds=0.3)
    database = Database(url, settings)
    own = {scope: make_key(database, TENANT, [scope]) for scope in SCOPES}
    other = make_key(database, OTHERS, ["admin"])
    app = create_app(settings, database)
    with TestClient(app, raise_server_exceptions=False) as client:
        names = names_of(client, own["admin"], database)
        app.state.drifts.count(TENANT, SPEC["name"], NOTICE.stream, NOTICE.direction)
        token = {"Authorization": f"Bearer {names['token']}"}
        yield Service(client, names, own, other, token, operations(app))
    database.dispose()


def operations(app: FastAPI) -> list[str]:
    """Every verb and path of the schema."""
    schema = app.openapi()
    return [f"{method.upper()} {path}" for path, item in schema["paths"].items() for method in item]


def ask(service: Service, operation: str, headers: Headers, method: str = "", **other: str) -> Response:
    """Do an operation on the owner's nouns."""
    verb, template = operation.split(" ")
    names = {**service.names, "id": service.names.get(template.split("/")[1], ""), **other}
    query = QUERIES.get(operation, "").format(**names)
    body = BODIES[operation] if takes_body(operation) else None
    address = template.format(**names) + (f"?{query}" if query else "")
    return service.client.request(method or verb, address, json=body, headers=headers)


def takes_body(operation: str) -> bool:
    return operation.split(" ")[0] in ("POST", "PUT", "PATCH") and not operation.endswith(("/cancel", "/retry"))


def example_request(operation: str) -> Any:
    return need(*operation.split(" "))


def protected(service: Service) -> list[str]:
    return [
        operation for operation in [*service.operations, *sorted(UNLISTED)] if not example_request(operation).public
    ]


def test_every_route_is_in_the_table_and_nothing_else(service: Service) -> None:
    app = service.client.app
    assert isinstance(app, FastAPI)
    routes = {
        f"{method} {route.path}"
        for route in iter_route_contexts(app.router.routes)
        for method in (route.methods or {"?"}) - {"HEAD"}
    }
    assert routes == set(TABLE)
    assert set(service.operations) == routes - UNLISTED
    assert {operation for operation in routes if example_request(operation).public} == PUBLIC


def test_the_schema_says_what_the_table_does(service: Service) -> None:
    app = service.client.app
    assert isinstance(app, FastAPI)
    for operation in service.operations:
        method, path = operation.split(" ")
        result = app.openapi()["paths"][path][method.lower()]
        if example_request(operation).public:
            assert result["security"] == []
        else:
            assert {"401", "403"} <= set(result["responses"]), operation
            assert set(result["security"][0]["bearer"]) - {"run"} == example_request(operation).scopes


def test_without_a_key_it_is_401_with_a_challenge(service: Service) -> None:
    for operation in protected(service):
        verbs = ["", "HEAD"] if operation.startswith("GET") else [""]
        for headers in ({}, {"Authorization": "Bearer stw_0123456789abcdef_wrong"}, {"Authorization": "Digest x"}):
            for verb in verbs:
                answer = ask(service, operation, headers, verb)
                assert answer.status_code == 401, (operation, answer.text)
                assert answer.headers["www-authenticate"].startswith("Bearer realm=")
                assert NAME not in answer.text.replace(f"/{NAME}", "")  # but for the path that was asked for


def test_without_the_scope_it_is_403(service: Service) -> None:
    refused = 0
    for operation in protected(service):
        for scope in set(SCOPES) - example_request(operation).scopes - {"admin"}:
            answer = ask(service, operation, service.own[scope])
            assert answer.status_code == 403, (operation, scope, answer.text)
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
            refused += 1
    assert refused > 2 * len(protected(service))


def test_with_one_of_its_scopes_it_is_neither_401_nor_403(service: Service) -> None:
    for operation in protected(service):
        for scope in example_request(operation).scopes:
            if scope == "admin" or not operation.startswith("GET"):
                continue  # which would change something
            assert ask(service, operation, service.own[scope]).status_code not in (401, 403, 404), operation


def test_another_tenants_nouns_are_not_there(service: Service) -> None:
    for operation in protected(service):
        if "{" not in operation and operation not in ("POST /evaluations", "POST /runs", "GET /decision"):
            continue
        if operation == "POST /ui/examples/{kind}":  # which makes one of the caller's own
            continue
        answer = ask(service, operation, service.other)
        assert answer.status_code == 404, (operation, answer.text)
    assert ask(service, "GET /decision", service.other).status_code == 404
    state = "iteration=0&allocation=gpus:4&feature=batch:128&metric=iteration_seconds:31.5"
    of_state = f"/decision?workload={SPEC['name']}&{state}"
    assert service.client.get(of_state, headers=service.other).status_code == 404
    assert service.client.get(of_state, headers=service.own["read"]).status_code == 200


def test_lists_pages_and_metrics_are_free_of_other_tenants_names(service: Service) -> None:
    secrets = {
        NAME,
        *(match for name, match in service.names.items() if len(match) > 8 and name not in ("workload", "kind")),
    }
    observation = 0
    for operation in protected(service):
        if "{" in operation or not operation.startswith("GET") or operation == "GET /decision":
            continue
        for accept in ("application/json", "text/csv", "text/html"):
            answer = ask(service, operation, {**service.other, "accept": accept})
            assert answer.is_success, operation
            assert [secret for secret in secrets if secret in answer.text] == [], operation
            own = ask(service, operation, {**service.own["admin"], "accept": accept})
            observation += NAME in own.text
    assert (
        observation >= 8
    )  # workloads, jobs, evaluations, keys, audit, metrics and the dashboard name them to their owner


def test_the_same_names_and_idempotency_keys_are_free_to_another_tenant(service: Service) -> None:
    headers = {**service.other, "Idempotency-Key": "/workloads"}
    answer = service.client.post("/workloads", json=SPEC, headers=headers)
    assert answer.status_code == 201
    assert "Idempotent-Replayed" not in answer.headers
    mine = service.client.get(f"/workloads/{SPEC['name']}", headers=service.own["admin"]).json()
    assert answer.json()["id"] != mine["id"]
    listed = service.client.get("/jobs", params={"workload": mine["id"]}, headers=service.other)
    assert listed.status_code == 404
    assert service.client.delete(f"/workloads/{SPEC['name']}", headers=service.other).status_code == 204
    assert service.client.get(f"/workloads/{SPEC['name']}", headers=service.own["read"]).status_code == 200


def test_a_runs_token_reports_to_its_run_and_does_nothing_else(service: Service) -> None:
    elsewhere = service.client.post("/runs", json={"workload": SPEC["name"]}, headers=service.own["report"]).json()[
        "id"
    ]
    may = set()
    for operation in protected(service):
        if example_request(operation).run:
            may.add(operation)
            assert ask(service, operation, service.run_token, run=elsewhere).status_code == 403, operation
        else:
            assert ask(service, operation, service.run_token).status_code == 403, operation
    for query in ("workload=zebra", "", f"run={service.names['run']}&run={elsewhere}", "run=&workload=zebra"):
        assert service.client.get(f"/decision?{query}", headers=service.run_token).status_code == 403
    own = service.client.patch(f"/runs/{service.names['run']}", json={"caps": None}, headers=service.run_token)
    assert (own.status_code, "can't change its caps" in own.json()["detail"]) == (403, True)
    assert may == {
        "GET /runs/{run}",
        "PATCH /runs/{run}",
        "GET /runs/{run}/iterations",
        "PUT /runs/{run}/iterations/{iteration}",
        "GET /decision",
    }
    for operation in sorted(may, reverse=True):  # it is ended last
        if not operation.startswith("PATCH"):
            assert ask(service, operation, service.run_token).is_success, operation
    assert ask(service, "PATCH /runs/{run}", service.run_token).json()["state"] == "finished"
