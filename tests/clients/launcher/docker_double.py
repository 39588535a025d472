"""A double of Docker's Engine API on a unix socket: containers are processes of this machine, limits are remembered.

It is no Docker: paths, bodies and answers are written from the Engine's API reference.
"""

from __future__ import annotations

import json
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.clients.launcher.program import Program

IMAGE = "python:3.11"
CORES, MEMORY = 4, 8 << 30
LEAST_MEMORY = 6 << 20


class DockerDouble:
    """The engine; ``containers`` are those that are there, with what was asked for and set."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.containers = folder, dict[str, dict[str, Any]]()
        self.programs: dict[str, Program] = {}
        self.socket = folder / "docker.sock"
        self._made = 0
        routes = [
            Route("/info", lambda _: JSONResponse({"NCPU": CORES, "MemTotal": MEMORY})),
            Route("/containers/json", self._list),
            Route("/containers/create", self._create, methods=["POST"]),
            Route("/containers/{id}/start", self._start, methods=["POST"]),
            Route("/containers/{id}/update", self._update, methods=["POST"]),
            Route("/containers/{id}/kill", self._kill, methods=["POST"]),
            Route("/containers/{id}/json", self._inspect),
            Route("/containers/{id}/logs", self._logs),
            Route("/containers/{id}", self._remove, methods=["DELETE"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), uds=str(self.socket), log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs.values():
            program.end()
        self._server.should_exit = True
        self._thread.join()

    async def _body(self, request: Request) -> dict[str, Any]:
        found: dict[str, Any] = await request.json()
        return found

    async def _create(self, request: Request) -> Response:
        body = await self._body(request)
        if body["Image"] != IMAGE:
            return _refused(404, f"No such image: {body['Image']}")
        problem = _problem(body["HostConfig"])
        if problem:
            return _refused(400, problem)
        self._made += 1
        name = f"c{self._made}"
        self.containers[name] = {**body, "State": {"Status": "created", "ExitCode": 0}}
        return JSONResponse({"Id": name, "Warnings": []}, 201)

    def _list(self, request: Request) -> Response:
        (wanted,) = json.loads(request.query_params["filters"])["label"]
        name, value = wanted.split("=")
        assert request.query_params["all"] == "true"
        found = [
            {"Id": one, "Labels": body["Labels"]}
            for one, body in self.containers.items()
            if body["Labels"][name] == value
        ]
        return JSONResponse(found)

    def _start(self, request: Request) -> Response:
        name = request.path_params["id"]
        body = self.containers[name]
        environment = dict(pair.partition("=")[::2] for pair in body["Env"])
        try:
            self.programs[name] = Program(body["Cmd"], environment, self.folder / name)
        except FileNotFoundError:
            return _refused(400, f'exec: "{body["Cmd"][0]}": executable file not found in $PATH')
        return Response(status_code=204)

    async def _update(self, request: Request) -> Response:
        name, body = request.path_params["id"], await self._body(request)
        if name not in self.containers:
            return _refused(404, f"No such container: {name}")
        problem = _problem({**self.containers[name]["HostConfig"], **body})
        if problem:
            return _refused(400, problem)
        if self.programs[name].status is not None:
            return _refused(409, f"Container {name} is not running")
        self.containers[name]["HostConfig"] |= body
        return JSONResponse({"Warnings": []})

    def _kill(self, request: Request) -> Response:
        name = request.path_params["id"]
        if name not in self.programs or self.programs[name].status is not None:
            return _refused(409, f"Container {name} is not running")
        self.programs[name].send(signal.Signals[request.query_params["signal"]])
        return Response(status_code=204)

    def _inspect(self, request: Request) -> Response:
        name = request.path_params["id"]
        if name not in self.containers:
            return _refused(404, f"No such container: {name}")
        status = self.programs[name].status
        state = {"Status": "running" if status is None else "exited", "ExitCode": status or 0}
        return JSONResponse({**self.containers[name], "State": state})

    def _logs(self, request: Request) -> Response:
        return StreamingResponse(_framed(self.programs[request.path_params["id"]]))

    def _remove(self, request: Request) -> Response:
        name = request.path_params["id"]
        if self.containers.pop(name, None) is None:
            return _refused(404, f"No such container: {name}")
        if name in self.programs:
            self.programs[name].end()
        return Response(status_code=204)


def _framed(program: Program) -> Iterator[bytes]:
    for stream, piece in program.follow():
        yield struct.pack(">BxxxI", 1 if stream == "stdout" else 2, len(piece)) + piece


def _problem(limits: dict[str, Any]) -> str:
    if limits.get("NanoCpus", 0) > CORES * 10**9:
        return f"Range of CPUs is from 0.01 to {CORES}.00, as there are only {CORES} CPUs available"
    if 0 < limits.get("Memory", 0) < LEAST_MEMORY:
        return "Minimum memory limit allowed is 6MB"
    if 0 <= limits.get("MemorySwap", -1) < limits.get("Memory", 0):
        return "Minimum memoryswap limit should be larger than memory limit, see usage"
    return ""


def _refused(status: int, message: str) -> Response:
    return JSONResponse({"message": message}, status)
