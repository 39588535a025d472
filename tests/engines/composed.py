"""The services of ``docker-compose.yml`` as containers: what ``docker compose up`` would start, read from the file.

Where images of PostgreSQL and Redis can't be pulled, ``standins`` makes images of these names of Debian's servers.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.clients.launcher.docker_kit import call
from tests.engines.dockerd import Dockerd
from tests.servers import wait_until

ROOT = Path(__file__).parents[2]
PROJECT = "steward"
HEALTHY_SECONDS, PATIENCE = 600.0, 12
"""Machines of tests are shared: health checks may take twelve times as long as the file says."""
SECONDS = {"s": 1, "m": 60}


class Composed:
    """One or more containers of each service, on a network where they have the services' names.

    Args:
        engine: the daemon, which has the images.
        variables: values of the file's variables; others have the file's defaults.
    """

    def __init__(self, engine: Dockerd, variables: Mapping[str, str]) -> None:
        self.engine, self._variables = engine, variables
        self.services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        self.containers: dict[str, list[str]] = {name: [] for name in self.services}

    def up(self, scale: Mapping[str, int]) -> None:
        """Start all services, each after what it needs is healthy."""
        call(self.engine, "POST", "/networks/create", {"Name": PROJECT})
        left = dict(self.services)
        while left:
            name = next(one for one in left if not left.keys() & set(left[one].get("depends_on", ())))
            del left[name]
            for _ in range(scale.get(name, 1)):
                self.start(name)
            for container in self.containers[name]:
                self.wait(container)

    def start(self, name: str) -> str:
        """Start one more container of a service; its id."""
        service, number = self.services[name], len(self.containers[name]) + 1
        check = service["healthcheck"]
        ports = [self.resolved(one).rsplit(":", 2) for one in service.get("ports", ())] if number == 1 else []
        environment = service.get("environment", {}).items()
        body = {
            "Image": service["image"],
            "Cmd": service["command"],
            "Env": [f"{key}={self.resolved(value)}" for key, value in environment],
            "StopTimeout": _seconds(service.get("stop_grace_period", "10s")),
            "Healthcheck": {
                "Test": check["test"],
                "Retries": check["retries"],
                **{key: _seconds(check.get(message, "0s")) * 10**9 for key, message in CHECKED.items()},
                "Timeout": PATIENCE * _seconds(check["timeout"]) * 10**9,
            },
            "ExposedPorts": {f"{inner}/tcp": {} for _, _, inner in ports},
            "HostConfig": {
                "Binds": [f"{PROJECT}_{one}" for one in service["volumes"]],
                "NetworkMode": PROJECT,
                "RestartPolicy": {"Name": service["restart"]},
                "PortBindings": {f"{inner}/tcp": [{"HostIp": ip, "HostPort": port}] for ip, port, inner in ports},
            },
            "NetworkingConfig": {"EndpointsConfig": {PROJECT: {"Aliases": [name]}}},
        }
        container = call(self.engine, "POST", "/containers/create", body, name=f"{PROJECT}-{name}-{number}")["Id"]
        self.containers[name].append(str(container))
        call(self.engine, "POST", f"/containers/{container}/start")
        return str(container)

    def down(self) -> None:
        """Remove all containers."""
        for containers in self.containers.values():
            for one in containers:
                call(self.engine, "DELETE", f"/containers/{one}", force="true")

    def resolved(self, text: str) -> str:
        """`${NAME:-default}` as compose reads it."""
        return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: self._variables.get(match[1], match[2]), text)

    def inspect(self, container: str) -> dict[str, Any]:
        """What the engine knows of a container."""
        inspect: dict[str, Any] = call(self.engine, "GET", f"/containers/{container}/json")
        return inspect

    def address(self, container: str) -> str:
        """A container's address on the network."""
        return str(self.inspect(container)["NetworkSettings"]["Networks"][PROJECT]["IPAddress"])

    def wait(self, container: str) -> None:
        """Wait until a container's own health check passes."""

        def healthy() -> bool:
            return bool(self.inspect(container)["State"].get("Health", {}).get("Status") == "healthy")

        wait_until(healthy, HEALTHY_SECONDS, f"{container[:12]} to be healthy\n{self.logs(container)[-2000:]}")

    def crash(self, container: str) -> None:
        """Kill a container's first process, as a fault would: the engine starts it again, as the file says."""
        before = self.inspect(container)
        os.kill(int(before["State"]["Pid"]), signal.SIGKILL)
        wait_until(lambda: self.inspect(container)["RestartCount"] > before["RestartCount"], 60, "a restart")

    def logs(self, container: str) -> str:
        """What a container has printed."""
        return self.engine.docker("logs", "--tail", "40", container)

    def execute(self, container: str, *command: str) -> str:
        """Run a command in a container, and return its standard output."""
        return self.engine.docker("exec", container, "sh", "-c", f"{' '.join(command)} 2>/dev/null")


CHECKED = {"Interval": "interval", "StartPeriod": "start_period"}


def _seconds(text: str) -> int:
    return int(text[:-1]) * SECONDS[text[-1]]
