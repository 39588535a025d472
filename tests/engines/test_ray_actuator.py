"""The actuator for Ray on a real Ray: the kit, what its autoscaler is requested, and what ends a job from outside."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, Launch, Range, Unavailable
from steward_client.launcher.actuators.ray import RayJob

from tests.clients.launcher.kits import LeavingKit
from tests.engines.ray_engine import RayEngine, cluster, engine
from tests.servers import StewardServer, stop, wait_until

__all__ = ["cluster", "engine"]

Make = Callable[[], Actuator]
SLEEPS = ["/bin/sh", "-c", "echo ready; exec sleep 900"]
REPORT_SECONDS = 90.0
"""Longest wait for the autoscaler to report what it was requested."""


@pytest.mark.usefixtures("cluster")
class TestRay(LeavingKit):
    wanted: ClassVar[dict[str, Range]] = {"cpu": Range(50, 100, 50)}
    separate = False

    def running(self) -> list[str]:
        return SLEEPS  # a change takes seconds, on a busy machine a minute

    @pytest.fixture
    def make(self) -> Make:
        return lambda: registry.create("ray", self.wanted)


def begin(name: str, workers: int) -> RayJob:
    """A job that sleeps, with a core for each worker."""
    actuator = RayJob({"workers": Range(1, 8)})
    actuator.start(Launch(SLEEPS, {"workers": workers}, name=name))
    return actuator


def until_requested(cluster: RayEngine, cores: int) -> None:
    """Wait until the autoscaler has been requested bundles of one core each."""
    expected = [{"CPU": 1.0}] * cores
    wait_until(lambda: cluster.requested() == expected, REPORT_SECONDS, f"a request for {cores} cores")


def test_the_autoscaler_has_what_two_runs_request_together(cluster: RayEngine) -> None:
    before = cluster.jobs().keys()
    with closing(begin("one", 1)) as one:
        until_requested(cluster, 1)
        with closing(begin("other", 2)) as other:
            assert other.current() == {"workers": 1}, "the rest of the first allocation waits"
            assert other.poll() == "Insufficient resources: the cluster has CPU 1 of 2"
            until_requested(cluster, 3)
            assert one.wait(0) is None
        until_requested(cluster, 1)
        assert one.apply({"workers": 4}) == {"workers": 1}, "a request is no grant: the head has one core"
        until_requested(cluster, 4)
        assert one.poll().startswith("Insufficient resources: the cluster has CPU ")
        assert one.wait(0) is None
    until_requested(cluster, 0)
    left = [one for name, one in cluster.jobs().items() if name not in before]
    assert not [one for one in left if one["metadata"]], "neither jobs nor requests are left, but records without a job"


RUN = "import time\nfor n in range(600):\n    print(f'epoch {n + 1}/600', flush=True); time.sleep(2)"
SPEC = {
    "name": "grows",
    "kind": "iterative",
    "resources": [{"name": "workers", "minimum": 1, "maximum": 2, "max_steps": 1, "initial": 1, "price_per_hour": 1.0}],
    "metrics": [{"name": "iteration_seconds", "unit": "s", "target": 800, "goal": "at_most", "scope": "run"}],
    "iterations": 600,
    "weights": {"sla": 20.0, "cost": 0.1, "change": 0.002},
}
"""By the samples one worker is fast enough for the target; the command takes four times as long."""


def test_a_request_is_granted_once_a_node_joins_and_the_next_decision_plans_with_it(
    cluster: RayEngine, steward_module: Callable[..., StewardServer], tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    server = steward_module(tmp_path / "data", "--workers", "1")
    with httpx.Client(base_url=server.url, timeout=60) as http:
        assert http.post("/workloads", json=SPEC).status_code == 201
        reports = {
            workers: [
                {"allocation": {"workers": workers}, "metrics": {"iteration_seconds": 0.5 / workers + 0.001 * (n % 5)}}
                for n in range(30)
            ]
            for workers in (1, 2)
        }
        samples = [{"execution": f"{size}-{n}", "reports": rows} for size, rows in reports.items() for n in range(3)]
        assert http.post("/workloads/grows/samples", json={"samples": samples}).json()["rejections"] == []
        job = http.post("/workloads/grows/models", json={}).json()["id"]
        wait_until(lambda: http.get(f"/jobs/{job}").json()["state"] == "succeeded", 240, "the fit")
        command = [sys.executable, "-m", "steward_client.launcher.main", "--url", server.url, "--workload", "grows"]
        command += ["--actuator", "ray", "--grant-timeout", "1h", "--", "python", "-c", RUN]
        with (tmp_path / "said").open("wb") as said:
            launcher = subprocess.Popen(command, stdout=said, stderr=said, cwd=tmp_path)
        try:

            def latest() -> dict[str, Any]:
                [run] = http.get("/runs", params={"workload": "grows"}).json()["items"] or [{}]
                found: dict[str, Any] = run.get("decision") or {}
                return found

            def waits() -> bool:
                return bool((latest().get("granted") or {}).get("state") == "requested")

            wait_until(waits, 300, f"a request that waits, see {tmp_path}")
            granted = latest()["granted"]
            assert (granted["allocation"], granted["requested"]) == ({"workers": 1}, {"workers": 2})
            assert granted["reason"] == "Insufficient resources: the cluster has CPU 1 of 2"
            cluster.add_node(1)
            [run] = http.get("/runs", params={"workload": "grows"}).json()["items"]

            def rows() -> list[dict[str, Any]]:
                found = http.get(f"/runs/{run['id']}/iterations", params={"limit": 500}).json()
                return list(found["items"])

            def there() -> list[float]:
                return [row["report"]["allocation"]["workers"] for row in rows() if row.get("report")]

            wait_until(lambda: there().count(2.0) > 2, 300, f"a node that joins, see {tmp_path}")
            texts = [row["decision"]["reason"]["text"] for row in rows()]
            print(*texts, sep="\n")
            assert there()[0] == 1
            assert any("not granted: 2 workers" in text for text in texts)
            assert not any("not granted" in text for text in texts[-2:])
            assert "2 workers" in texts[-1]
        finally:
            launcher.send_signal(signal.SIGINT)
            stop(launcher, seconds=60)
            cluster.remove_node()


def test_a_job_that_another_stops_ends_with_that_reason(cluster: RayEngine) -> None:
    with closing(begin("stopped", 1)) as actuator:
        live = {name: one for name, one in cluster.jobs().items() if one["status"] == "RUNNING"}
        [job] = [name for name, one in live.items() if one["metadata"].get("name") == "stopped"]
        with cluster.http as http:
            http.post(f"/api/jobs/{job}/stop").raise_for_status()
        assert actuator.wait(60) == 143
        assert "intentionally stopped" in actuator.reason


def test_without_the_clusters_token_nothing_starts(cluster: RayEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * len(cluster.token))
    with pytest.raises(Unavailable, match=r"refuses: .*RAY_AUTH_TOKEN"):
        RayJob({"workers": Range(1, 8)})


def test_a_head_that_is_away_ends_nothing_and_one_that_has_forgotten_the_job_does(cluster: RayEngine) -> None:
    with closing(begin("orphan", 1)) as actuator:
        cluster.stop()
        assert actuator.wait(0.1) is None
        with pytest.raises(Unavailable, match=r"Ray doesn't answer at "):
            actuator.apply({"workers": 2})
        assert actuator.current() == {"workers": 1}
        cluster.start()
        assert actuator.wait(60) == 137
        assert "its head was restarted" in actuator.reason
