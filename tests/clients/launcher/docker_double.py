"""A double of Docker's Engine API on a unix socket: containers are processes of this machine, limits are remembered.

It is no Docker: paths, bodies and answers are written from the Engine's API reference, and from what Docker 20.10 does
(``tests/engines``), with which it passes the same tests.
"""

from __future__ import annotations

import asyncio
import json
import signal
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from steward_client.launcher.actuators.contract import Stream

from tests.clients.launcher.program import Program

IMAGE = "python:3.11"
CORES, MEMORY = 4, 8 << 30
LEAST_MEMORY = 6 << 20
PAUSE_SECONDS = 0.01


class DockerDouble:
    """The engine; ``containers`` are those that are there, with what was asked for and set."""

    image = IMAGE

    def __init__(self, folder: Path) -> None:
        self.folder, self.containers = folder, dict[str, dict[str, Any]]()
        self.programs: dict[str, Program] = {}
        self.socket = folder / "docker.sock"
        self._made = 0
        self._serve()

    def _serve(self) -> None:
        routes = [
            Route("/info", lambda _: JSONResponse({"NCPU": CORES, "MemTotal": MEMORY})),
            Route("/containers/json", self._list),
            Route("/containers/create", self._create, methods=["POST"]),
            Route("/containers/{id}/start", self._start, methods=["POST"]),
            Route("/containers/{id}/update", self._update, methods=["POST"]),
            Route("/containers/{id}/kill", self._kill, methods=["POST"]),
            Route("/containers/{id}/json", self._inspect),
            Route("/containers/{id}/logs", self._output),
            Route("/containers/{id}/attach", self._output, methods=["POST"]),
            Route("/containers/{id}/stats", self._stats),
            Route("/containers/{id}", self._remove, methods=["DELETE"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), uds=str(self.socket), log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)

    def _end(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self.socket.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs.values():
            program.end()
        self._end()

    @contextmanager
    def away(self) -> Iterator[None]:
        """The engine is gone within the block; its containers go on."""
        self._end()
        try:
            yield
        finally:
            self._serve()

    def run_out_of_memory(self, name: str) -> None:
        """What the kernel does to a container that needs more than its limit."""
        self.containers[name]["State"]["OOMKilled"] = True
        self.programs[name].send(signal.SIGKILL)

    async def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        return body

    async def _create(self, request: Request) -> Response:
        body = await self._body(request)
        if body["Image"] != IMAGE:
            return _refused(404, f"No such image: {body['Image']}")
        gone = [one["Source"] for one in body["HostConfig"]["Mounts"] if not Path(one["Source"]).exists()]
        problem = _problem(body["HostConfig"]) or (gone and f"bind source path does not exist: {gone[0]}")
        if problem:
            return _refused(400, problem)
        self._made += 1
        name = f"c{self._made}"
        config = {key: value for key, value in body.items() if key != "HostConfig"}
        state = {"Status": "created", "ExitCode": 0, "OOMKilled": False}
        self.containers[name] = {"Id": name, "Config": config, "HostConfig": body["HostConfig"], "State": state}
        return JSONResponse({"Id": name, "Warnings": []}, 201)

    def _list(self, request: Request) -> Response:
        assert request.query_params["all"] == "true"
        wanted = json.loads(request.query_params.get("filters", "{}")).get("label", [])
        results = [
            {"Id": one, "Labels": body["Config"]["Labels"]}
            for one, body in self.containers.items()
            if all(body["Config"]["Labels"].get(pair.split("=")[0]) == pair.split("=")[1] for pair in wanted)
        ]
        return JSONResponse(results)

    def _start(self, request: Request) -> Response:
        name = request.path_params["id"]
        body = self.containers[name]["Config"]
        environment = dict(pair.partition("=")[::2] for pair in body["Env"])
        command, within = body["Cmd"], body.get("WorkingDir", self.folder)
        try:
            self.programs[name] = Program(command, environment, self.folder / name, within)
        except FileNotFoundError:  # the container is there, its first process is tini
            failed = f"echo '[FATAL tini (7)] exec {command[0]} failed: No such file or directory' >&2; exit 127"
            self.programs[name] = Program(["/bin/sh", "-c", failed], environment, self.folder / f"{name}-init", within)
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
        result, program = self.containers[name], self.programs.get(name)
        status = program.status if program else None
        now = "created" if program is None else "running" if status is None else "exited"
        return JSONResponse({**result, "State": {**result["State"], "Status": now, "ExitCode": status or 0}})

    def _stats(self, request: Request) -> Response:
        program = self.programs[request.path_params["id"]]
        return JSONResponse({"memory_stats": {"stats": {"anon": program.resident} if program.status is None else {}}})

    def _output(self, request: Request) -> Response:
        name = request.path_params["id"]
        if name not in self.containers:
            return _refused(404, f"No such container: {name}")
        return StreamingResponse(self._frames(name))

    async def _frames(self, name: str) -> AsyncIterator[bytes]:
        while name not in self.programs and name in self.containers:
            await asyncio.sleep(PAUSE_SECONDS)
        if name not in self.containers:
            return
        program, visited, ended = self.programs[name], dict[Stream, int](), False
        while not ended:
            ended = program.status is not None
            for stream, written in program.written():
                piece = written[visited.get(stream, 0) :]
                visited[stream] = len(written)
                if piece:
                    yield struct.pack(">BxxxI", 1 if stream == "stdout" else 2, len(piece)) + piece
            await asyncio.sleep(0 if ended else PAUSE_SECONDS)

    def _remove(self, request: Request) -> Response:
        name = request.path_params["id"]
        if self.containers.pop(name, None) is None:
            return _refused(404, f"No such container: {name}")
        if name in self.programs:
            self.programs[name].end()
        return Response(status_code=204)


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
