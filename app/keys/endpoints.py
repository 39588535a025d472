"""HTTP endpoints of keys: of the caller's own tenant alone. Other tenants' first keys are made by `steward key`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, Path, Request, Response, status

from app.http.dependencies import FromCaller, FromDatabase, NounRouter, Tenant, problems
from app.http.idempotency import IdempotentPost
from app.http.pagination import Page, Paging, page
from app.keys import service
from app.keys.ring import RedisCounts, share
from app.keys.service import KeyMade, KeyRead, KeyRequest

KeyId = Annotated[str, Path(alias="id", max_length=64, description="The key's id.")]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Update the valid keys, and share request counts with other processes, in the background."""
    settings, rates = app.state.settings, app.state.rates
    counts = RedisCounts(settings.broker_url) if rates is not None and not settings.files_as_broker else None
    tasks = [asyncio.create_task(app.state.keys.poll())]
    if counts is not None:
        tasks.append(asyncio.create_task(share(rates, counts)))
    yield
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):  # cancelled above
            await task
    if counts is not None:
        await counts.close()


router = NounRouter("keys", lifespan=lifespan)


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    operation_id="create_key",
    summary="Create a key",
    response_model=KeyMade,
    responses=problems(413, 415),
)
def create(
    request: Request, body: KeyRequest, database: FromDatabase, caller: FromCaller, once: IdempotentPost
) -> Response:
    """Create a key for the caller's tenant. It is shown only once. Once a key exists, every caller needs one.\f
    Raises Conflict or Invalid if its idempotency key is in use or was another request's."""
    response = once.run(lambda record: service.create(database, caller.tenant, body, caller.name, record))
    request.app.state.keys.refresh()
    response.headers["Cache-Control"] = "no-store"
    return response


@router.get("", operation_id="list_keys", summary="List keys", responses=problems())
def list_keys(request: Request, database: FromDatabase, tenant: Tenant, paging: Paging) -> Page[KeyRead]:
    """List the tenant's keys, newest first, including revoked ones, without their secrets.\f
    Raises Invalid for a foreign cursor."""
    return page(request, service.list_keys(database, tenant, paging), service.to_response)


@router.delete(
    "/{id}",
    status_code=status.HTTP_204_NO_CONTENT,
    operation_id="revoke_key",
    summary="Revoke a key",
    responses=problems(404),
)
def revoke(request: Request, key: KeyId, database: FromDatabase, tenant: Tenant) -> None:
    """Revoke a key and the run tokens made with it; every API process follows within a second.\f
    Raises NotFound if there is none."""
    service.revoke(database, tenant, key)
    request.app.state.keys.refresh()
