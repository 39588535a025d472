"""HTTP endpoint of decisions: a hot route, with its entry in the schema."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from app.decisions import service
from app.http.dependencies import NounRouter, command, components, problems, union_schema
from app.http.exchange import Answer, Exchange, HotRoute
from app.http.query import check_query, query_values
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import invalid, whole_number
from app.kinds.registry import KINDS

NO_STORE = [(b"cache-control", b"no-store")]
OF_RUN = ("run", "iteration")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Poll for changed workloads in the background while the application runs."""
    state = app.state
    polling = asyncio.create_task(state.compiled_workloads.poll(state.settings.policy_poll_seconds / 2))
    yield
    polling.cancel()
    with contextlib.suppress(asyncio.CancelledError):  # cancelled above
        await polling


async def get_decision(request: Exchange) -> Answer:
    """Answer `GET /decision` of a run (`run=`) or a state (`workload=`); raises Invalid, InvalidInput or NotFound."""
    values = query_values(request.scope)
    decision = await (_of_run(request, values) if "run" in values else _of_state(request, values))
    return Answer(200, decision, NO_STORE)


async def _of_state(request: Exchange, values: Query) -> bytes:
    if len(values.get("workload", ())) != 1:
        raise invalid("/query/workload", "name one workload (or one run)", values.get("workload"))
    state = request.app.state
    compiled = await state.compiled_workloads.get(values["workload"][0], request.caller.tenant)
    known, lists = _known_parameters(compiled.snapshot.spec.kind)
    if known:
        check_query(values, known, lists)
    decision: bytes = await state.state_decisions.decide(compiled, values)
    return decision


@cache
def _known_parameters(kind: str) -> tuple[frozenset[str], frozenset[str]]:
    """Query parameters of a state of this kind, and those that are lists; both empty if the kind accepts no state."""
    parameters = KINDS[kind].state_parameters
    lists = frozenset(one.name for one in parameters if one.schema["type"] == "array")
    return frozenset(["workload", *(one.name for one in parameters)] if parameters else ()), lists


async def _of_run(request: Exchange, values: Query) -> bytes:
    check_query(values, OF_RUN, ())
    iteration = whole_number(values["iteration"], "iteration") if "iteration" in values else None
    read = partial(service.of_run, request.app.state.database, request.caller.tenant, values["run"][0], iteration)
    return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)  # its time may be over while a thread waits


router = NounRouter("decisions", lifespan=lifespan)
hot_routes = [HotRoute("/decision", get_decision, "GET")]


def _parameter(name: str, description: str, schema: dict[str, Any], example: object) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema, "example": example}


_TEXT: dict[str, Any] = {"type": "string"}
_OF_STATE = {one.name: one for kind in KINDS.values() for one in kind.state_parameters}

DECISION = {"application/json": {"schema": union_schema({name: kind.decision for name, kind in KINDS.items()})}}
openapi_schemas: dict[str, Any] = components([kind.decision for kind in KINDS.values()])
openapi_paths: dict[str, Any] = {
    "/decision": {
        "get": {
            "tags": ["decisions"],
            "operationId": "get_decision",
            **command("workload recommend", arguments=["workload"], fields=True),
            "summary": "Get a decision",
            "description": "Get the decision for a run's last (or n-th) reported iteration, or for a state given in "
            "full, if the workload's kind supports it. Nothing is written. Either `run` or `workload` is required.",
            "parameters": [
                _parameter("run", "The run's id.", _TEXT, "5f0c8a4be9f04a0c8f8f9e1f2f3a4b5c"),
                _parameter("workload", "A workload, for a state given in full.", _TEXT, "resnet18"),
                *(one.documented() for one in _OF_STATE.values()),
            ],
            "responses": {
                "200": {
                    "description": "The decision; caches must not store it.",
                    "headers": {"Cache-Control": {"schema": {"type": "string", "const": "no-store"}}},
                    "content": DECISION,
                },
                **{str(status): answer for status, answer in problems(404).items()},
            },
        }
    }
}
