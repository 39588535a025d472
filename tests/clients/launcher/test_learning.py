"""What becomes of a command that goes on while it is learned from, and of what is still learned after its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from steward_client.launcher.actuators import registry
from steward_client.launcher.actuators.requests import Request
from steward_client.launcher.governed import targets
from steward_client.launcher.interrupts import Interrupted
from steward_client.launcher.iterations.mark import SECONDS, Iteration
from steward_client.launcher.learn import learning as module
from steward_client.launcher.learn.learning import CommandEnded, Learning
from steward_client.launcher.learn.profile import Profile
from steward_client.launcher.service import JobFailed
from steward_client.launcher.wishes import Misuse, Resource, Wishes

FAILED = JobFailed("fit: too few samples")


class Watching:
    """A command of eight iterations, the first of which nobody saw begin, and all that is done with it."""

    def __init__(self, status: int = 0) -> None:
        self.lines, self.set, self.indices, self.allocations = (
            list[str](),
            list[float](),
            list[int](),
            list[tuple[int, float]](),
        )
        self.clock, self.status, self._at_end = SimpleNamespace(count=0, total=8), None, status
        self.actuator = SimpleNamespace(close=lambda: None, current=lambda: {"cpu": 10.0})
        self._stream, self.failure = self._each(), "exit status 3"
        self.requests = SimpleNamespace(awaits=False, last=None, granted_at=0.0)
        self.waits: dict[float, tuple[int, str]] = {}  # by cpu: after which iteration it is there, or what comes of it

    status: int | None
    began, ended = 0.0, 8.0

    def start(self, allocation: dict[str, float], _: object) -> None:
        """It is started."""
        self._request(allocation)

    def apply(self, allocation: dict[str, float]) -> bool:
        """It is set."""
        self.set.append(allocation["cpu"])
        return self._request(allocation)

    def _request(self, allocation: dict[str, float]) -> bool:
        self.requests.awaits = waits = allocation["cpu"] in self.waits
        state: Any = "requested" if waits else "granted"
        self.requests.last = Request(allocation, state, datetime.now(UTC), "it waits" * waits)
        return not waits

    def _look(self) -> None:
        at, state = self.waits.get(self.requests.last.allocation["cpu"], (8, ""))
        if self.requests.awaits and self.clock.count > at:
            self.requests.awaits, self.requests.last = False, replace(self.requests.last, state=state)

    def tell(self, iteration: int, allocation: dict[str, float], _: str) -> None:
        """What its file says."""
        self.allocations.append((iteration, allocation["cpu"]))

    def iterations(self) -> Iterator[Iteration]:
        """The same for whoever asks."""
        return self._stream

    def _each(self) -> Iterator[Iteration]:
        for number in range(8):
            self.clock.count += 1
            self._look()
            yield Iteration(number, 2.0 if number else None, 2.0 * number, {}, {})
        self.status = self._at_end

    def profile(self, wanted: int) -> Profile:
        """Measured until so many iterations are."""

        def keep(segment: Any) -> bool:
            self.indices += [row.index for row in segment.rows]
            return len(self.indices) < wanted

        return Profile(self, iter([{"cpu": 100.0}, {"cpu": 50.0}, {"cpu": 25.0}]), keep)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("waits", "measured"),
    [
        ({50.0: (4, "granted")}, {100.0: [1, 2], 50.0: [5, 6]}),  # it comes within iteration 4
        ({50.0: (4, "timed_out")}, {100.0: [1, 2, 5, 6]}),
        ({100.0: (2, "granted")}, {100.0: [3, 4], 50.0: [5, 6]}),
        ({100.0: (2, "refused")}, {50.0: [3, 4], 25.0: [5, 6]}),
        ({100.0: (2, "timed_out")}, {50.0: [3, 4], 25.0: [5, 6]}),
    ],
)
def test_what_waits_is_measured_once_it_is_there(
    waits: dict[float, tuple[int, str]], measured: dict[float, list[int]]
) -> None:
    watching = Watching()
    watching.waits = waits
    samples: dict[float, list[int]] = {}

    def keep(segment: Any) -> bool:
        samples.setdefault(segment.allocation["cpu"], []).extend(row.index for row in segment.rows)
        return sum(map(len, samples.values())) < 4

    allocations = iter([{"cpu": 100.0}, {"cpu": 50.0}, {"cpu": 25.0}, {"cpu": 75.0}])
    assert Profile(watching, allocations, keep, 2).measure()  # type: ignore[arg-type]
    assert samples == measured


def test_iterations_before_a_grant_that_are_read_after_it_are_not_measured() -> None:
    watching = Watching()
    watching.waits, watching.requests.granted_at = {100.0: (2, "granted")}, 7.0
    profile = watching.profile(3)
    assert profile.measure()
    assert watching.indices == [5, 6, 7], "iteration 4 began at 6.0"
    assert [row.allocation["cpu"] for row in profile.rows] == [10.0] * 4 + [100.0] * 3


def test_what_was_not_there_in_time_is_not_awaited_again() -> None:
    watching = Watching()
    watching.waits = {50.0: (3, "timed_out")}
    samples = list[float]()

    def keep(segment: Any) -> bool:
        samples.append(segment.allocation["cpu"])
        return True

    allocations = iter([{"cpu": 100.0}, *[{"cpu": 50.0}] * 9, {"cpu": 25.0}])
    Profile(watching, allocations, keep, 1).measure()  # type: ignore[arg-type]
    assert watching.set.count(50.0) == 1
    assert samples == [100.0, 100.0, 100.0, 25.0, 25.0]


@pytest.mark.parametrize("waits", [True, False])
def test_a_command_of_which_nothing_wanted_comes_is_no_command_without_iterations(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is started to learn its number of iterations need not wait for all of it."""
    watching = Watching()
    watching.waits = {100.0: (8, "requested")}
    result, kept = learning(watching, lambda: 1, monkeypatch), list[float]()
    monkeypatch.setattr(module, "Watched", lambda *_: watching)
    monkeypatch.setattr(registry, "introduce", lambda *_: None)
    monkeypatch.setattr(Wishes, "check_place", lambda *_: None)
    result._actuator = lambda: watching.actuator

    def keep(segment: Any, _: Any) -> bool:
        kept.append(segment.allocation["cpu"])
        return len(kept) < 2

    once = partial(result._once, repeat({"cpu": 100.0}), keep, 1, waits=waits)
    if waits:
        with pytest.raises(CommandEnded, match=r"what was to be measured was never there \(it waits\)"):
            once()
        assert kept == []
    else:
        once()
        assert (len(kept), [row.allocation["cpu"] for row in result._going.rows]) == (2, [10.0, 10.0])


def learning(watching: Watching, fit: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of a workload of eight iterations; fitting and training are done as soon as they are begun."""

    def at_once(work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work())
        except JobFailed as error:
            future.set_exception(error)
        return future

    monkeypatch.setattr(module, "beside", at_once)
    learning: Any = Learning(Wishes(("ls",), "ls"), None, Path(), watching.lines.append)  # type: ignore[arg-type]
    learning.spec, learning._resources = {"iterations": 8}, (Resource("cpu", 25, 100, 25, "%"),)
    learning._fit_model, learning._train = fit, lambda model: watching.lines.append(f"trained {model}")
    return learning


def fails() -> int:
    raise FAILED


@pytest.mark.parametrize(("fit", "text"), [(lambda: 1, "trained 1"), (fails, f"not learned: {FAILED}; the command")])
def test_it_goes_on_whether_a_model_comes_of_it_or_not(
    fit: Callable[[], int], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching()
    profile = watching.profile(3)
    assert profile.measure()
    assert learning(watching, fit, monkeypatch)._learned_beside(profile) is profile
    assert watching.lines[-1].startswith(text)
    assert (watching.set, watching.indices, next(watching.iterations()).index) == ([100.0], [1, 2, 3], 5)
    assert watching.allocations == [(1, 100.0), (2, 100.0), (3, 100.0)]
    assert [row.index for row in profile.rows] == [1, 2, 3, 4]  # the fit may have slowed the last: it is no sample


@pytest.mark.parametrize("status", [0, 3])
def test_one_of_which_nothing_is_left_is_started_again_or_has_failed(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching(status)
    profile = watching.profile(6)
    assert profile.measure()
    result = learning(watching, lambda: 1, monkeypatch)
    if status:
        with pytest.raises(CommandEnded):
            result._learned_beside(profile)
    else:
        assert result._learned_beside(profile) is None
        assert "the command is started again, once, under decisions" in watching.lines[-1]
    assert watching.indices == list(range(1, 7))


@pytest.mark.parametrize(
    ("error", "text"), [(FAILED, f"no agent: {FAILED}"), (Interrupted(2), "training interrupted; the next --learn")]
)
def test_what_becomes_of_the_training_does_not_touch_the_commands_status(
    error: BaseException, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching()
    result = learning(watching, lambda: 1, monkeypatch)
    result._training = Future[None]()
    result.rest(own=False, status=0)
    result.rest(own=True, status=130)  # whoever has ended the command waits for nothing
    result._training.set_exception(error)
    result.rest(own=True, status=0)
    assert watching.lines[:2] == ["the training continues in the service, for the next run", module.BEGUN]
    assert watching.lines[-1].startswith(text)


JOBS = [
    {"id": "1", "type": "fit", "state": "queued", "not_before": None},
    {"id": "2", "type": "train", "state": "running", "not_before": "2030-01-01T00:00:00Z"},  # goes on for ever
    {"id": "3", "type": "train", "state": "running", "not_before": None},
]


@pytest.mark.parametrize(("there", "followed"), [(JOBS, ["3"]), (JOBS[:2], [])])
def test_a_training_that_was_left_is_gone_on_with(
    there: list[dict[str, Any]], followed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(method: str, path: str) -> dict[str, Any]:
        state = path.partition("state=")[2]
        return {"items": [job for job in there if job["state"] == state]}

    result, begun = learning(Watching(), lambda: 1, monkeypatch), list[str]()
    result._service = result._jobs._service = SimpleNamespace(call=call)
    result._jobs.wait_for_training = lambda job: begun.append(job["id"])
    assert (result._has_agent(), begun) == (bool(followed), followed)


def test_a_target_of_which_there_was_none_is_given_to_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics: list[dict[str, Any]] = [{"name": SECONDS, "scope": "run"}, {"name": "loss", "target": 1.0}]
    spec, called = {"name": "ls", "metrics": metrics}, list[Any]()
    wishes = Wishes(("ls",), "ls", deadline=60.0, targets=(("loss", 2.0),))
    with pytest.raises(Misuse, match=r"has no target for iteration_seconds.*--learn --name ls gives it"):
        targets(wishes, spec)

    def call(*of: Any) -> dict[str, Any]:
        called.append(of)
        return {"spec": {**spec, "metrics": [{**metrics[0], "target": 60.0}, metrics[1]]}}

    watching = Watching()
    result = learning(watching, lambda: 1, monkeypatch)
    result._wishes, result._service = wishes, SimpleNamespace(call=call)
    result._give_targets(metrics)
    result._give_targets(result.spec["metrics"])
    assert called == [("PATCH", "/workloads/ls", {"targets": {SECONDS: 60.0}})]
    assert targets(wishes, result.spec) == {SECONDS: 60.0, "loss": 2.0}
    assert any("from now on iteration_seconds 60" in line for line in watching.lines)
