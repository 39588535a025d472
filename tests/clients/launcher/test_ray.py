"""The actuator for Ray against a double of its API of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import httpx
import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.contract import Actuator, ActuatorError, Range, Unavailable
from steward_client.launcher.actuators.kit import DeferringKit
from steward_client.launcher.actuators.ray import RayJob, bundles
from steward_client.launcher.actuators.requests import Requests

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
            assert [job["metadata"].get("name", "a request") for job in head.jobs.values()] == ["run-1", "a request"]
            actuator.apply({"gpus": 2})
            actuator.apply({"workers": 4})
        assert head.requests == [[{"GPU": 1}], [{"GPU": 2}], [{"GPU": 0.5}] * 4, []]
        assert [job for job in head.jobs.values() if job["metadata"]] == []
        with self.started(make, self.running(), name="run-2"):
            assert len(head.jobs) == 2, "what Ray wrote down anew is deleted"

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

    def test_two_runs_have_what_both_requested(self, make: Make, head: RayDouble) -> None:
        with self.started(make, self.running()) as one, self.started(make, self.running()) as other:
            one.apply({"workers": 2})
            other.apply({"workers": 3})
            assert head.requests[-1] == [{"GPU": 1 / 3}] * 3 + [{"GPU": 0.5}] * 2
            other.stop()
            one.apply({"workers": 1})
            assert head.requests[-1] == [{"GPU": 1}], "what ended holds nothing back"
        assert head.requests[-1] == []

    def test_what_waits_is_not_granted_by_a_head_that_is_away(self, make: Make, head: RayDouble) -> None:
        with self.started(make, self.running()) as actuator:
            self.fill(actuator)
            now = [0.0]
            requests = Requests(actuator, clock=lambda: now[0])
            assert requests.set(self.last).state == "requested"
            head.away, now[0] = True, 5.0
            assert requests.poll() is None
            assert requests.awaits
            head.away, now[0] = False, 50.0
            self.free(actuator)
            code = requests.poll()
            assert code is not None
            assert code.state == "granted"
            assert self.same(actuator.current(), self.last)
            request = requests.take(self.first)  # by a report of an iteration before it was granted
            assert request is not None
            assert (request.state, request.allocation) == ("requested", self.last)
            assert requests.take(self.first) is None, "it is reported once"

    def test_a_first_allocation_waits_for_what_the_cluster_lacks_of_it(self, make: Make, head: RayDouble) -> None:
        head.totals = {"CPU": 4.0, "GPU": 4.0}
        with self.started(make, self.running()) as there:
            assert Requests(there).begin(self.first).state == "granted"
            assert self.same(there.current(), self.first)
        for first, totals, has in (
            ({"workers": 1, "gpus": 2}, {"CPU": 4.0}, {"workers": 0, "gpus": 0}),
            ({"workers": 4, "gpus": 2}, {"GPU": 1.0}, {"workers": 2, "gpus": 1}),
        ):
            head.totals = totals
            with self.started(make, self.running(), allocation=first) as lacking:
                request = Requests(lacking).begin(first)
                assert request.reason == f"Insufficient resources: the cluster has GPU {has['gpus']} of 2"
                assert self.same(lacking.current(), has)
                head.totals = {"GPU": 4.0}
                assert isinstance(lacking, RayJob)
                assert lacking.poll() == ""
                assert self.same(lacking.current(), first)

    def test_a_first_allocation_comes_part_by_part_and_what_has_come_stays(self, make: Make, head: RayDouble) -> None:
        head.totals = {"CPU": 4.0, "GPU": 1.0}
        with self.started(make, self.running(), allocation=self.last) as actuator:
            assert isinstance(actuator, RayJob)
            assert self.same(actuator.current(), {"workers": 1, "gpus": 1})
            head.totals = {"CPU": 4.0, "GPU": 3.0}
            assert actuator.poll()
            assert self.same(actuator.current(), {"workers": 3, "gpus": 3})
            head.totals = {"CPU": 4.0, "GPU": 2.0}
            actuator.withdraw()
            assert head.requests[-1] == [{"GPU": 1.0}] * 2
        head.totals = {"CPU": 4.0}
        with self.started(make, self.running(), allocation=self.last) as actuator:
            assert isinstance(actuator, RayJob)
            actuator.withdraw()
            assert head.requests[-1] == [{"GPU": 1.0}], "the least that was wanted stays requested"

    def test_a_head_that_does_not_say_what_is_there_starts_the_command(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        totals = RayJob._totals

        def away(_: RayJob) -> None:
            raise Unavailable("Ray doesn't answer")

        monkeypatch.setattr(RayJob, "_totals", away)
        with self.started(make, self.running()) as actuator:
            requests = Requests(actuator, clock=iter([0.0, 5.0, 5.0, 5.0, 5.0, 5.0]).__next__)
            assert requests.begin(self.first).reason == "Ray doesn't answer"
            monkeypatch.setattr(RayJob, "_totals", totals)
            event = requests.poll()
            assert event is not None
            assert event.state == "granted"
            assert self.same(actuator.current(), self.first)

    def test_without_workers_there_is_of_each_resource_what_the_cluster_has(self, head: RayDouble) -> None:
        head.totals = {"CPU": 3.0, "memory": 2.0**30}
        wanted = {"cpu": Range(100, 800), "memory": Range(512, 4096)}
        first = {"cpu": 400.0, "memory": 512.0}
        with self.started(lambda: registry.create("ray", wanted), self.running(), allocation=first) as one:
            assert one.current() == {"cpu": 300, "memory": 512}
            assert isinstance(one, RayJob)
            one.withdraw()
            assert head.requests[-1] == [{"CPU": 1.0}] * 3 + [{"memory": 2.0**29}]

    def test_a_token_goes_with_each_call(self, make: Make, head: RayDouble, monkeypatch: pytest.MonkeyPatch) -> None:
        head.token = "secret"
        file = head.folder / "token"
        monkeypatch.setenv("HOME", str(head.folder))
        with pytest.raises(Unavailable, match=r"refuses: Unauthorized.*set RAY_AUTH_TOKEN "):
            make()
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
        with pytest.raises(Unavailable, match=r"RAY_AUTH_TOKEN_PATH=.*: No such file"):
            make()
        file.write_text("secret\n")
        make().close()
        monkeypatch.setenv("RAY_AUTH_TOKEN", "another")
        with pytest.raises(Unavailable, match="refuses: Forbidden"):
            make()
        monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
        with self.started(make, self.ending(0)) as actuator:
            assert actuator.wait(60) == 0

    def test_what_ended_a_job_from_outside_is_said(self, make: Make, head: RayDouble) -> None:
        for end, result in ((head.restart, "doesn't know the job any more"), (partial(cancel, head), "intentionally")):
            with self.started(make, self.running()) as actuator:
                assert isinstance(actuator, RayJob)
                end()
                assert actuator.wait(60) is not None
                assert result in actuator.reason
        with self.started(make, self.running()) as actuator:
            assert isinstance(actuator, RayJob)
            actuator.stop()
            assert actuator.reason == "", "the launcher ended it"


def cancel(head: RayDouble) -> None:
    """As ``ray job stop`` does it."""
    with httpx.Client(base_url="http://ray") as http:
        for name, job in list(head.jobs.items()):
            if "name" in (job["metadata"] or {}):
                http.post(f"/api/jobs/{name}/stop").raise_for_status()


def test_bundles_are_alike_for_workers_and_small_without() -> None:
    assert bundles({}) == []
    assert bundles({"workers": 2}) == [{"CPU": 1.0}] * 2
    assert bundles({"workers": 2, "cpu": 300}) == [{"CPU": 1.5}] * 2
    assert bundles({"cpu": 250, "gpus": 2}) == [{"CPU": 1.0}, {"CPU": 1.0}, {"CPU": 0.5}, {"GPU": 1.0}, {"GPU": 1.0}]
    with pytest.raises(ActuatorError, match="up to 10,000 are accepted"):
        bundles({"workers": 10_001})
