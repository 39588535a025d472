"""A real Ray on this machine: a head of one core in a folder of its own.

Its programs are found in an environment within this Python's (``.venv/ray``), or on PATH. It listens on loopback, and
asks for a token, as Ray does where one was made (2.60).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.engines.required import PATH, left_out
from tests.servers import free_port, stop, wait_until

HOST, OTHER_HOST = "127.0.0.2", "127.0.0.3"
"""Of the head, and of a node that joins it. Ray takes a node's address 127.0.0.1 for the machine's first outer one;
these are loopback, too."""
START_SECONDS, TRIES = 240, 4
RAYLETS, GAVE_UP = "t/session_*/logs/raylet*.out", "Timed out waiting for file"
"""The nodes' logs, and what it has said if its agents took more than 15 s, as on a busy machine."""
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "RAY_AUTH_MODE": "token",
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": str(START_SECONDS),
    "RAY_agent_register_timeout_ms": str(1000 * START_SECONDS),
    "RAY_raylet_start_wait_time_s": str(START_SECONDS),
    "RAY_worker_register_timeout_seconds": str(START_SECONDS),
}
CLIENTS = "ray-client-server-port"
PORTS = (
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "metrics-export-port",
    CLIENTS,
    "runtime-env-agent-port",
)
"""Told rather than chosen: for those that its agents choose a node waits 15 s, whatever else the machine does."""
MARK = "STEWARD_RAY_FOLDER"


def ray_program() -> Path:
    """The program ``ray``; leaves the test out where it isn't installed."""
    path = shutil.which("ray", path=f"{sys.prefix}/ray/bin:{PATH}")
    if path is None:
        left_out("ray not installed: .ci/ray installs it")
    return Path(path)


@dataclass
class RayEngine:
    """A running Ray; ``folder`` has its logs, ``address`` is that of its dashboard."""

    folder: Path
    program: Path = field(default_factory=ray_program)
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    port: int = field(default_factory=free_port)
    dashboard: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    node: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def code(self) -> Path:
        """Folder of modules that it can import."""
        return self.folder / "code"

    @property
    def address(self) -> str:
        """URL of its dashboard."""
        return f"http://127.0.0.1:{self.dashboard}"

    @property
    def python(self) -> str:
        """The Python in which Ray is installed."""
        return str(self.program.parent / "python")

    @property
    def http(self) -> httpx.Client:
        """A client of its API that has the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=START_SECONDS)

    def start(self) -> None:
        """Start the head, and wait until it takes jobs; once more if its node gave up waiting for its own agents."""
        for _ in range(TRIES):
            self._begin()
            wait_until(self._decided, START_SECONDS, f"Ray to start, see {self.folder}/log")
            if self._takes_jobs():
                return
            self.stop()
        left_out(f"Ray can't be started here: {(self.folder / 'log').read_text()[-300:]}")

    def _decided(self) -> bool:
        """Whether it has started, or won't."""
        ended = self.process is None or self.process.poll() is not None
        return ended or self._gave_up() > 0 or self._takes_jobs()

    def _gave_up(self) -> int:
        return sum(GAVE_UP in log.read_text(errors="replace") for log in self.folder.glob(RAYLETS))

    def _begin(self) -> None:
        shutil.rmtree(self.folder / "t", ignore_errors=True)
        options = {
            "node-ip-address": HOST,
            "port": self.port,
            "num-cpus": 1,
            "object-store-memory": 78_643_200,
            "dashboard-host": "127.0.0.1",
            "dashboard-port": self.dashboard,
            **{name: free_port() for name in PORTS},
            "include-log-monitor": "False",
            "temp-dir": self.folder / "t",
        }
        self.process = self._launched("--head", options)

    def add_node(self, cores: int) -> None:
        """Start another node, and wait until it has joined; again if it gave up waiting for its own agents."""
        options = {
            "address": f"{HOST}:{self.port}",
            "node-ip-address": OTHER_HOST,
            "num-cpus": cores,
            "object-store-memory": 78_643_200,
            **{name: free_port() for name in PORTS if name != CLIENTS},
        }
        for _ in range(TRIES):
            gave_up = self._gave_up()
            self.node = self._launched("", options)
            wait_until(lambda: len(self._nodes()) > 1 or self._gave_up() > gave_up, START_SECONDS, "a node to join")  # noqa: B023
            if len(self._nodes()) > 1:
                return
            self.remove_node()
        left_out("a second node of Ray can't be started here")

    def remove_node(self) -> None:
        """End what `add_node` started."""
        if self.node is not None:
            stop(self.node, seconds=20)
            self.node = None

    def _launched(self, how: str, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
        """A process of ``ray start``."""
        command = [str(self.program), "start", *filter(None, (how,)), "--block", "--disable-usage-stats"]
        command += [f"--{name}={value}" for name, value in options.items()]
        mine = {"PATH": f"{self.program.parent}:{PATH}", "RAY_AUTH_TOKEN": self.token, MARK: str(self.folder)}
        environment = {**os.environ, **ENVIRONMENT, **mine, "PYTHONPATH": str(self.code)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # its dozens of processes all import much
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def _takes_jobs(self) -> bool:
        """Whether there is a node to run jobs."""
        return bool(self._nodes())

    def _nodes(self) -> list[Any]:
        """The nodes that are there; none if the head doesn't answer."""
        try:
            with self.http as http:
                listed = http.get("/nodes", params={"view": "summary"})
                return list(listed.json()["data"]["summary"]) if listed.is_success else []
        except httpx.HTTPError:
            return []

    def requested(self) -> list[dict[str, float]]:
        """The bundles that the autoscaler was requested to have room for, as it reports them every few seconds."""
        with self.http as http:
            status = http.get("/api/cluster_status").raise_for_status().json()["data"]["clusterStatus"]
        demand = ((status or {}).get("loadMetricsReport") or {}).get("requestDemand") or []
        return [bundle for bundle, number in demand for _ in range(number)]

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Submitted jobs by id."""
        with self.http as http:
            listed = http.get("/api/jobs/").raise_for_status().json()
        return {one["submission_id"]: one for one in listed if one.get("submission_id")}

    def stop(self) -> None:
        """End the head, and by their ids what it has started."""
        self.remove_node()
        if self.process is not None:
            stop(self.process, seconds=20)
        left = [process for process in psutil.process_iter() if _mark(process) == str(self.folder)]
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=30)


def _mark(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except psutil.Error:
        return None


@contextmanager
def ray_engine() -> Iterator[RayEngine]:
    """A Ray in a folder of its own; at its end none of its processes is left."""
    program = ray_program()
    folder = Path(tempfile.mkdtemp(prefix="sray-"))  # short: sockets in it have long names
    engine = RayEngine(folder, program)
    engine.code.mkdir()
    try:
        engine.start()
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def engine() -> Iterator[RayEngine]:
    """A real Ray for the tests of a session; left out where it isn't installed."""
    with ray_engine() as running:
        yield running


@pytest.fixture
def cluster(engine: RayEngine, monkeypatch: pytest.MonkeyPatch) -> RayEngine:
    """The Ray of the session, which this process's actuators find, and whose token they have."""
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", engine.address)
    monkeypatch.setenv("RAY_AUTH_TOKEN", engine.token)
    return engine
