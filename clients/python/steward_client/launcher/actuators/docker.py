"""Docker containers, through the Engine API on its socket; CPU and memory of a container change while it runs.

If the launcher is killed, the container runs on until the same run is started again (see `leftovers`); ``docker rm
--force $(docker ps --all --quiet --filter label=steward)`` removes all such containers.
"""

from __future__ import annotations

import json
import os
import signal
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
from typing_extensions import override

from steward_client.trust import ssl_context

from .contract import UNITS, ActuatorError, Allocation, Launch, Range, Settable, Sink, Stream, Unavailable
from .leftovers import Leaving, Leftover, launcher
from .remote import KILLED, Remote

LABEL, LAUNCHER = "steward", "steward-launcher"
SOCKET = "unix:///var/run/docker.sock"
TIMEOUT_SECONDS = 30.0
NANO_PER_PERCENT, MEBIBYTE = 10_000_000, 1 << 20
LEAST_MEBIBYTES = 6.0  # Docker's own
STREAMS: Mapping[int, Stream] = {1: "stdout", 2: "stderr"}
NO_SUCH, CONFLICT = 404, 409


class DockerContainer(Remote, Leaving):
    """Runs a command in a Docker container.

    Args:
        wanted: the resources to be set: ``cpu`` (percent of a core) and ``memory`` (MiB).
        image: the container's image, which must be present (``docker pull``).
        host: ``unix:///path`` or ``tcp://host:port``; empty: ``DOCKER_HOST``, else Docker's default socket.
        user: user in the container, ``uid`` or ``uid:gid``; empty: the image's.

    Raises:
        Unavailable: no image is given, or Docker doesn't respond.
        ActuatorError: ``host`` is malformed.
        CannotSet: Docker can't set a wanted resource, or not in that range.
    """

    name = "docker"
    look_seconds = 0.25

    def __init__(self, wanted: Mapping[str, Range], image: str = "", host: str = "", user: str = "") -> None:
        if not image:
            raise Unavailable("a container needs an image: --option image=python:3.11")
        address = host or os.environ.get("DOCKER_HOST", "") or SOCKET
        self._http, self.shares_files = _client(address), address.startswith("unix://")
        self._image, self._user, self._address, self._id = image, user, address, ""
        try:
            found = self._call("GET", "/info").json()
            super().__init__(_settable(found["NCPU"], found["MemTotal"]), wanted)
        except ActuatorError:
            self._http.close()
            raise

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        host: dict[str, Any] = {**_limits(allocation), "Init": True}
        if self.shares_files and launch.folder is not None:
            host["Binds"] = [f"{launch.folder}:{launch.folder}"]
        body = {
            "Image": self._image,
            "Entrypoint": [],
            "Cmd": list(launch.command),
            "Env": [f"{name}={value}" for name, value in launch.environment.items()],
            "Labels": {LABEL: launch.name, LAUNCHER: launcher()},
            "User": self._user,
            "HostConfig": host,
        }
        try:
            self._id = self._call("POST", "/containers/create", body).json()["Id"]
            self._call("POST", f"/containers/{self._id}/start")
        except ActuatorError:
            if self._id:
                self._remove()
            raise

    def _set(self, allocation: Allocation) -> None:
        self._call("POST", f"/containers/{self._id}/update", _limits(allocation))

    def _look(self) -> int | None:
        answer = self._call("GET", f"/containers/{self._id}/json", gone=True)
        if answer.status_code == NO_SUCH:
            return KILLED  # it was removed from outside
        state = answer.json()["State"]
        return int(state["ExitCode"]) if state["Status"] in ("exited", "dead") else None

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # it is waited for elsewhere
        self._call("POST", f"/containers/{self._id}/kill?signal={signal.Signals(number).name}", gone=True)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL, 0.0)

    def _remove(self) -> None:
        self._call("DELETE", f"/containers/{self._id}?force=true", gone=True)

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        wanted = json.dumps({"label": [f"{LABEL}={name}"]})
        found = self._call("GET", str(httpx.URL("/containers/json", params={"all": "true", "filters": wanted}))).json()
        return [Leftover(one["Id"], (one.get("Labels") or {}).get(LAUNCHER, "")) for one in found]

    @override
    def discard(self, one: Leftover) -> None:
        self._call("DELETE", f"/containers/{one.id}?force=true", gone=True)

    @override
    def close(self) -> None:
        super().close()
        self._http.close()

    def _follow(self, sink: Sink) -> None:
        path = f"/containers/{self._id}/logs?follow=true&stdout=true&stderr=true"
        try:
            with self._http.stream("GET", path, timeout=httpx.Timeout(TIMEOUT_SECONDS, read=None)) as answer:
                for stream, piece in frames(answer.iter_bytes()):
                    sink(stream, piece)
        except httpx.HTTPError as error:
            sink("stderr", f"[docker's log ended: {error}]\n".encode())

    def _call(self, method: str, path: str, body: Any = None, *, gone: bool = False) -> httpx.Response:
        """Call the Engine API and return the response; with ``gone`` a missing or stopped container is no error.

        Raises:
            Unavailable: Docker doesn't respond.
            ActuatorError: Docker refuses the call.
        """
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.RequestError as error:
            remedy = "is the daemon running, and may you use its socket (group docker)?"
            raise Unavailable(f"Docker doesn't answer at {self._address}: {error}; {remedy}") from error
        if not answer.is_success and not (gone and answer.status_code in (NO_SUCH, CONFLICT)):
            raise ActuatorError(f"Docker: {_message(answer)}{self._remedy(answer, path)}")
        return answer

    def _remedy(self, answer: httpx.Response, path: str) -> str:
        missing = answer.status_code == NO_SUCH and path.startswith("/containers/create")
        return f"; docker pull {self._image}" if missing else ""


def _client(address: str) -> httpx.Client:
    scheme, _, rest = address.partition("://")
    if scheme == "unix":
        if not Path(rest).is_socket():
            raise Unavailable(f"there is no socket {rest}: is Docker's daemon running? --option host=unix:///path")
        transport = httpx.HTTPTransport(uds=rest, verify=ssl_context())
        return httpx.Client(
            base_url="http://docker", transport=transport, timeout=TIMEOUT_SECONDS, verify=ssl_context()
        )
    if scheme != "tcp" or not rest:
        raise ActuatorError(f"host={address}: unix:///path or tcp://host:port is accepted")
    return httpx.Client(base_url=f"http://{rest}", timeout=TIMEOUT_SECONDS, verify=ssl_context())


def _settable(cores: int, memory: int) -> dict[str, Settable]:
    how = "docker update"
    return {
        "cpu": Settable(UNITS["cpu"], 1.0, 100.0 * cores, f"{how} --cpus"),
        "memory": Settable(UNITS["memory"], LEAST_MEBIBYTES, float(memory // MEBIBYTE), f"{how} --memory, no swap"),
    }


def _limits(allocation: Allocation) -> dict[str, int]:
    """The allocation as the Engine API's CPU (billionths of a core) and memory (bytes) limits; swap is disabled."""
    found = {}
    if "cpu" in allocation:
        found["NanoCpus"] = round(allocation["cpu"] * NANO_PER_PERCENT)
    if "memory" in allocation:
        found["Memory"] = found["MemorySwap"] = round(allocation["memory"] * MEBIBYTE)
    return found


def frames(pieces: Iterator[bytes]) -> Iterator[tuple[Stream, bytes]]:
    """Split the engine's multiplexed log into pairs of stream and bytes.

    A frame has an 8-byte header: a byte for the stream, three zero bytes, and the big-endian length in four bytes.
    """
    held = b""
    for piece in pieces:
        held += piece
        while len(held) >= 8 and len(held) >= 8 + (length := struct.unpack(">I", held[4:8])[0]):
            yield STREAMS.get(held[0], "stdout"), held[8 : 8 + length]
            held = held[8 + length :]


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.text[:200]}"
