"""A Steward service of the demonstration's own, and the calls of its API that demonstrations make."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.cli.remote.service import Json, RefusedError, Service
from app.processes import child_command
from steward_demos.processes import STOP_SECONDS, ChildError

__all__ = ["Json", "RefusedError", "Steward"]


class Steward(Service):
    """Client of one Steward service; a context manager."""

    def register(self, spec: Json) -> Json:
        """Register a workload by its spec; raises RefusedError if it is rejected."""
        return self.call("POST", "/workloads", json=spec)

    def upload(self, workload: str, csv: str, name: str | None = None) -> Json:
        """Upload executions as CSV; ``name`` names the execution if the CSV doesn't; raises RefusedError."""
        query = {} if name is None else {"execution": name}
        headers = {"content-type": "text/csv"}
        return self.call("POST", f"/workloads/{workload}/samples", content=csv, headers=headers, params=query)

    def aim(self, workload: str, seconds: float) -> Json:
        """Set the deadline of a workload's runs in seconds; raises RefusedError if it is rejected."""
        return self.call("PATCH", f"/workloads/{workload}", json={"targets": {"iteration_seconds": seconds}})

    def fit(self, workload: str) -> str:
        """Request the fit of a domain model and return the job's id; raises RefusedError if it is rejected."""
        return str(self.call("POST", f"/workloads/{workload}/models", json={})["id"])

    def train(self, workload: str, **request: Any) -> str:
        """Request the training of an agent and return the job's id; raises RefusedError if it is rejected."""
        return str(self.call("POST", f"/workloads/{workload}/agents", json=request)["id"])

    def model(self, workload: str, version: int) -> Json:
        """The report of a version of the domain model; raises RefusedError if there is none."""
        return dict(self.call("GET", f"/workloads/{workload}/models/{version}")["report"])

    def agent(self, workload: str, version: int) -> Json:
        """The report of a version of the agent; raises RefusedError if there is none."""
        return dict(self.call("GET", f"/workloads/{workload}/agents/{version}")["report"])

    def start(self, workload: str) -> Json:
        """Start a live run and return its id and first decision; raises RefusedError if it is rejected."""
        return self.call("POST", "/runs", json={"workload": workload})

    def report(self, run: str, iteration: int, report: Json) -> Json:
        """Report an iteration and return the next decision; raises RefusedError if it is rejected."""
        return self.call("PUT", f"/runs/{run}/iterations/{iteration}", json=report)

    def finish(self, run: str) -> Json:
        """Finish a run; its iterations become a sample; raises RefusedError if it is rejected."""
        return self.call("PATCH", f"/runs/{run}", json={"state": "finished"})


READY_SECONDS = 60.0


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def own_service() -> Iterator[Steward]:
    """Context manager: a service, started within 60 s, else it raises ChildError; its data are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="steward-demo-") as folder:
        port = free_port()
        process = _start(Path(folder), port)
        try:
            with Steward(f"http://127.0.0.1:{port}") as steward:
                _wait(steward, process, Path(folder))
                yield steward
        finally:
            _stop(process)


def _start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """Start the service without the STEWARD_ variables of the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEWARD_")}
    command = child_command("app.cli", "serve", "--port", str(port), "--data", str(folder))
    with (folder / "serve.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def _wait(steward: Steward, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not steward.ready():
        if process.poll() is not None or time.monotonic() > deadline:
            log = (folder / "serve.log").read_text(errors="replace")[-2000:]
            raise ChildError(f"the service did not become ready within {READY_SECONDS:g} s:\n{log}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
