"""The actuator for Ray against a double of its API of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, ActuatorError, Range, Unavailable
from steward_client.launcher.actuators.kit import DeferringKit
from steward_client.launcher.actuators.ray import bundles

from tests.clients.launcher.kits import LeavingKit
from tests.clients.launcher.ray_double import RayDouble

Make = Callable[[], Actuator]


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayDouble]:
    double = RayDouble(tmp_path)
    client = httpx.Client
    through = httpx.MockTransport(double)
    monkeypatch.setattr(httpx, "Client", lambda **named: client(**named, transport=through))
    yield double
    for program in double.programs.values():
        program.end()


class TestRay(LeavingKit, DeferringKit):
    wanted: ClassVar[dict[str, Range]] = {"workers": Range(1, 4), "gpus": Range(1, 4)}
    separate = False

    @pytest.fixture
    def make(self, head: RayDouble) -> Make:
        self.head = head
        return lambda: registry.create("ray", self.wanted)

    def fill(self, actuator: Actuator) -> None:
        self.head.totals = {"CPU": 4.0, "GPU": 2.0}

    def free(self, actuator: Actuator) -> None:
        self.head.totals = {"CPU": 4.0, "GPU": 4.0}

    def test_the_autoscaler_is_asked_and_at_the_end_for_nothing(self, make: Make, head: RayDouble) -> None:
        with self.started(make, self.running(), name="run-1") as actuator:
            assert [job["metadata"]["name"] for job in head.jobs.values()] == ["run-1"]
            actuator.apply({"gpus": 2})
            actuator.apply({"workers": 4})
        assert head.requests == [[{"GPU": 1}], [{"GPU": 2}], [{"GPU": 0.5}] * 4, []]
        assert head.jobs == {}

    def test_a_head_that_is_away_ends_nothing(self, make: Make, head: RayDouble) -> None:
        with self.started(make, self.running()) as actuator:
            head.away = True
            assert actuator.wait(0) is None
            with pytest.raises(Unavailable, match=r"Ray doesn't answer at .*--option address="):
                actuator.apply(self.last)
            head.away, head.refusing = False, True
            with pytest.raises(ActuatorError, match="did not take the request: no such cluster"):
                actuator.apply(self.last)
            head.refusing = False
            assert actuator.current() == self.first


def test_bundles_are_alike_for_workers_and_small_without() -> None:
    assert bundles({}) == []
    assert bundles({"workers": 2}) == [{"CPU": 1.0}] * 2
    assert bundles({"workers": 2, "cpu": 300}) == [{"CPU": 1.5}] * 2
    assert bundles({"cpu": 250, "gpus": 2}) == [{"CPU": 1.0}, {"CPU": 1.0}, {"CPU": 0.5}, {"GPU": 1.0}, {"GPU": 1.0}]
    with pytest.raises(ActuatorError, match="up to 10,000 are accepted"):
        bundles({"workers": 10_001})
