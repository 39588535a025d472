"""HTTP endpoint of decisions: a hot route, with its entry in the schema."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.concurrency import run_in_threadpool

from app.database.base import DEFAULT_TENANT
from app.decisions import service
from app.decisions.service import StateDecisions
from app.http.dependencies import problems
from app.http.exchange import Exchange
from app.http.fast_path import Answer, HotRoute, of_loop
from app.http.query import LARGEST_ITERATION, check_query, invalid, query_values, whole_number
from app.kinds.contract.engine import Query

NO_STORE = [(b"cache-control", b"no-store")]
OF_RUN = ("run", "iteration")
OF_STATE = ("workload", "iteration", "allocation", "metric", "feature", "total", "target")
LISTS = ("allocation", "metric", "feature", "total", "target")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Keep what decisions are served from up to date, in the background."""
    state = app.state
    polling = asyncio.create_task(state.bases.poll(state.settings.policy_poll_seconds / 2))
    yield
    polling.cancel()
    with contextlib.suppress(asyncio.CancelledError):  # it is us who ended it
        await polling


async def get_decision(request: Exchange) -> Answer:
    """`GET /decision`."""
    values = query_values(request.scope)
    decision = await (_of_run(request, values) if "run" in values else _of_state(request, values))
    return Answer(200, decision, NO_STORE)


async def _of_state(request: Exchange, values: Query) -> bytes:
    check_query(values, OF_STATE, LISTS)
    if "workload" not in values:
        raise invalid("/query/workload", "name one workload (or one run)", values.get("workload"))
    state = request.app.state
    basis = await state.bases.get(values["workload"][0], DEFAULT_TENANT)
    return await of_loop(request.app, StateDecisions).decide(basis, values)


async def _of_run(request: Exchange, values: Query) -> bytes:
    check_query(values, OF_RUN, ())
    iteration = whole_number(values["iteration"], "iteration") if "iteration" in values else None
    database = request.app.state.database
    return await run_in_threadpool(service.of_run, database, DEFAULT_TENANT, values["run"][0], iteration)


router = APIRouter(tags=["decisions"], lifespan=lifespan)
hot_routes = [HotRoute("/decision", get_decision, "GET")]


def _parameter(name: str, description: str, schema: dict[str, Any], example: object) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


_TEXT: dict[str, Any] = {"type": "string"}
_PAIRS: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": "^.+:.+$"}}
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": LARGEST_ITERATION}

ANY_DECISION = [{"$ref": f"#/components/schemas/{name}"} for name in ("Decision", "QueueDecision")]
openapi_schemas: dict[str, Any] = {}
openapi_paths: dict[str, Any] = {
    "/decision": {
        "get": {
            "tags": ["decisions"],
            "operationId": "get_decision",
            "summary": "Get a decision",
            "description": "The decision for a run's last (or n-th) reported iteration, or for a state that is given "
            "in full, which only workloads of kind `iterative` take. It never writes. Either `run` or `workload` is "
            "needed.",
            "parameters": [
                _parameter("run", "A run.", _TEXT, "5f0c8a4be9f04a0c8f8f9e1f2f3a4b5c"),
                _parameter("workload", "A workload, for a state given in full.", _TEXT, "resnet18"),
                _parameter("iteration", "The reported iteration.", _NUMBER, 11),
                _parameter("allocation", "What that iteration used: `name:value`.", _PAIRS, ["gpus:4"]),
                _parameter("metric", "What it measured: `name:value`.", _PAIRS, ["iteration_seconds:31.5"]),
                _parameter("feature", "Under which features: `name:value`.", _PAIRS, ["batch:128"]),
                _parameter("total", "Sums over the run so far: `name:value`.", _PAIRS, ["iteration_seconds:380"]),
                _parameter("target", "Targets other than the workload's.", _PAIRS, ["iteration_seconds:1500"]),
            ],
            "responses": {
                "200": {
                    "description": "The decision; not to be stored by caches.",
                    "headers": {"Cache-Control": {"schema": {"type": "string", "const": "no-store"}}},
                    "content": {"application/json": {"schema": {"anyOf": ANY_DECISION}}},
                },
                **{str(status): answer for status, answer in problems(404).items()},
            },
        }
    }
}
