"""Jobs of a live cluster that have little left to gain give GPUs back, with a word on it, and the others get them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.testing import assert_equal

from app.kinds.cluster import experience, records
from app.kinds.cluster.decide import Compiled
from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.example import SAMPLES
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import POINTS
from app.kinds.cluster.lookahead import UNLIMITED
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.report import Submitted
from app.kinds.cluster.samples import ClusterSamples
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.inputs import Sample
from app.kinds.engine import RunMemory
from app.kinds.records import JSON
from tests.answers import all_answered
from workers.inputs import Workload
from workers.kinds.cluster.fit import Curve, classes, fit, fit_class

FLAT = [1 + 2.0 ** -(2 * n) for n in range(12)]
ITERATIONS = 40
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def spec(**convergence: float) -> ClusterSpec:
    node = {"name": "n", "count": 2, "gpus": 4}
    values: dict[str, Any] = {"name": "x", "kind": "cluster", "nodes": [node]}
    return ClusterSpec.model_validate(values | ({"convergence": convergence} if convergence else {}))


@cache
def documented() -> ClusterModel:
    """Of the documented samples; convergence has no part in it."""
    codec = ClusterSamples(Layout(spec()))
    [read] = codec.formats[JSON].reader(codec, None).read(iter([SAMPLES[JSON]]))
    assert isinstance(read, Sample)
    return ClusterModel.from_bytes(fit(Workload(spec(), samples=[("e", codec.unpack(read.data))]), 0).model)


def model(ended: int) -> ClusterModel:
    """Jobs of bert ended as ``FLAT`` does, and two of resnet50."""
    known, losses = documented(), np.array(FLAT + [1.0] * (ITERATIONS - len(FLAT)))
    iterations = np.arange(1.0, ITERATIONS + 1)
    each = [fit_class([Curve(iterations, -losses - 0.001 * job) for job in range(count)], 0) for count in (ended, 2)]
    names = [known.positions[name] for name in ("bert", "resnet50")]
    return replace(known, curves=classes(names, [False, False], each))


def compiled(of: ClusterSpec, ended: int = 12) -> Compiled:
    pattern: Compiled = ENGINE.compile(Snapshot("w", "x", 1, of, Layout(of), model(ended), 1, None, None, 1))
    return pattern


def report_to(on: Compiled, state: RunMemory, number: int, report: dict[str, Any]) -> tuple[RunMemory, dict[str, Any]]:
    """The state after a report, as it comes back from where it is stored, and the decision."""
    read = ENGINE.read(on, state, number, ENGINE.decode(json.dumps(report).encode()))
    [answered] = all_answered(ENGINE.answer(on, [Pending("r", number, state, read, {}, None)], NOW))
    stored = msgspec.json.decode(bytes(ENGINE.serialise(answered.state)))
    return ENGINE.restore(stored), msgspec.json.decode(answered.decision)


def played(on: Compiled, losses: list[float], application: str = "bert") -> list[dict[str, Any]]:
    """The decisions on one job that shows losses, minute by minute, beside two long ones that could use more GPUs."""
    state: RunMemory = ENGINE.begin(on, "r", None, NOW).state
    first = {"application": application, "batch": 128, "gpus": 4, "maximum": 8}
    jobs = [{"job": "a", "iterations": ITERATIONS, **first}] + [
        {"job": job, "iterations": 2_000, **first} for job in "bc"
    ]
    state, _ = report_to(on, state, 0, {"at": 0, "submitted": jobs})
    decisions = []
    for number, loss in enumerate(losses, start=1):
        slow = [{"job": job, "iteration": number / 10} for job in "bc"]
        progressed = [{"job": "a", "iteration": number, "loss": loss}, *slow]
        state, decision = report_to(on, state, number, {"at": 60.0 * number, "progressed": progressed})
        decisions.append(decision)
    return decisions


def changes(decisions: list[dict[str, Any]], job: str) -> list[dict[str, Any]]:
    return [one for decision in decisions for one in decision["changes"] if one["job"] == job]


def test_what_has_converged_is_halved_with_a_word_and_another_grows() -> None:
    on = compiled(spec(tolerance=0.05, doubt=0.0, window_seconds=120.0))
    decisions = played(on, FLAT)
    shrunk = [one for one in changes(decisions, "a") if one["code"] == "shrunk"]
    assert shrunk
    assert "little remaining gain" in shrunk[0]["text"]
    assert changes(decisions, "a")[-1]["gpus"] == 1
    assert [one for job in "bc" for one in changes(decisions, job) if one["code"] == "grown"]
    assert all(decision["free"] >= 0 for decision in decisions)


@pytest.mark.parametrize(("ended", "application"), [(8, "bert"), (12, "resnet50")])
def test_nobody_is_shrunk_before_it_is_known_how_far_off_gains_of_its_application_are(
    ended: int, application: str
) -> None:
    on = compiled(spec(tolerance=0.05, doubt=0.0, window_seconds=120.0), ended)
    decisions = played(on, FLAT, application)
    assert not [one for one in changes(decisions, "a") if "little is left" in one["text"]]


def test_without_convergence_in_the_spec_nobody_is_shrunk_for_it() -> None:
    assert not [one for one in changes(played(compiled(spec()), FLAT), "a") if "little is left" in one["text"]]


def test_a_job_that_gains_again_is_restored_once() -> None:
    on = compiled(spec(tolerance=0.05, doubt=0.0, window_seconds=120.0))
    decisions = played(on, FLAT + [0.6, 0.3, 0.2] + [0.2] * 8)
    words = [one["text"] for one in changes(decisions, "a")]
    assert sum("gaining again" in text for text in words) == 1
    assert changes(decisions, "a")[-1]["gpus"] >= 4


@pytest.mark.parametrize("count", [1, POINTS, 5 * POINTS])
def test_long_curves_are_thinned_and_go_through_storage(count: int) -> None:
    known = records.of([Submitted("a", 1), Submitted("b", 1)])
    state = experience.none(2)
    for number in range(count):
        known = known._replace(iteration=np.array([number, 0.0]), value=np.array([2.0 - number, np.nan]))
        state = experience.extend_curves(state, [0, 1], known)
    shown = state.iteration[0][np.isfinite(state.iteration[0])]
    assert len(shown) <= POINTS
    assert (np.diff(shown) > 0).all()
    assert shown[-1] == count - 1
    assert np.isnan(state.iteration[1]).all()
    assert_equal(experience.unpack_learning(json.loads(json.dumps(experience.pack_learning(state))), 2), state)
    assert (state.converging.ceiling == UNLIMITED).all()
