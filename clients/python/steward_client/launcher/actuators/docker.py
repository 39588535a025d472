"""Docker containers, through the Engine API on its socket; CPU and memory of a container change while it runs.

If the launcher is killed, the container runs on until the same run is started again (see `leftovers`); ``docker rm
--force $(docker ps --all --quiet --filter label=steward)`` removes all such containers.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
from typing_extensions import override

from steward_client.trust import ssl_context

from .contract import (
    UNITS,
    ActuatorError,
    Allocation,
    CannotSet,
    Launch,
    Range,
    Settable,
    Sink,
    Stream,
    Unavailable,
)
from .leftovers import Leaving, Leftover, launcher
from .remote import FIRST_PAUSE_SECONDS, KILLED, LONGEST_PAUSE_SECONDS, Remote

LABEL, LAUNCHER = "steward", "steward-launcher"
SOCKET = "unix:///var/run/docker.sock"
TIMEOUT_SECONDS = 30.0
NANO_PER_PERCENT, MEBIBYTE = 10_000_000, 1 << 20
LEAST_MEBIBYTES = 6.0  # Docker's own
STREAMS: Mapping[int, Stream] = {1: "stdout", 2: "stderr"}
NO_SUCH, CONFLICT = 404, 409
ROOT = "/"
SHARED_FOLDER, SHARED_FILE = 0o711, 0o666
"""Modes of the launcher's folder and its files if the container's user is another one; the folder's name can't be
guessed."""


class DockerContainer(Remote, Leaving):
    """Runs a command in a Docker container.

    Args:
        wanted: the resources to be set: ``cpu`` (percent of a core) and ``memory`` (MiB).
        image: the container's image, which must be present (``docker pull``).
        host: ``unix:///path`` or ``tcp://host:port``; empty: ``DOCKER_HOST``, else Docker's default socket.
        user: user in the container, ``uid`` or ``uid:gid``; empty: the image's.
        folder: folder of this machine in which the command begins, mounted under the same path if the daemon is on this
            machine; by default the launcher's working folder; empty: none, and the image's is the working folder.
        network: network of the container, such as ``host``; empty: Docker's default.

    Raises:
        Unavailable: no image is given, or Docker doesn't respond.
        ActuatorError: ``host`` is malformed, or there is no such ``folder``.
        CannotSet: Docker can't set a wanted resource, or not in that range.
    """

    name = "docker"
    look_seconds = 0.25

    def __init__(
        self,
        wanted: Mapping[str, Range],
        image: str = "",
        host: str = "",
        user: str = "",
        folder: str = ".",
        network: str = "",
    ) -> None:
        if not image:
            raise Unavailable("a container needs an image: --option image=python:3.11")
        if folder and not Path(folder).is_dir():
            raise ActuatorError(f"folder={folder}: a folder of this machine is accepted, or nothing for none")
        address = host or os.environ.get("DOCKER_HOST", "") or SOCKET
        self._http, self.shares_files = _client(address), address.startswith("unix://")
        self._image, self._user, self._network, self._address = image, user, network, address
        self._mounted = str(Path(folder).resolve()) if folder and self.shares_files else ROOT
        self._id = ""
        self._output: httpx.Response | None = None
        try:
            body = self._call("GET", "/info").json()
            super().__init__(_settable(body["NCPU"], body["MemTotal"]), wanted)
        except ActuatorError:
            self._http.close()
            raise

    def _begin(self, launch: Launch, allocation: Allocation) -> None:
        body: dict[str, Any] = {
            "Image": self._image,
            "Entrypoint": [],
            "Cmd": list(launch.command),
            "Env": [f"{name}={value}" for name, value in launch.environment.items()],
            "Labels": {LABEL: launch.name, LAUNCHER: launcher()},
            "User": self._user,
            "HostConfig": {**_limits(allocation), "Init": True, "NetworkMode": self._network, "Mounts": []},
        }
        shared = [str(launch.folder)] if self.shares_files and launch.folder is not None else []
        if self._mounted != ROOT:  # which can't be mounted
            shared.append(self._mounted)
            body["WorkingDir"] = self._mounted
        body["HostConfig"]["Mounts"] = [{"Type": "bind", "Source": one, "Target": one} for one in dict.fromkeys(shared)]
        try:
            self._id = self._call("POST", "/containers/create", body).json()["Id"]
            if self.shares_files and launch.folder is not None:
                user = self._call("GET", f"/containers/{self._id}/json").json()["Config"]["User"]
                _share(launch.folder, user.partition(":")[0])
            # Attached before the start nothing is missed, and a piece of a line is passed on as it is written.
            self._output = self._open("POST", f"/containers/{self._id}/attach?stream=true&stdout=true&stderr=true")
            self._call("POST", f"/containers/{self._id}/start")
        except ActuatorError:
            if self._id:
                self._remove()
            raise

    def _set(self, allocation: Allocation) -> None:
        if allocation.get("memory", math.inf) < self._current.get("memory", 0.0):
            self._check_memory(allocation["memory"])
        try:
            self._call("POST", f"/containers/{self._id}/update", _limits(allocation))
        except Unavailable:
            raise
        except ActuatorError as error:
            name = next(iter(allocation))
            raise CannotSet(name, allocation[name], f"it is refused: {error}") from error

    def _check_memory(self, mebibytes: float) -> None:
        """Refuse a limit below what is in use: depending on its cgroups, Docker would let the kernel kill the command.

        Raises:
            CannotSet: more is in use, without the files' cache.
        """
        response = self._call("GET", f"/containers/{self._id}/stats?stream=false&one-shot=true", gone=True)
        stats = response.json().get("memory_stats", {}).get("stats", {}) if response.is_success else {}
        used = stats.get("anon", stats.get("total_rss", 0)) / MEBIBYTE  # of cgroups 2, of cgroups 1
        if used > mebibytes:
            raise CannotSet("memory", mebibytes, f"more is needed: the command has {used:.0f} MiB in use")

    def _look(self) -> int | None:
        answer = self._call("GET", f"/containers/{self._id}/json", gone=True)
        if answer.status_code == NO_SUCH:
            self.reason = "the container was removed"
            return KILLED
        state = answer.json()["State"]
        if state["Status"] not in ("exited", "dead"):
            return None
        if state.get("OOMKilled"):
            limit = f"{self._current['memory']:g} MiB" if "memory" in self._current else "the machine's"
            self.reason = f"out of memory (the limit was {limit})"
        return int(state["ExitCode"])

    def _signal(self, number: int, seconds: float) -> None:  # noqa: ARG002 # it is waited for elsewhere
        self._call("POST", f"/containers/{self._id}/kill?signal={signal.Signals(number).name}", gone=True)

    def _kill(self) -> None:
        self._signal(signal.SIGKILL, 0.0)

    def _remove(self) -> None:
        self._call("DELETE", f"/containers/{self._id}?force=true", gone=True)

    @override
    def leftovers(self, name: str) -> Iterable[Leftover]:
        wanted = json.dumps({"label": [f"{LABEL}={name}"]})
        body = self._call("GET", str(httpx.URL("/containers/json", params={"all": "true", "filters": wanted}))).json()
        return [Leftover(one["Id"], (one.get("Labels") or {}).get(LAUNCHER, "")) for one in body]

    @override
    def discard(self, one: Leftover) -> None:
        self._call("DELETE", f"/containers/{one.id}?force=true", gone=True)

    @override
    def close(self) -> None:
        super().close()
        self._http.close()

    def _follow(self, sink: Sink) -> None:
        """Pass on what the container writes; if the daemon goes away, the rest from its log once it is back."""
        received, pause = dict.fromkeys(STREAMS.values(), 0), FIRST_PAUSE_SECONDS
        while True:
            last = self._closed
            try:
                self._pass_on(received, sink)
                if last or self._look() is not None:
                    return
            except (Unavailable, httpx.HTTPError):
                if last:
                    return
            except ActuatorError as error:  # this log driver can't be read, or the container is gone
                sink("stderr", f"[docker's log ended: {error}]\n".encode())
                return
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)

    def _pass_on(self, received: dict[Stream, int], sink: Sink) -> None:
        """Pass on the attached stream, or the log without the bytes of each stream that were ``received`` already."""
        answer, self._output = self._output, None
        skipped = dict.fromkeys(received, 0) if answer is not None else dict(received)
        if answer is None:
            answer = self._open("GET", f"/containers/{self._id}/logs?follow=true&stdout=true&stderr=true")
        try:
            for stream, piece in frames(answer.iter_bytes()):
                fresh = piece[skipped[stream] :]
                skipped[stream] -= len(piece) - len(fresh)
                received[stream] += len(fresh)
                if fresh:
                    sink(stream, fresh)
        finally:
            answer.close()

    def _call(self, method: str, path: str, body: Any = None, *, gone: bool = False) -> httpx.Response:
        """Call the Engine API and return the response; with ``gone`` a missing or stopped container is no error.

        Raises:
            Unavailable: Docker doesn't respond.
            ActuatorError: Docker refuses the call.
        """
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.RequestError as error:
            raise self._no_answer(error) from error
        if not answer.is_success and not (gone and answer.status_code in (NO_SUCH, CONFLICT)):
            raise ActuatorError(f"Docker: {_message(answer)}{self._remedy(answer, path)}")
        return answer

    def _open(self, method: str, path: str) -> httpx.Response:
        """Call the Engine API and return the response as a stream, to be closed; raises Unavailable if Docker doesn't
        respond, and ActuatorError if it refuses the call."""
        request = self._http.build_request(method, path, timeout=httpx.Timeout(TIMEOUT_SECONDS, read=None))
        try:
            answer = self._http.send(request, stream=True)
            if answer.is_success:
                return answer
            answer.read()
        except httpx.RequestError as error:
            raise self._no_answer(error) from error
        raise ActuatorError(f"Docker: {_message(answer)}")

    def _no_answer(self, error: Exception) -> Unavailable:
        remedy = "is the daemon running, and may you use its socket (group docker)?"
        return Unavailable(f"Docker doesn't answer at {self._address}: {error}; {remedy}")

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


def _share(folder: Path, user: str) -> None:
    """Let ``user``, a container's, read and append to the files of the launcher's folder; empty: root."""
    if user in ("", "0", "root", str(os.getuid())):
        return
    folder.chmod(SHARED_FOLDER)
    for file in filter(Path.is_file, folder.iterdir()):
        file.chmod(SHARED_FILE)


def _settable(cores: int, memory: int) -> dict[str, Settable]:
    how = "docker update"
    return {
        "cpu": Settable(UNITS["cpu"], 1.0, 100.0 * cores, f"{how} --cpus"),
        "memory": Settable(UNITS["memory"], LEAST_MEBIBYTES, float(memory // MEBIBYTE), f"{how} --memory, no swap"),
    }


def _limits(allocation: Allocation) -> dict[str, int]:
    """The allocation as the Engine API's CPU (billionths of a core) and memory (bytes) limits; swap is disabled."""
    limits = {}
    if "cpu" in allocation:
        limits["NanoCpus"] = round(allocation["cpu"] * NANO_PER_PERCENT)
    if "memory" in allocation:
        limits["Memory"] = limits["MemorySwap"] = round(allocation["memory"] * MEBIBYTE)
    return limits


def frames(pieces: Iterator[bytes]) -> Iterator[tuple[Stream, bytes]]:
    """Split the engine's multiplexed log into pairs of stream and bytes.

    A frame has an 8-byte header: a byte for the stream, three zero bytes, and the big-endian length in four bytes.
    """
    rest = b""
    for piece in pieces:
        rest += piece
        while len(rest) >= 8 and len(rest) >= 8 + (length := struct.unpack(">I", rest[4:8])[0]):
            yield STREAMS.get(rest[0], "stdout"), rest[8 : 8 + length]
            rest = rest[8 + length :]


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.status_code} {answer.text[:200]}"
