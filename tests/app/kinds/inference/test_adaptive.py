"""A policy that adapts, as the service answers with it: kept with the run, read back, carried, and refused."""

from __future__ import annotations

import json
from math import log

import numpy as np
import pytest

from app.kinds.inference.carried import Carried
from app.kinds.inference.dynamics import BATCHES, NONE, PARTS, Dynamics
from app.kinds.inference.heuristics import AdaptivePlanner
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import Layout
from app.kinds.inference.policies import FAMILIES, load
from app.kinds.inference.queue import begin, pack, unpack
from app.kinds.inference.report import Ledger
from app.policies.artifact import save
from app.policies.base import IncompatibleArtifact
from tests.app.kinds.inference.adaptive import dynamics, planner
from tests.app.kinds.inference.runs import Live, arrivals, compiled
from tests.app.kinds.inference.workloads import layout, spec


def artifact(layout: Layout) -> bytes:
    return save(planner(layout), "inference", layout.entries, layout.actions, {}, FAMILIES)


def ledger(layout: Layout) -> Ledger:
    result = compiled(layout.spec, {})
    return result.ledger(begin(layout, result.fleet, None, carried=False))


def test_what_was_published_is_read_back() -> None:
    result = layout()
    outcome = load(artifact(result))
    KIND.check(outcome, result)
    assert isinstance(outcome.policy, AdaptivePlanner)
    for name, array in planner(result).arrays.items():
        np.testing.assert_array_equal(outcome.policy.arrays[name], array)
    arrays = dict(planner(result).arrays)
    del arrays["weights"]
    with pytest.raises(IncompatibleArtifact, match="weights"):
        Dynamics.build(arrays)


def test_a_run_keeps_how_long_batches_took() -> None:
    result = layout()
    run = ledger(result)
    assert (run.recent().batch == NONE).all()
    for number in range(BATCHES + 3):
        run.pass_time(float(number))
        run.arrive(0, run.now, None)
        [place] = run.idle()[:1]
        batch = run.start(place, 0, 1, 1)
        run.pass_time(run.now + (batch.until - batch.started) * 1.5)
        run.finish(place, run.now)
    recent = run.recent()
    first = result.spec.batches.index(1)
    assert recent.batch[0].tolist() == [(run.fleet.of[place] * 2 + 1) * 4 + first] * BATCHES
    np.testing.assert_allclose(recent.pace, 1.5)


def test_a_run_counts_requests_in_parts_of_a_control_interval() -> None:
    result = layout(control_seconds=4)
    run = ledger(result)
    assert (run.recent().arrived == NONE).all()
    for at in (0.1, 0.5, 1.2, 3.1, 3.2, 3.9):
        run.pass_time(at)
        run.arrive(1, at, None)
    run.pass_time(4.0)
    assert run.recent().arrived[0, 1].tolist() == [NONE] * (PARTS - 4) + [2, 1, 0, 3]
    run.arrive(1, 2.5, None)  # told late
    assert run.recent().arrived[0, 1].tolist()[-4:] == [2, 1, 1, 3]
    run.pass_time(4.0 + PARTS - 1)
    assert run.recent().arrived[0, 1].tolist() == [3, *[0] * (PARTS - 1)]
    run.pass_time(100.0)
    assert run.recent().arrived[0].tolist() == [[0] * PARTS] * 2


def test_transitions_outlast_a_restart() -> None:
    run = ledger(layout())
    run.arrive(0, 0.0, None)
    batch = run.start(0, 0, 0, 1)
    run.pass_time(batch.until + 0.3)
    run.finish(0, run.now)
    stored = json.loads(json.dumps(pack(run.state())))
    assert unpack(stored) == run.state()


def test_the_service_adapts() -> None:
    wanted = spec()
    run = Live(compiled(wanted, {"default": load(artifact(KIND.layout(wanted)))}))
    decision = run.report(1.0, arrived=arrivals("web", 0.9, 0.95))
    assert (decision.source, decision.policy) == ("agent", "grbal")
    assert decision.start


def test_a_carried_policy_adapts_likewise() -> None:
    result = layout()
    seconds = {server: {variant: [0.02, 0.03, 0.05, 0.08] for variant in result.variants} for server in result.servers}
    carried = Carried(result.spec.model_dump(), {"default": artifact(result)}, seconds)
    carried.arrived("web", 0.5)
    assert carried.decide(0.6).start
    assert carried.policy == "grbal"


def test_what_is_told_is_bounded_and_positive() -> None:
    result = layout()
    wild = dynamics(result, 3)
    run = ledger(result)
    for number in range(40):
        run.pass_time(0.3 * number)
        for _ in range(20):
            run.arrive(0, run.now, None)
    predictions = wild.predict(result, np.full((2, 2, 4), 0.1), run.recent(), 1)
    assert (predictions.rate >= 0).all()
    assert np.isfinite(predictions.rate).all()
    assert (np.abs(np.log(predictions.seconds / 0.1)) <= 3 + log(1.1)).all()
