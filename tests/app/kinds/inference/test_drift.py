"""Streams of kind ``inference``: what reports say of loads and service times, held against the domain model."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import msgspec
import numpy as np
import pytest

from app.drift.detector import NOTHING, Drift, Report, observe_residuals
from app.kinds.contract.engine import Pending, Residuals, Snapshot, count_residual
from app.kinds.inference.decision import InferenceStart
from app.kinds.inference.kind import KIND
from app.kinds.inference.model import ServiceModel
from tests.answers import all_answered
from tests.app.kinds.inference import workloads
from tests.app.kinds.inference.runs import NOW, compiled, model

RATES = (8.0, 3.0)


def on() -> Any:
    """A workload whose model knows its loads; batches take what it says, but for 10 %."""
    spec = workloads.spec(control_seconds=5.0, servers=[{"name": "cpu", "maximum": 4, "minimum": 4, "cores": 4}])
    layout = KIND.layout(spec)
    known = model(layout)
    belief = ServiceModel(
        known.log_seconds, np.full(2, 0.1), np.array(RATES)[:, None], np.zeros(2), known.measured, known.forecast
    )
    return KIND.engine.compile(Snapshot("w", spec.name, 1, spec, layout, belief, 1, None, None, 1))


class Farm:
    """Servers that do as they are told, and users; from a moment on something is different."""

    def __init__(self, seed: int, *, load: float = 1.0, slower: float = 1.0, reported: bool = True) -> None:
        self.on, self.rng, self.with_batches = on(), np.random.default_rng(seed), reported
        self.load, self.slower, self.now, self.iteration = load, slower, 0.0, 0
        self.state = KIND.engine.begin(self.on, "r", InferenceStart(workload="w"), NOW).state
        self.ends: list[tuple[float, dict[str, Any]]] = []
        self.memory: Drift = NOTHING

    def step(self, seconds: float = 0.5) -> Residuals:
        """Let time pass, report, and start what is to be started."""
        before, self.now = self.now, self.now + seconds
        arrived: list[dict[str, Any]] = [
            {"user": user, "at": float(at)}
            for user, rate in zip(("web", "mobile"), RATES, strict=True)
            for at in np.sort(self.rng.uniform(before, self.now, self.rng.poisson(rate * self.load * seconds)))
        ]
        arrived.sort(key=lambda one: one["at"])
        over = sorted((one for one in self.ends if one[0] <= self.now), key=lambda one: one[0])
        self.ends = [one for one in self.ends if one[0] > self.now]
        report = {"at": self.now, "arrived": arrived, "finished": [finished for _, finished in over]}
        read = KIND.engine.read(self.on, self.state, self.iteration, KIND.engine.decode(json.dumps(report).encode()))
        pending = Pending("r", self.iteration, self.state, read, {}, None)
        [answered] = all_answered(KIND.engine.answer(self.on, [pending], NOW))
        for start in json.loads(answered.decision)["start"]:
            took = float(start["expected_seconds"] * self.slower * self.rng.lognormal(0, 0.1))
            more = {"variant": start["variant"], "batch": start["batch"], "seconds": took} if self.with_batches else {}
            self.ends.append((self.now + took, {"server": start["server"], "at": self.now + took, **more}))
        self.state = KIND.engine.restore(msgspec.json.decode(KIND.engine.serialise(answered.state)))
        assert self.state == answered.state
        assert answered.residuals is not None
        self.memory = observe_residuals(self.memory, answered.residuals, Report(self.iteration, 1, NOW))
        self.iteration += 1
        return answered.residuals


@pytest.mark.parametrize("reported", [True, False])
def test_nothing_is_noticed_while_the_model_holds(reported: bool) -> None:
    farm = Farm(1, reported=reported)
    results = [farm.step() for _ in range(300)]
    assert farm.memory.notices == ()
    assert {one.stream for residuals in results for one in residuals.by_stream} >= {"arrivals.web", "arrivals.mobile"}
    assert {residuals.streams for residuals in results} == {4}
    told_of = [one for residuals in results for one in residuals.by_stream if one.stream == "arrivals.web"]
    assert len(told_of) == 30  # once a control interval
    assert sum(one.measured for one in told_of) / sum(one.expected for one in told_of) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("reported", [True, False])
def test_slower_servers_are_noticed_in_the_streams_of_their_variants(reported: bool) -> None:
    farm = Farm(2, reported=reported)
    for _ in range(40):
        farm.step()
    farm.slower = 1.6
    for _ in range(80):
        farm.step()
    assert {notice.stream.partition(".")[0] for notice in farm.memory.notices} == {"seconds"}
    first = farm.memory.notices[0]
    assert first.direction == "up"
    assert first.factor == pytest.approx(1.6, rel=0.15)
    assert 35 <= first.since <= first.iteration <= 80


def test_more_requests_are_noticed_in_the_streams_of_their_users() -> None:
    farm = Farm(3)
    for _ in range(40):
        farm.step()
    farm.load = 1.6
    for _ in range(250):
        farm.step()
    noticed = {notice.stream: notice for notice in farm.memory.notices}
    assert "arrivals.web" in noticed
    assert not any(stream.startswith("seconds") for stream in noticed)
    assert noticed["arrivals.web"].factor == pytest.approx(1.6, rel=0.2)


def test_without_a_domain_model_nothing_is_watched() -> None:
    blind = compiled(workloads.spec(), known=False)
    state = KIND.engine.begin(blind, "r", InferenceStart(workload="w"), NOW).state
    read = KIND.engine.read(blind, state, 0, KIND.engine.decode(b'{"at": 20}'))
    [answered] = all_answered(KIND.engine.answer(blind, [Pending("r", 0, state, read, {}, None)], NOW))
    assert answered.residuals is None


def test_a_load_that_wanders_is_counted_over_longer_times_and_tolerated_more() -> None:
    farm = Farm(5)
    known = farm.on.snapshot.model
    numbers = np.tile([0.9, 10.0, 0.01, -1.6, 1.6, 1.0], (2, 2, 1))
    wandering = dataclasses.replace(known, variation=np.array([0.3, 0.01]), forecast=numbers)
    farm.on = KIND.engine.compile(dataclasses.replace(farm.on.snapshot, model=wandering))
    results = [one for _ in range(320) for one in farm.step().by_stream if one.stream.startswith("arrivals")]
    assert [one.stream for one in results] == ["arrivals.web", "arrivals.mobile"]  # once in 30 intervals of 5 s
    assert results[0].expected == pytest.approx(RATES[0] * 150, rel=0.01)
    alike, calm = (count_residual("x", 1.3 * 1200, 1200, 0.01, tolerated).evidence[0] for tolerated in (1.44, 1.1))
    assert alike < 0 < calm
