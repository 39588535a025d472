"""The yardstick of the API's speed: a FastAPI endpoint that takes the parameters of `GET /decision` and does nothing.

It runs under the same server settings as Steward (see ``app.cli.server.serve``), without any middleware.
"""

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from fastapi import FastAPI, Query

# ruff: noqa: ARG001 - the endpoint is empty


@asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    yield


app = FastAPI(lifespan=_lifespan)


@app.get("/empty")
async def empty(
    workload: str,
    iteration: int,
    allocation: Annotated[list[str], Query()],
    metric: Annotated[list[str], Query()],
    feature: Annotated[list[str], Query()],
    run: str | None = None,
) -> dict[str, str]:
    """Nothing."""
    return {}


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), access_log=False, log_level="warning", server_header=False)
