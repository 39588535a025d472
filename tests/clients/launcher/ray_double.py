"""A double of Ray's API of jobs: jobs are processes of this machine; requests for resources are remembered.

It does what Ray 2.60 was seen to do (``tests/engines/test_ray_actuator.py``): it asks for a token where it has one,
writes lines of its own into a job's output, and forgets all jobs when its head is started anew.
"""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import httpx

from tests.clients.launcher.program import Program

AHEAD = "2026-01-01 00:00:00,000\tINFO job_manager.py:581 -- Runtime env is setting up.\n"


@dataclass
class RayDouble:
    """The head; ``requests`` are what its autoscaler was asked for."""

    folder: Path
    requests: list[Any] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    token: str = ""
    away: bool = False
    refusing: bool = False
    totals: dict[str, float] | None = None  # None: a cluster without an autoscaler
    lock: Lock = field(default_factory=Lock)

    def restart(self) -> None:
        """The head ends, with all that it runs, and another is started in its place."""
        with self.lock:
            for program in self.programs.values():
                program.end()
            self.jobs.clear()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        with self.lock:  # threads of the actuator ask for the status and for the log
            return self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("connection refused", request=request)
        if self.token and (Authorization := request.headers.get("Authorization")) != f"Bearer {self.token}":
            wrong = "Forbidden: Invalid" if Authorization else "Unauthorized: Missing"
            return httpx.Response(403 if Authorization else 401, text=f"{wrong} authentication token")
        if request.url.path == "/api/version":
            return httpx.Response(200, json={"ray_version": "2.50.0"})
        if request.url.path == "/api/cluster_status":
            return httpx.Response(200, json={"result": True, "data": {"clusterStatus": self._status()}})
        _, _, _, name, *more = request.url.path.split("/")
        if request.method == "POST" and not name:
            return self._submitted(json.loads(request.content))
        if not name:
            listed = [{**job, **self._read(one)} for one, job in self.jobs.items()]
            return httpx.Response(200, json=[*listed, {"type": "DRIVER", "submission_id": None, "status": "RUNNING"}])
        if name not in self.jobs:
            return httpx.Response(404, text=f"Job {name} does not exist")
        if request.method == "DELETE":
            self._delete(name)
            return httpx.Response(200, json=True)
        if more == ["stop"]:
            self.jobs[name]["stopped"] = True
            self.programs[name].send(signal.SIGTERM)
            return httpx.Response(200, json={"stopped": True})
        fields = {"logs": self._logs(name)} if more == ["logs"] else self._read(name)
        return httpx.Response(200, json=fields)

    def _delete(self, name: str) -> None:
        if self.jobs.pop(name).get("done"):  # its supervisor hasn't ended yet, and writes its end down anew
            self.jobs[name] = {"submission_id": name, "metadata": None, "anew": True}

    def _status(self) -> dict[str, Any] | None:
        """Of the autoscaler; None without one."""
        if self.totals is None:
            return None
        return {"loadMetricsReport": {"usage": {name: [0.0, total] for name, total in self.totals.items()}}}

    def _submitted(self, body: dict[str, Any]) -> httpx.Response:
        name, environment = body["submission_id"], body["runtime_env"]["env_vars"]
        self.jobs[name] = body
        if "STEWARD_BUNDLES" in environment:
            assert "request_resources" in body["entrypoint"]
            self.requests.append(json.loads(environment["STEWARD_BUNDLES"]))
            self.jobs[name]["done"] = True
        else:
            self.programs[name] = Program(shlex.split(body["entrypoint"]), environment, self.folder / name)
        return httpx.Response(200, json={"submission_id": name, "job_id": name})

    def _read(self, name: str) -> dict[str, Any]:
        if self.jobs[name].get("anew"):
            return {"status": "FAILED", "message": "Unexpected error occurred"}
        if self.jobs[name].get("done"):
            return {"status": "FAILED" if self.refusing else "SUCCEEDED", "message": "no such cluster"}
        status = self.programs[name].status
        if status is None:
            return {"status": "RUNNING", "driver_exit_code": None}
        if self.jobs[name].get("stopped"):
            return {"status": "STOPPED", "driver_exit_code": None, "message": "Job was intentionally stopped."}
        return {"status": "FAILED" if status else "SUCCEEDED", "driver_exit_code": status}

    def _logs(self, name: str) -> str:
        written = b"".join(piece for _, piece in self.programs[name].written()).decode()
        first, end, rest = written.partition("\n")
        return f"{AHEAD}{first}{end}Running entrypoint for job {name}: {self.jobs[name]['entrypoint']}\n{rest}"
