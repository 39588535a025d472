"""A cluster team's way over HTTP: register, sample, fit, train, decide through a kill of the service, evaluate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.kinds.cluster.example import EXAMPLE, SPEC
from tests.journeys.test_outside_kind import Caller
from tests.servers import StewardServer

Start = Callable[..., StewardServer]
SMALL = {**SPEC, "interval_seconds": 300, "episode_intervals": 8}
GPUS = 8


class Playing:
    """A launcher that does what it is told: jobs of ten iterations, one for each GPU and report."""

    def __init__(self, run: str) -> None:
        self.run, self.now, self.number = run, 0.0, 0
        self.gpus: dict[str, int] = {}
        self.done: dict[str, float] = {}
        self.reports = list[tuple[dict[str, Any], dict[str, Any]]]()

    def go(self, call: Caller, count: int) -> None:
        """Report ``count`` times: what came, went on and ended; and keep what is answered."""
        for _ in range(count):
            report = self._next()
            decision = call("PUT", f"/runs/{self.run}/iterations/{len(self.reports)}", 201, json=report)
            for change in decision["changes"]:
                assert change["text"]
                assert change["before"] == self.gpus[change["job"]]
                assert change["gpus"] == sum(change["nodes"].values())
                self.gpus[change["job"]] = change["gpus"]
            assert sum(self.gpus.values()) + decision["free"] == GPUS
            self.reports.append((report, decision))

    def _next(self) -> dict[str, Any]:
        self.now += 60.0
        self.done = {job: done + self.gpus[job] for job, done in self.done.items()}
        ended = [job for job, done in self.done.items() if done >= 10]
        for job in ended:
            del self.done[job], self.gpus[job]
        on = [{"job": job, "iteration": done, "loss": 2 / (1 + done)} for job, done in self.done.items() if done]
        name = f"j{self.number}"
        self.number += 1
        came = {"job": name, "application": ("bert", "resnet50")[self.number % 2], "gpus": 1 + self.number % 4}
        queue = "urgent" if self.number % 3 == 0 else "batch"
        self.gpus[name], self.done[name] = 0, 0.0
        submitted = [{**came, "queue": queue, "iterations": 10, "maximum": 8}]
        return {"at": self.now, "submitted": submitted, "progressed": on, "ended": [{"job": job} for job in ended]}


@pytest.mark.slow
def test_a_cluster_is_learned_and_served_through_a_kill(steward_factory: Start, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "data")
    with httpx.Client(base_url=server.url, timeout=120) as client:
        call = Caller(client)
        call("POST", "/workloads", 201, json=SMALL)
        refused = call("POST", "/workloads", 422, json={**SMALL, "name": "x", "minimum": 9})
        assert refused["errors"][0]["pointer"] == "/minimum"
        assert "1 to 8, the GPUs of all nodes" in refused["errors"][0]["message"]
        playing = Playing(call("POST", "/runs", 201, json={"workload": "gpu-cluster"})["id"])
        playing.go(call, 6)
        assert {decision["rule"] for _, decision in playing.reports} == {"soonest"}
        for media_type, body in EXAMPLE.samples.items():
            path = f"/workloads/gpu-cluster/samples?execution={media_type.rpartition('/')[2]}"
            path = "/workloads/gpu-cluster/samples" if media_type.endswith("json") and b'"samples"' in body else path
            call("POST", path, 201, content=body, headers={"Content-Type": media_type})
        model = call.job("/workloads/gpu-cluster/models", {})["model"]
        answer = call("GET", f"/workloads/gpu-cluster/models/{model}")["report"]
        assert answer["metrics"]["seconds"]["mape"] < answer["metrics"]["seconds"]["naive_mape"]
        agent = call.job("/workloads/gpu-cluster/agents", {"algorithm": "tabular_q", "budget": 1_000})["agent"]
        call("POST", f"/workloads/gpu-cluster/agents/{agent}/promote")
        patched = call("PATCH", "/workloads/gpu-cluster", json={"queues": {"batch": {"weight": 0.5}}})
        assert patched["spec_version"] == 2
    server.kill()
    server = steward_factory(tmp_path / "data")
    with httpx.Client(base_url=server.url, timeout=120) as client:
        call = Caller(client)
        last, path = playing.reports[-1], f"/runs/{playing.run}/iterations/{len(playing.reports) - 1}"
        assert call("PUT", path, 200, json=last[0]) == last[1]
        call("PUT", path, 409, json={**last[0], "ended": []} if last[0]["ended"] else {**last[0], "at": 0})
        playing.go(call, 10)
        assert playing.reports[-1][1]["source"] == "agent"
        timed = [one for _, decision in playing.reports for one in decision["changes"] if one["seconds_left"]]
        assert timed
        assert all("finish in" in one["text"] for one in timed)
        call("PATCH", f"/runs/{playing.run}", json={"state": "finished"})
        selection = {one["execution"]: one for one in call("GET", "/workloads/gpu-cluster/samples")["items"]}
        assert selection[playing.run]["arrivals"]["count"] == playing.number
        wanted = {"workload": "gpu-cluster", "agents": [agent], "level": "L1", "episodes": 8}
        evaluation = call.job("/evaluations", wanted)["evaluation"]
        report = call("GET", f"/evaluations/{evaluation}")["report"]
    assert [one["level"] for one in report["levels"] if one["available"]] == ["train", "L0", "L1"]
