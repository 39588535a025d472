"""What a run learns of applications by itself: throughput, lengths, and how far its predictions are off."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.testing import assert_allclose

from app.kinds.cluster import experience
from app.kinds.cluster.advance import advance
from app.kinds.cluster.engine import ENGINE
from app.kinds.cluster.experience import ApplicationMeasurements, MeasuredStep
from app.kinds.cluster.layout import ClusterState, Layout, begin, pack, unpack
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.report import ClusterReport
from app.kinds.cluster.run_samples import samples, steps
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.throughput import Batches, Throughput, layout_nodes, step_seconds
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.engine import RunMemory
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = ClusterSpec.model_validate(
    {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 4, "gpus": 4}], "restart_seconds": 30}
)
LAYOUT = Layout(SPEC)
TRUE = np.array([0.05, 0.002, 0.06, 0.002, 0.01, 0.001, 2.0])
"""Parameters of a throughput."""


def step(nodes: int, gpus: int, local: int, factor: float = 1.0) -> MeasuredStep:
    seconds = float(step_seconds(TRUE, np.array(nodes), np.array(gpus), np.array(float(local))))
    return MeasuredStep(nodes, gpus, local, seconds * factor, min(TRUE[0] + TRUE[1] * local, seconds) * factor, 1)


class Live:
    """A run that reports to the engine, by default of ``SPEC`` and without a domain model."""

    def __init__(self, spec: ClusterSpec = SPEC, model: ClusterModel | None = None) -> None:
        layout = Layout(spec)
        version = None if model is None else 1
        self.on = ENGINE.compile(Snapshot("w", spec.name, 1, spec, layout, model, version, None, None, 1))
        self.memory, self.number = RunMemory(begin(layout)), 0

    @property
    def state(self) -> ClusterState:
        """Jobs and nodes."""
        state: ClusterState = self.memory.state
        return state

    def report(self, **reported: Any) -> dict[str, Any]:
        """The answer; the state is stored in between."""
        read = ENGINE.read(self.on, self.memory, self.number, ENGINE.decode(json.dumps(reported).encode()))
        (answered,) = all_answered(
            ENGINE.answer(self.on, [Pending("r", self.number, self.memory, read, {}, None)], NOW)
        )
        self.memory = ENGINE.restore(msgspec.json.decode(bytes(ENGINE.serialise(answered.state))))
        self.number += 1
        return dict(json.loads(answered.decision))


def came(job: str, application: str | None, gpus: int = 1, **reported: Any) -> dict[str, Any]:
    return {"job": job, "gpus": gpus, **({} if application is None else {"application": application}), **reported}


def on(job: str, seconds: float, **reported: Any) -> dict[str, Any]:
    return {"job": job, "iteration": 0, "seconds": seconds, **reported}


def test_steps_that_were_expected_change_nothing_and_surprises_do() -> None:
    shown = ApplicationMeasurements(64)
    for gpus, local in ((1, 32), (1, 64), (2, 32), (4, 32)):
        shown = experience.add_step(shown, step(1, gpus, local))
    known = len(shown.places)
    assert experience.add_step(shown, step(1, 4, 40)).places == shown.places
    across = experience.add_step(shown, step(2, 8, 32))
    assert len(across.places) == known + 1  # nothing was known of several nodes
    parameters = across.parameters
    assert parameters is not None
    where = np.array([1, 1, 2]), np.array([2, 4, 8]), np.array([48.0, 48.0, 48.0])
    assert_allclose(step_seconds(parameters, *where), step_seconds(TRUE, *where), rtol=0.1)


def test_noisy_steps_at_a_place_are_averaged_and_places_are_bounded() -> None:
    shown, noise = experience.add_step(ApplicationMeasurements(64), step(1, 4, 32, 1.5)), np.random.default_rng(0)
    for _ in range(200):
        shown = experience.add_step(shown, step(1, 4, 32, float(np.exp(noise.normal(0, 0.1)))))
    (one,) = shown.places
    assert one.seconds == pytest.approx(step(1, 4, 32).seconds, rel=0.1)
    for _ in range(20):
        shown = experience.add_step(shown, step(1, 4, 32, 1.15))
    assert shown.places[0].seconds == pytest.approx(step(1, 4, 32, 1.15).seconds, rel=0.03)  # they have become slower
    for number in range(200):
        shown = experience.add_step(shown, step(1, 1 + number % 4, 1 + 7 * number, 1 + number / 50))
    assert len(shown.places) <= experience.MOST_PLACES


def test_of_two_jobs_that_differ_in_their_noise_alone_the_noisier_scales_further() -> None:
    shown = ApplicationMeasurements(64)
    for place in ((1, 1, 32), (1, 1, 64), (1, 4, 32), (2, 8, 32), (4, 16, 32)):
        shown = experience.add_step(shown, step(*place))
    batches = Batches(64, 4_096, 8, 128)
    quiet, noisy = (experience.goodput(shown, batches, noise, (4, 16)) for noise in (10.0, 10_000.0))
    assert noisy.goodput[16] / noisy.goodput[1] > 2 * quiet.goodput[16] / quiet.goodput[1]
    assert noisy.batch[16] > quiet.batch[16] >= 64
    assert (noisy.batch[1:] <= 4_096).all()
    fixed = experience.goodput(shown, Batches(64, 64, 1, 10**9), np.inf, (4, 16))
    assert (fixed.batch[1:] < 1.2 * 64).all()  # rounded up to as many samples on each GPU


def test_the_noise_scale_reaches_decisions() -> None:
    limits = {"batch": 64, "batch_maximum": 4_096, "gpu_batch_minimum": 8, "gpu_batch_maximum": 128, "maximum": 16}

    def allocate(noise: float) -> dict[str, int]:
        run, at = Live(), 0.0
        run.report(at=at, submitted=[came(job, job, 1, **limits) for job in ("a", "b")])
        gpus = {"a": 1, "b": 1}
        for _ in range(6):
            at += 60
            reported = []
            for job, count in gpus.items():
                one = step(-(-count // 4), count, 32) if count else None
                if one is not None:
                    measured = {"computing": one.computing, "gpus": count, "nodes": one.nodes, "batch": 32 * count}
                    reported.append(on(job, one.seconds, **measured, noise_scale=noise if job == "b" else 100.0))
            for change in run.report(at=at, progressed=reported)["changes"]:
                gpus[change["job"]] = change["gpus"]
                assert change["batch"] is None or 64 <= change["batch"] <= 4_096
        return gpus

    alike, noisy = allocate(100.0), allocate(100_000.0)
    assert noisy["b"] > alike["b"]


def test_an_application_that_was_not_measured_is_tried_on_twice_as_many_gpus_at_most() -> None:
    run = Live()
    (change,) = run.report(at=0, submitted=[came("a", "new", 1, batch=256)])["changes"]
    assert change["gpus"] == 1  # of sixteen: nobody asked for more
    assert change["seconds_left"] is None
    gpus, at = 1, 0.0
    for most in (2, 4, 8, 16):
        at += 60
        one = step(-(-gpus // 4), gpus, 256 // gpus)
        reported = on("a", one.seconds, computing=one.computing, gpus=gpus, nodes=one.nodes)
        for change in run.report(at=at, progressed=[reported])["changes"]:
            assert gpus < change["gpus"] <= most
            gpus = change["gpus"]
            assert change["seconds_left"] is not None
    assert gpus > 2
    first = run.report(at=at + 60, submitted=[came("b", "new", 1, batch=256), came("c", "other", 1)])
    values = {change["job"]: change["gpus"] for change in first["changes"]}
    assert values["c"] == 1  # what is known of one application tells nothing of another


def test_lengths_are_learned_from_jobs_that_finished_and_not_from_those_that_failed() -> None:
    run, reported = Live(), {"batch": 100, "maximum": 1}
    run.report(at=0, submitted=[came(job, "x", 1, **reported) for job in ("a", "b", "c")])
    run.report(at=5_030, progressed=[on(job, 1.0, gpus=1) for job in ("a", "b", "c")])
    run.report(at=10_030, ended=[{"job": "a"}, {"job": "b", "state": "failed"}])
    ((needed, _),) = run.state.experience["x"].needed
    assert needed == pytest.approx(100 * 10_000)  # its restart took 30 s of 10,030
    outlook = run.on.outlook(run.state)
    assert outlook.seconds_left(np.array([[1]]))[0, 0] == pytest.approx(10_000)  # c has done as much: more than any
    run.report(at=10_040, submitted=[came("d", "x", 1, **reported), came("e", "y", 1, **reported)])
    left = run.on.outlook(run.state).seconds_left(np.ones((3, 1), np.int64))[:, 0]
    assert left[1] == pytest.approx(10_010)  # as far as c is by now
    assert left[2] == pytest.approx(3_600)  # of y nothing is known


def test_a_job_that_tells_its_epochs_has_left_what_they_take() -> None:
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 1, batch=100, maximum=1, iterations=10)])
    for epoch in (1, 2):
        run.report(at=30 + 500 * epoch, progressed=[{**on("a", 1.0, gpus=1), "iteration": epoch}])
    left = run.on.outlook(run.state).seconds_left(np.array([[1]]))[0, 0]
    assert left == pytest.approx(8 * 500)
    run.report(at=30 + 1_500, progressed=[{**on("a", 1.0, gpus=1), "iteration": 1}])  # from a checkpoint
    assert run.on.outlook(run.state).seconds_left(np.array([[1]]))[0, 0] == pytest.approx(9 * 500)


def test_predictions_have_intervals_as_soon_as_nineteen_jobs_have_finished_and_later_ends_are_within() -> None:
    run, at, within = Live(), 0.0, list[bool]()
    for number, seconds in enumerate(np.random.default_rng(1).lognormal(6, 0.5, 120).tolist()):
        job = f"j{number}"
        (change,) = run.report(at=at, submitted=[came(job, "x", 1, batch=100)])["changes"]
        low, high = change["seconds_left_low"], change["seconds_left_high"]
        assert (low is None) == (high is None) == (len(run.state.off) < 19)
        if low is not None:
            within.append(low <= 60 + seconds <= high)
        run.report(at=at + 60, progressed=[on(job, 1.0, gpus=1)])
        at += 60 + seconds
        run.report(at=at, ended=[{"job": job}])
    assert len(within) > 80
    assert 0.8 <= np.mean(within) < 1


def test_a_stored_state_goes_on() -> None:
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 2, batch=64), came("b", None, 4)])
    run.report(at=60, progressed=[on("a", 0.5, gpus=2)])
    stored = json.loads(json.dumps(pack(run.state)))
    assert unpack(stored).experience == run.state.experience
    convert = msgspec.convert({"at": 120.0, "progressed": [on("a", 0.5, gpus=2)]}, ClusterReport)
    after = advance(LAYOUT, unpack(stored), convert)
    assert after.names == ("a", "b")
    assert after.records.done[0] > 0


def test_of_a_run_those_that_finished_tell_the_samples_that_they_needed() -> None:
    limits = {"batch": 64, "batch_maximum": 1_024, "gpu_batch_maximum": 64}
    reports = [
        {"at": 0, "submitted": [came("a", "x", 1, **limits), came("b", "x", 1, **limits), came("c", None)]},
        {"at": 60, "progressed": [on("a", 2.0, gpus=1, batch=128, computing=1.0, noise_scale=64.0), on("b", 1.0)]},
        {"at": 120, "progressed": [on("a", 2.0, gpus=1, batch=128, computing=1.0, noise_scale=64.0), on("b", 1.0)]},
        {
            "at": 900,
            "progressed": [on("a", 1.0, gpus=1, batch=64, computing=1.0)],
            "ended": [{"job": "b", "state": "failed"}],
        },
        {"at": 960, "ended": [{"job": "a"}, {"job": "c"}]},
    ]
    needed = samples(reports, 60.0)
    worth = 128 / 2.0 * (64 + 64) / (128 + 64)
    assert needed == {"a": pytest.approx(60 * worth + 60 * worth + 60 * 64 + 60 * 64)}  # between 120 and 900 it waited
    rows = [row for row in steps(reports) if row["gpus"] == 1]
    assert [(row["batch"], row["seconds"], row["computing"]) for row in rows] == [
        (64, 1.5, 0.5),
        (64, 1.5, 0.5),
        (64, 1.0, 1.0),
    ]


def test_limits_of_a_batch_that_cannot_be_are_refused() -> None:
    for reported in (
        {"batch_maximum": 64},
        {"batch": 64, "batch_maximum": 32},
        {"gpu_batch_minimum": 8, "gpu_batch_maximum": 4},
    ):
        with pytest.raises(Exception, match="batch_maximum"):
            ENGINE.decode(json.dumps({"at": 0, "submitted": [came("a", "x", 1, **reported)]}).encode())


def modelled(layout: Layout) -> ClusterModel:
    """A domain model of ``x``, whose steps are those of ``TRUE``."""
    node = np.array([int(layout.capacity.max()), len(layout.capacity)])
    gpus, local = np.array([1, 2, 4, 8, 16, 32]), np.array([[8.0, 32.0, 128.0]])
    nodes = layout_nodes(gpus, node)[:, :, None]
    logs = np.log(step_seconds(TRUE, nodes, gpus[None, :, None], local[None]))[None, None]
    throughput = Throughput(logs, gpus, local, np.full((1, 2), 0.1), node, np.array([32]))
    unfitted = ClusterModel.unfitted(layout)
    jobs = np.array([[0, 0, 4, np.nan, 3_600.0], [0, 0, 4, np.nan, 7_200.0]])  # as of a model from before
    return replace(
        unfitted,
        applications=("x",),
        throughput=throughput,
        noise_scale=np.full((1, 10), 500.0),
        initial=np.array([64.0]),
        arrivals=unfitted.arrivals._replace(jobs=jobs),
    )


def test_an_end_is_expected_sooner_where_noise_scales_grow_as_jobs_go_on() -> None:
    """Of two jobs that choose their batches and one whose batch is fixed, on one GPU and on sixteen."""
    flat, gpus = modelled(LAYOUT), np.array([[1, 16], [1, 16], [1, 16]])
    growing = replace(flat, noise_scale=np.geomspace(50.0, 50_000.0, 10)[None])
    run = Live(model=flat)
    jobs = [came("new", "x", 4, **CHOOSES), came("late", "x", 4, **CHOOSES), came("fixed", "x", 4, batch=64)]
    run.report(at=0, submitted=[{**job, "iterations": 100} for job in jobs])
    for minute in range(1, 10):
        reported = {"gpus": 4, "batch": 64, "noise_scale": 500.0}
        steps = [on(job, 0.5, **reported) | {"iteration": minute * each} for job, each in (("new", 1), ("late", 10))]
        run.report(at=60 * minute, progressed=[*steps, on("fixed", 0.5, gpus=4)])
    outlooks = {name: Live(model=one).on.outlook(run.state) for name, one in (("flat", flat), ("growing", growing))}
    expected = {name: outlook.expected_seconds(gpus) for name, outlook in outlooks.items()}
    present = {name: outlook.seconds_left(gpus) for name, outlook in outlooks.items()}
    assert_allclose(expected["flat"], present["flat"])
    assert_allclose(present["growing"], present["flat"])  # rules go by present speeds
    new, late, fixed = expected["growing"] / present["growing"]
    assert new[1] < 0.7 * new[0]  # larger batches, that lose less, are for many GPUs
    assert new[1] < 0.8 * late[1] < 0.8  # which has less to come
    assert_allclose(fixed, 1.0)
    assert np.isinf(outlooks["growing"].expected_seconds(0 * gpus)).all()


def test_expected_ends_cost_no_table_of_goodput_for_each_job_and_allow_a_noise_scale_of_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of jobs that all have other limits of their batches, two at a time on each number of GPUs."""
    growing = replace(modelled(LAYOUT), noise_scale=np.geomspace(1e-100, 1e100, 10)[None])
    run, scales, jobs = Live(model=growing), [0.0, 500.0, 1e100, 500.0], range(4)
    limits = [CHOOSES | {"batch_maximum": CHOOSES["batch_maximum"] + 8 * one} for one in jobs]
    run.report(at=0, submitted=[came(f"j{one}", "x", 4, **limits[one]) | {"iterations": 100} for one in jobs])
    steps = [{"gpus": 4, "batch": 64, "noise_scale": scale, "iteration": 5} for scale in scales]
    run.report(at=60, progressed=[on(f"j{one}", 0.5) | steps[one] for one in jobs])
    outlook = run.on.outlook(run.state)
    present = outlook.seconds_left(np.array([[1, 16]] * 4))
    tables = list[object]()
    monkeypatch.setattr("app.kinds.cluster.outlook.course", lambda *values: tables.append(values))
    seconds = outlook.expected_seconds(np.array([[1, 16]] * 4))
    assert not tables
    assert np.isfinite(seconds).all()
    assert (seconds > 0).all()
    assert seconds[1, 1] < present[1, 1]  # speeds up
    assert_allclose(seconds[3, 1] / present[3, 1], seconds[1, 1] / present[1, 1], rtol=0.05)
    alone = outlook.expected_seconds(np.array([[0, 0], [1, 16], [0, 0], [0, 0]]))
    assert_allclose(alone[1], seconds[1])


MIXED = ClusterSpec.model_validate(
    {
        "name": "m",
        "kind": "cluster",
        "nodes": [{"name": "n", "count": 2, "gpus": 8}, {"name": "k", "count": 2, "gpus": 4}],
    }
)
CHOOSES = {"batch": 64, "batch_maximum": 4_096, "gpu_batch_minimum": 8, "gpu_batch_maximum": 128}


@pytest.mark.parametrize("spec", [SPEC, MIXED])
@pytest.mark.parametrize("known", [False, True])
def test_nodes_that_are_lost_and_return_are_no_fault(spec: ClusterSpec, known: bool) -> None:
    run = Live(spec, modelled(Layout(spec)) if known else None)
    run.report(at=0, submitted=[came("a", "x", 4, **CHOOSES), came("b", "x", 1, batch=64), came("c", None, 2)])
    gpus = {name: int(count) for name, count in zip(run.state.names, run.state.jobs.gpus, strict=True)}
    reported = [on(job, 0.5, gpus=max(gpus[job], 1), batch=128, noise_scale=200.0) for job in ("a", "b")]
    run.report(at=60, progressed=reported)
    names = [f"{one.name}-{number}" for one in spec.nodes for number in range(one.count)]
    run.report(at=120, nodes=[{"node": names[0], "gpus": 0}])
    assert not run.report(at=180, nodes=[{"node": name, "gpus": 0} for name in names])["running"]
    back = run.report(at=240, whole=True, submitted=[came("a", "x", 4, **CHOOSES), came("b", "x", 1, batch=64)])
    assert back["running"] == 2


def test_a_job_without_a_batch_is_as_good_as_unmeasured_and_harms_no_other() -> None:
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 1), came("z", "x", 1)])
    run.report(at=60, progressed=[on("a", 0.5, gpus=1)])
    run.report(at=120, ended=[{"job": "z"}])
    assert run.state.experience == {}
    (change,) = run.report(at=180, submitted=[came("b", "x", 8, minimum=8)])["changes"]
    assert change["gpus"] == 8


def test_a_job_that_asks_for_more_gpus_than_its_batch_has_samples_runs_all_the_same() -> None:
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 8, minimum=8, batch=4)])
    run.report(at=60, progressed=[on("a", 0.5, gpus=8)])
    assert run.state.jobs.gpus[0] >= 8


def test_no_batch_is_larger_than_the_largest() -> None:
    shown = experience.add_step(ApplicationMeasurements(10), step(1, 1, 10))
    course = experience.goodput(shown, Batches(10, 100, 1, 64), 1e6, (4, 16))
    assert course.batch[1:].max() == 100
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 3, batch=10, batch_maximum=100)])
    (change,) = run.report(at=60, progressed=[on("a", 0.5, gpus=3, batch=10)])["changes"]
    assert change["batch"] is None  # without a noise scale nobody knows
    (change,) = run.report(at=120, nodes=[{"node": "n-0", "gpus": 0}], progressed=[on("a", 0.5, noise_scale=1e6)])[
        "changes"
    ]
    assert 10 <= change["batch"] <= 100


@pytest.mark.parametrize("known", [False, True])
def test_iterations_count_where_no_steps_are_told(known: bool) -> None:
    run = Live(model=modelled(LAYOUT) if known else None)
    run.report(
        at=0,
        submitted=[came("s", "x", 1, batch=64, maximum=1), came("a", "x", 1, iterations=100, maximum=1, **CHOOSES)],
    )
    run.report(at=30, progressed=[on("s", 0.5, gpus=1), {"job": "a", "iteration": 0}])
    run.report(at=9_030, progressed=[{"job": "a", "iteration": 90}])
    left = run.on.outlook(run.state).seconds_left(np.ones((2, 1), np.int64))[:, 0]
    assert left[1] == pytest.approx(1_000, rel=0.01)


def test_jobs_of_an_application_whose_batches_differ_are_counted_alike() -> None:
    run = Live()
    own = {"batch": 1_024, "batch_maximum": 1_024, "maximum": 1}
    run.report(at=0, submitted=[came("first", "x", 1, batch=32, maximum=1), came("a", "x", 1, iterations=10, **own)])
    run.report(at=30, progressed=[on("first", 0.5, gpus=1, noise_scale=100.0)])
    reported = on("a", 1.0, gpus=1, computing=1.0, batch=1_024, noise_scale=100.0)
    run.report(at=530, progressed=[{**reported, "iteration": 1}])
    left = run.on.outlook(run.state).seconds_left(np.ones((2, 1), np.int64))[:, 0]
    assert left[1] == pytest.approx(9 * 500, rel=0.02)


def test_jobs_with_and_without_a_size_of_data_are_counted_alike() -> None:
    run = Live()
    reported = {"batch": 100, "maximum": 1}
    run.report(at=0, submitted=[came("a", "x", 1, **reported), came("b", "x", 1, data=150.0, **reported)])
    run.report(at=5_030, progressed=[on("a", 1.0, gpus=1), on("b", 1.0, gpus=1)])
    run.report(at=10_030, ended=[{"job": "a"}, {"job": "b"}])
    run.report(
        at=10_060, submitted=[came("c", "x", 1, data=150.0, **reported), came("d", "x", 1, data=300.0, **reported)]
    )
    left = run.on.outlook(run.state).seconds_left(np.ones((2, 1), np.int64))[:, 0]
    np.testing.assert_allclose(left, [10_000, 20_000])


def test_restarts_that_are_cut_short_take_no_more_than_they_took() -> None:
    run = Live()
    run.report(at=0, submitted=[came("a", "x", 1, batch=100)])
    run.report(at=20, nodes=[{"node": "n-0", "gpus": 0}])
    run.report(at=40, nodes=[{"node": "n-1", "gpus": 0}])
    run.report(at=1_040, progressed=[on("a", 1.0, gpus=1)])
    assert run.state.records.done[0] == pytest.approx(100 * (1_000 - 30))


def test_a_whole_report_ends_jobs_in_a_run_and_in_its_log_alike() -> None:
    reported = {"batch": 100, "maximum": 1}
    reports = [
        {"at": 0, "submitted": [came("a", "x", 1, **reported), came("b", "x", 1, **reported)]},
        {"at": 60, "progressed": [on("a", 1.0, gpus=1), on("b", 1.0, gpus=1)]},
        {"at": 120, "whole": True, "submitted": [came("b", "x", 1, **reported)]},
    ]
    assert list(samples(reports, 60.0)) == ["a"]
    run = Live()
    for report in reports:
        run.report(**report)
    assert len(run.state.experience["x"].needed) == 1


def test_what_is_known_is_bounded() -> None:
    run = Live()
    for number in range(experience.MOST_APPLICATIONS + 40):
        at, job = 120.0 * number, f"j{number}"
        run.report(at=at, submitted=[came(job, f"x{number}", 1, batch=8)])
        run.report(at=at + 60, progressed=[on(job, 0.5, gpus=1)])
        run.report(at=at + 90, ended=[{"job": job}])
    assert len(run.state.experience) == experience.MOST_APPLICATIONS
