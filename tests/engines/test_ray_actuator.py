"""The actuator for Ray on a real Ray: the kit, what its autoscaler is requested, and what ends a job from outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import ClassVar

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, Launch, Range, Unavailable
from steward_client.launcher.actuators.ray import RayJob

from tests.clients.launcher.kits import LeavingKit
from tests.engines.ray_engine import RayEngine, cluster, engine
from tests.servers import wait_until

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
        with closing(begin("other", 2)):
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
