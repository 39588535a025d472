"""The API against its own schema: whatever is sent, answers are documented, well-formed, and never a defect."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from app.database.engine import Database
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.kinds.iterative.spec import Spec
from app.main import create_app
from app.settings import Settings
from app.workloads import service as workloads
from migrations.runner import upgrade
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.batched import SPEC as EXAMPLE
from tests.servers import PostgresServer

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance),
    *(response_headers_conformance, allow_header_conformance, ignored_auth, missing_required_header),
]
APART = r"/events$|^/readyz$"
"""A stream, and what answers 503 as long as there is no worker."""


POSTGRESQL = pytest.param("postgresql", marks=[pytest.mark.servers, pytest.mark.slow])


@pytest.fixture(scope="module", params=["sqlite", POSTGRESQL])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """An application with a workload, a model and a champion, on SQLite and on PostgreSQL."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("contract"))
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        server.execute("CREATE DATABASE contract TEMPLATE migrated")
        settings.database_url = server.url("contract")
    else:
        upgrade(settings.database_url)
    database = Database(settings.database_url, settings)
    workloads.register(database, TENANT, Spec.model_validate(copy.deepcopy(EXAMPLE)))
    publish_model(database, str(EXAMPLE["name"]))
    publish_agent(database, str(EXAMPLE["name"]), promote=True)
    key = keys.create(database, TENANT, KeyRequest(scopes={"admin"}), "test").key
    app = create_app(settings, database)
    app.state.embedded = request.param == "sqlite"
    app.state.authorised = {"Authorization": f"Bearer {key}"}
    yield app
    database.dispose()
    if request.param == "postgresql":
        server.execute("DROP DATABASE contract WITH (FORCE)")


@pytest.fixture(scope="module")
def service(app: FastAPI) -> schemathesis.BaseSchema:
    """The schema of the application."""
    result = schemathesis.openapi.from_asgi("/openapi.json", app, headers=app.state.authorised)
    return result.exclude(path_regex=APART).exclude(method="DELETE")


@pytest.fixture(scope="module")
def whole(app: FastAPI) -> schemathesis.BaseSchema:
    """The schema, with what deletes."""
    result = schemathesis.openapi.from_asgi("/openapi.json", app, headers=app.state.authorised)
    return result.exclude(path_regex=APART)


MORE_EXAMPLES = int(os.environ.get("STEWARD_HOSTILE_EXAMPLES", "0"))
EXAMPLES, FEW_EXAMPLES = 8, 4
GROUPS = 4
"""Operations are tested in so many groups: one test of all would take long on a slow machine."""


@pytest.mark.parametrize("group", range(GROUPS))
def test_answers_are_as_documented(app: FastAPI, service: schemathesis.BaseSchema, group: int) -> None:
    operations = [result.ok() for result in service.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) > 20
    for operation in operations[group::GROUPS]:

        @hypothesis_settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=operation.as_strategy())
        def conforms(case: schemathesis.Case[Any]) -> None:
            response = case.call(headers=app.state.authorised)
            case.validate_response(response, checks=CHECKS)
            assert response.status_code < 500
            assert response.status_code not in (401, 403)

        conforms()


@pytest.mark.timeout(0 if MORE_EXAMPLES else 300)
@pytest.mark.parametrize("group", range(GROUPS))
def test_what_breaks_the_schema_is_answered_as_documented(
    app: FastAPI, whole: schemathesis.BaseSchema, group: int
) -> None:
    """Few examples of each operation, unless ``STEWARD_HOSTILE_EXAMPLES`` says how many; then on both databases."""
    if not MORE_EXAMPLES and not app.state.embedded:
        pytest.skip("on PostgreSQL where STEWARD_HOSTILE_EXAMPLES is set")
    operations = [result.ok() for result in whole.get_all_operations() if isinstance(result, Ok)]
    operations = [one for one in operations if one.path_parameters or one.query or one.headers or one.body]
    assert len(operations) > 40
    for operation in operations[group::GROUPS]:

        @hypothesis_settings(
            max_examples=MORE_EXAMPLES or FEW_EXAMPLES,
            derandomize=True,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        def conforms(case: schemathesis.Case[Any]) -> None:
            response = case.call(headers=app.state.authorised)
            case.validate_response(response, checks=[*CHECKS, negative_data_rejection, unsupported_method])
            assert response.status_code < 500

        conforms()


def test_what_takes_an_idempotency_key_tells_what_it_is_answered(service: schemathesis.BaseSchema) -> None:
    operations = [
        operation
        for path in service.raw_schema["paths"].values()
        for operation in path.values()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ()))
    ]
    assert {"register_workload", "upload_samples", "fit_model", "train_agent", "evaluate_agents", "start_run"} <= {
        operation["operationId"] for operation in operations
    }
    for operation in operations:
        assert "in flight" in operation["responses"]["409"]["description"]
        assert "another request" in operation["responses"]["422"]["description"]


def test_the_schema_names_a_server(service: schemathesis.BaseSchema) -> None:
    assert [server["url"] for server in service.raw_schema["servers"]] == ["/", "http://{host}:{port}"]
