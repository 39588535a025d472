"""A double of Ray's API of jobs: jobs are processes of this machine; requests for resources are remembered.

It is no Ray: paths, bodies and answers are written from the reference of its dashboard's REST API.
"""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.clients.launcher.program import Program


@dataclass
class RayDouble:
    """The head; ``requests`` are what its autoscaler was asked for."""

    folder: Path
    requests: list[Any] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    programs: dict[str, Program] = field(default_factory=dict)
    away: bool = False
    refusing: bool = False
    totals: dict[str, float] | None = None  # None: a cluster without an autoscaler

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.away:
            raise httpx.ConnectError("connection refused", request=request)
        if request.url.path == "/api/version":
            return httpx.Response(200, json={"ray_version": "2.50.0"})
        if request.url.path == "/api/cluster_status":
            if self.totals is None:
                return httpx.Response(200, json={"result": True, "data": {"clusterStatus": None}})
            report = {"usage": {name: [0.0, total] for name, total in self.totals.items()}}
            return httpx.Response(200, json={"result": True, "data": {"clusterStatus": {"loadMetricsReport": report}}})
        _, _, _, name, *more = request.url.path.split("/")
        if request.method == "POST" and not name:
            return self._submitted(json.loads(request.content))
        if not name:
            return httpx.Response(200, json=[{**job, **self._read(one)} for one, job in self.jobs.items()])
        if name not in self.jobs:
            return httpx.Response(404, text=f"Job {name} does not exist")
        if request.method == "DELETE":
            self.jobs.pop(name)
            return httpx.Response(200, json=True)
        if more == ["stop"]:
            self.jobs[name]["stopped"] = True
            self.programs[name].send(signal.SIGTERM)
            return httpx.Response(200, json={"stopped": True})
        told = {"logs": self._logs(name)} if more == ["logs"] else self._read(name)
        return httpx.Response(200, json=told)

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
        if self.jobs[name].get("done"):
            return {"status": "FAILED" if self.refusing else "SUCCEEDED", "message": "no such cluster"}
        status = self.programs[name].status
        if status is None:
            return {"status": "RUNNING", "driver_exit_code": None}
        if self.jobs[name].get("stopped"):
            return {"status": "STOPPED", "driver_exit_code": None}
        return {"status": "FAILED" if status else "SUCCEEDED", "driver_exit_code": status}

    def _logs(self, name: str) -> str:
        return b"".join(piece for _, piece in self.programs[name].written()).decode()
