"""Changes within an iteration: when they are offered, and iterations in several segments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.decisions.service import encode_decision
from app.kinds.contract.engine import Pending, Snapshot
from app.kinds.contract.inputs import InvalidInput
from app.kinds.iterative.compiled import Compiled
from app.kinds.iterative.contingencies import MOST, Segment, advance_in_segments, encode_segments, offers
from app.kinds.iterative.engine import ENGINE, CheckedReport
from app.kinds.iterative.kind import KIND as KIND_OF_SERVICE
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.report import IterationRunStart, IterationSegment
from app.kinds.iterative.savings import savings
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import State, advance, begin
from benchmarks.held_out.engine import NOW
from tests.answers import all_answered
from tests.app.kinds.iterative.decisions.deciding import compiled
from workers.inputs import Workload
from workers.kinds.iterative import KIND
from workers.kinds.iterative.grid import Executions

GPUS = {"name": "gpus", "minimum": 1, "maximum": 16, "max_steps": 15, "price_per_hour": 1.0, "change_seconds": 10.0}
NODES = {"name": "nodes", "minimum": 1, "maximum": 4, "max_steps": 3, "price_per_hour": 0.5}
DEADLINE = {"name": "iteration_seconds", "unit": "s", "target": 1_600.0, "scope": "run"}
LOSS = {"name": "loss"}


def _spec(**changed: Any) -> Spec:
    spec = {"name": "long", "resources": [GPUS], "metrics": [DEADLINE], "iterations": 4}
    return Spec.model_validate(spec | changed)


def _seconds(gpus: float) -> float:
    return 60 + 2_400 / gpus


def _executions(spec: Spec, gpus: list[float], random: np.random.Generator, noise: float = 0.15) -> Executions:
    items = []
    for number, units in enumerate(gpus):
        drawn = _seconds(units) * np.exp(noise * random.standard_normal(spec.iterations))
        rows = np.column_stack([np.arange(spec.iterations), np.full(spec.iterations, units), drawn])
        items.append((f"run-{number}", rows))
    return Executions(tuple(items))


def _fitted(spec: Spec, noise: float = 0.15) -> ModelTable:
    gpus = [2.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0]
    executions = _executions(spec, gpus, np.random.default_rng(1), noise)
    return ModelTable.from_bytes(KIND.fit(Workload(spec, samples=executions.items), 0).model)


def _state(projector: Projector, gpus: int, done: int, seconds: float) -> State:
    state = begin(projector, np.array([[gpus - 1]]))
    for _ in range(done):
        state = advance(projector, state, state.levels, np.array([[seconds]]), np.zeros((1, 0)))
    return state


def test_an_iteration_that_decides_whether_the_run_is_late_has_contingencies() -> None:
    spec = _spec()
    projector = Projector(Layout(spec), _fitted(spec))
    result = offers(projector, _state(projector, 8, 2, 400.0), np.array([7]), 0.0)
    assert 1 <= len(result) <= MOST
    assert [one.after for one in result] == sorted({one.after for one in result})
    sizes = [7, *(int(one.levels[0]) for one in result)]
    assert sizes == sorted(set(sizes))
    for one in result:
        assert 0 < one.chance <= 0.5
        assert one.after < one.taken < one.without
        assert "gpus" in one.text("12 gpus")


@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ({"iterations": 30, "metrics": [{**DEADLINE, "target": 12_000.0}]}, 1),  # short beside the run
        ({"metrics": [{**DEADLINE, "scope": "iteration", "target": 400.0}]}, 1),
        ({"metrics": [{**DEADLINE, "target": None}]}, 1),
        ({"metrics": [{**DEADLINE, "target": 40_000.0}]}, 2),  # never late
        ({}, 4),  # over
    ],
)
def test_elsewhere_nothing_is_offered(changed: dict[str, Any], done: int) -> None:
    spec = _spec(**changed)
    projector = Projector(Layout(spec), _fitted(spec))
    assert offers(projector, _state(projector, 8, done, 360.0), np.array([7]), 0.0) == []


def test_nothing_is_left_to_change_to_at_the_largest_allocation() -> None:
    spec = _spec()
    projector = Projector(Layout(spec), _fitted(spec))
    assert offers(projector, _state(projector, 16, 2, 400.0), np.array([15]), 0.0) == []


def test_work_in_segments_shows_the_same_run_effect_and_costs_what_it_took() -> None:
    spec = _spec(metrics=[DEADLINE, LOSS])
    layout = Layout(spec)
    gpus = [2.0, 4.0, 6.0, 8.0, 12.0, 16.0]
    items = [
        (name, np.column_stack([rows, np.full(len(rows), 2.0)]))
        for name, rows in _executions(spec, gpus, np.random.default_rng(2), 0.01).items
    ]
    table = ModelTable.from_bytes(KIND.fit(Workload(spec, samples=items), 0).model)
    projector = Projector(layout, table)
    state = begin(projector, np.array([[3], [3]]))
    state = advance(projector, state, state.levels, np.array([[660.0, 2.0]] * 2), np.zeros((2, 0)))
    # half of the work at 4 gpus, the change, and the rest at 12
    parts = (Segment([3], 330.0), Segment([11], 10.0 + 130.0))
    metrics = np.array([[470.0, 2.0], [660.0, 2.0]])
    after = advance_in_segments(projector, state, np.array([[11], [3]]), metrics, np.zeros((2, 0)), [parts, ()])
    assert abs(float(after.effect[0, 0])) < 0.03
    assert abs(float(after.effect[1, 0])) < 0.03
    np.testing.assert_allclose(after.elapsed[:, 0], [1_130.0, 1_320.0])
    np.testing.assert_allclose(after.measured, metrics)
    np.testing.assert_allclose(after.cost - state.cost, [(330 * 4 + 140 * 12) / 3600, 660 * 4 / 3600])
    whole = advance(projector, state, np.array([[11], [3]]), metrics, np.zeros((2, 0)))
    assert float(whole.effect[0, 0]) > 0.2  # as if 470 s had been needed at 12 gpus


@pytest.mark.parametrize(
    ("segments", "pointer"),
    [
        ([({"gpus": 4}, 40.0), ({"gpus": 99}, 20.0)], "/segments/1/allocation/gpus"),
        ([({"gpus": 4}, 40.0), ({"cpus": 8}, 20.0)], "/segments/1/allocation/cpus"),
        ([({"gpus": 4}, 40.0), ({"gpus": 6}, 20.0)], "/segments/1/allocation"),
        ([({"gpus": 8}, 40.0), ({"gpus": 8}, 20.0)], "/segments/1/allocation"),
        ([({"gpus": 4}, 40.0), ({"gpus": 8}, 30.0)], "/segments"),
    ],
)
def test_segments_that_do_not_fit_their_report_are_refused(
    segments: list[tuple[dict[str, float], float]], pointer: str
) -> None:
    values = [IterationSegment(allocation, seconds) for allocation, seconds in segments]
    with pytest.raises(InvalidInput) as caught:
        encode_segments(Layout(_spec()), values, [7], [60.0])
    assert caught.value.errors[0].pointer == pointer


def test_a_model_of_changes_within_iterations_is_that_of_changes_between_them() -> None:
    pause = 60.0
    spec = _spec(resources=[{**GPUS, "change_seconds": pause}])
    gpus, random = [4.0, 6.0, 8.0, 10.0, 12.0, 16.0], np.random.default_rng(3)
    between, within = [], []
    for name, rows in _executions(spec, gpus, random, 0.02).items:
        units, seconds = rows[1, 1], rows[1, 2]
        later = 14.0 if units == 16 else 16.0
        first = np.array([1.0, units, seconds / 2])
        there = seconds * _seconds(later) / _seconds(units)
        rest, all_of_it = (np.array([1.0, later, pause + part * there]) for part in (0.5, 1.0))
        back = rows[2] + [0.0, 0.0, pause]  # the next one begins with a change
        within.append((name, np.vstack([rows[:1], first, rest, back, rows[3:]])))
        between.append((name, np.vstack([rows[:1], all_of_it, back, rows[3:]])))
    layout = Layout(spec)
    models = [
        Projector(layout, ModelTable.from_bytes(KIND.fit(Workload(spec, samples=samples), 0).model))
        for samples in (between, within)
    ]
    at = np.arange(3, 16)
    each = [one.log_mean(at, one.point(np.zeros((13, 0))), np.zeros(13, int))[:, 0] for one in models]
    np.testing.assert_allclose(each[0], each[1], atol=0.02)
    np.testing.assert_allclose(models[0].change_seconds, models[1].change_seconds, rtol=0.2)  # not half


# Over the API.


def _registered(client: TestClient, name: str, **changed: Any) -> str:
    spec = json.loads(_spec(**changed).model_dump_json()) | {"name": name}
    assert client.post("/workloads", json=spec).status_code == 201
    return name


def _report(first: float, second: float) -> dict[str, Any]:
    segments = [{"allocation": {"gpus": 4}, "seconds": first}, {"allocation": {"gpus": 8}, "seconds": second}]
    return {
        "allocation": {"gpus": 8},
        "metrics": {"iteration_seconds": first + second},
        "segments": segments,
    }


def test_reports_in_segments_become_samples_in_every_format(client: TestClient) -> None:
    names = [_registered(client, name) for name in ("first", "second")]
    run = client.post("/runs", json={"workload": "first"}).json()["id"]
    plain = {"allocation": {"gpus": 8}, "metrics": {"iteration_seconds": 360.0}}
    for number, body in enumerate([_report(100.0, 260.5), plain, _report(50.0, 300.0)]):
        for _ in range(2):  # again, as after a lost answer
            answer = client.put(f"/runs/{run}/iterations/{number}", json=body)
            assert answer.status_code in (200, 201), answer.text
        assert "contingencies" in answer.json()
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    stored = client.get(f"/runs/{run}/iterations").json()["items"]
    assert [len(one["report"].get("segments", [])) for one in stored] == [2, 0, 2]

    (sample,) = client.get("/workloads/first/samples?reports=true").json()["items"]
    reports = sample["reports"]
    assert sample["iterations"] == 3
    assert [one["metrics"]["iteration_seconds"] for one in reports] == [360.5, 360.0, 350.0]
    assert [[part["seconds"] for part in one["segments"]] for one in reports] == [[100.0, 260.5], [], [50.0, 300.0]]

    exported = client.get("/workloads/first/samples", headers={"accept": "text/csv"}).text
    assert [line.split(",")[1:] for line in exported.splitlines()[1:]] == [
        ["0", "4", "100"],
        ["0", "8", "260.5"],
        ["1", "8", "360"],
        ["2", "4", "50"],
        ["2", "8", "300"],
    ]
    lines = json.dumps({"execution": "a", "reports": reports})
    document = json.dumps({"samples": [{"execution": "b", "reports": reports}]})
    for kind, content in (("text/csv", exported), ("application/x-ndjson", lines), ("application/json", document)):
        answer = client.post(f"/workloads/{names[1]}/samples", content=content, headers={"content-type": kind})
        assert answer.status_code == 201, answer.text
    copied = client.get("/workloads/second/samples?reports=true").json()["items"]
    assert [one["reports"] for one in copied] == [reports] * 3


def test_more_rows_than_segments_of_an_iteration_are_refused(client: TestClient) -> None:
    _registered(client, "rows")
    rows = [f"a,0,{4 + 4 * (n % 2)},10\n" for n in range(17)]
    body = "execution,iteration,allocation.gpus,metric.iteration_seconds\n" + "".join(rows)
    answer = client.post("/workloads/rows/samples", content=body, headers={"content-type": "text/csv"})
    assert answer.status_code == 422
    assert "must have at most 16 rows" in answer.text
    removesuffix = body.removesuffix(rows[-1])
    assert (
        client.post("/workloads/rows/samples", content=removesuffix, headers={"content-type": "text/csv"}).status_code
        == 201
    )
    (one,) = client.get("/workloads/rows/samples?reports=true").json()["items"]
    again = {"samples": [{"execution": "b", "reports": one["reports"]}]}
    assert client.post("/workloads/rows/samples", json=again).status_code == 201


def test_no_segments_are_as_an_empty_list_of_them(client: TestClient) -> None:
    _registered(client, "plain")
    run = client.post("/runs", json={"workload": "plain"}).json()["id"]
    body = {"allocation": {"gpus": 8}, "metrics": {"iteration_seconds": 360.0}}
    none: list[dict[str, Any]] = [{}, {"segments": []}, {"segments": None}]
    for segments in none:
        assert client.put(f"/runs/{run}/iterations/0", json=body | segments).status_code in (200, 201)


def test_decisions_that_were_stored_without_them_have_none() -> None:
    kinds: list[dict[str, Any]] = [{"kind": "iterative"}, {"kind": "iterative", "contingencies": [1]}]
    bodies = [json.loads(encode_decision({"allocation": {"gpus": 8}} | kind)) for kind in kinds]
    assert [one["contingencies"] for one in bodies] == [[], [1]]
    assert (bodies[0]["chances"], bodies[0]["run"], bodies[0]["shadow"]) == ({}, None, None)


def test_rows_of_one_iteration_must_be_at_different_allocations(client: TestClient) -> None:
    _registered(client, "rows", metrics=[DEADLINE, LOSS])
    head = "execution,iteration,allocation.gpus,metric.iteration_seconds,metric.loss\n"
    for rows, good in (
        ("a,0,4,10,2\na,0,8,20,2\na,1,8,30,1\n", True),
        ("b,0,4,10,2\nb,0,4,20,2\n", False),
        ("c,0,4,10,2\nc,0,8,20,3\n", False),
        ("d,0,4,10,2\nd,1,8,20,2\nd,0,4,20,2\n", False),
    ):
        answer = client.post("/workloads/rows/samples", content=head + rows, headers={"content-type": "text/csv"})
        assert answer.status_code == (201 if good else 422), answer.text
        assert ("must be" in answer.text) is not good


@pytest.mark.parametrize("rule", ["hold", "static_best"])
def test_runs_that_are_never_changed_have_none(client: TestClient, rule: str) -> None:
    _registered(client, "held")
    answers = [client.post("/runs", json={"workload": "held"} | policy) for policy in ({"policy": rule}, {})]
    assert [one.json()["decision"]["contingencies"] for one in answers] == [[], []]  # no model has been fitted
    spec = _spec()
    model = KIND_OF_SERVICE.model(_fitted(spec, 0.45).to_bytes())
    for chosen, some in ((rule, False), ("", True)):
        snapshot = Snapshot("held", "held", 1, spec, Layout(spec), model, 1, None, None, 1, rule=chosen)
        engine = KIND_OF_SERVICE.engine
        compiled = engine.compile(snapshot)
        begun = engine.begin(compiled, "run", IterationRunStart(workload="held"), NOW)
        assert bool(json.loads(begun.decision)["contingencies"]) is some
        allocation = json.loads(begun.decision)["allocation"]["gpus"]
        report = CheckedReport([int(allocation) - 1], [450.0], [])
        pendings = [Pending("run", 0, begun.state, report, {}, None) for _ in range(2)]  # in one batch
        answered = [json.loads(one.decision) for one in all_answered(engine.answer(compiled, pendings, NOW))]
        assert all(bool(one["contingencies"]) is some for one in answered)


def _expected(on: Compiled, gpus: float, number: int, slowed: Sequence[float]) -> float:
    logs = on.projector.log_mean(np.array([int(gpus) - 1]), on.projector.point(np.zeros((1, 0))), np.array([number]))
    return float(np.exp(logs[0, on.layout.seconds])) * slowed[number]


def _driven(on: Compiled, slowed: Sequence[float], *, reacts: bool) -> list[dict[str, Any]]:
    """Reports of a run to which decisions are applied, and with ``reacts`` contingencies, as a launcher does it: each
    iteration takes what the model expects times ``slowed``, and as long per unit of work at each allocation."""

    answered = ENGINE.begin(on, "run", IterationRunStart.model_validate({"workload": "long"}), NOW)
    driven, before = list[dict[str, Any]](), None
    for number in range(4):
        decision = msgspec.json.decode(answered.decision)
        gpus, left, clock = decision["allocation"]["gpus"], 1.0, 0.0
        segments = list[dict[str, Any]]()
        changes = [(one["after_seconds"], one["allocation"]["gpus"]) for one in decision["contingencies"] if reacts]
        while True:
            pause = 10.0 if before not in (None, gpus) else 0.0
            ends = clock + pause + left * _expected(on, gpus, number, slowed)
            begun, before = clock, gpus
            if not changes or changes[0][0] >= ends:
                segments.append({"allocation": {"gpus": gpus}, "seconds": ends - begun})
                break
            clock, gpus = changes.pop(0)
            segments.append({"allocation": {"gpus": before}, "seconds": clock - begun})
            left -= max(clock - begun - pause, 0.0) / _expected(on, before, number, slowed)
        report = {"allocation": {"gpus": gpus}, "metrics": {"iteration_seconds": ends}}
        driven.append(report | ({"segments": segments} if len(segments) > 1 else {}))
        read = ENGINE.read(on, answered.state, number, ENGINE.decode(msgspec.json.encode(driven[-1])))
        (answered,) = all_answered(ENGINE.answer(on, [Pending("run", number, answered.state, read, {}, None)], NOW))
    return driven


@pytest.mark.parametrize(
    ("slowed", "noise", "changed", "within"),
    [
        ((1.15, 1.15, 1.15, 1.6), 0.15, {}, 3),  # the last iteration
        ((1.0, 1.0, 2.2, 1.0), 0.35, {"metrics": [{**DEADLINE, "target": 1_500.0}], "weights": {"sla": 20.0}}, 2),
    ],
)
def test_the_replay_of_advice_applies_contingencies_as_a_launcher_does(
    slowed: Sequence[float], noise: float, changed: dict[str, Any], within: int
) -> None:
    """What recommendations would have cost a run that held the largest allocation is what one costs that follows them,
    within an iteration that takes nearly twice as long, too."""
    spec = _spec(**changed)
    on = compiled(spec, _fitted(spec, noise))
    followed = {reacts: _driven(on, slowed, reacts=reacts) for reacts in (False, True)}
    assert [number for number, one in enumerate(followed[True]) if "segments" in one] == [within]
    usage = {reacts: savings(on, {}, runs, None) for reacts, runs in followed.items()}
    current = [
        {"allocation": {"gpus": 16.0}, "metrics": {"iteration_seconds": _expected(on, 16.0, number, slowed)}}
        for number in range(4)
    ]
    result = savings(on, {}, current, NOW)
    assert result is not None
    assert result.advised is not None
    assert result.advised.cost is not None
    assert result.advised.seconds is not None
    costs = {reacts: one.cost for reacts, one in usage.items() if one is not None}
    assert costs[True] != pytest.approx(costs[False], rel=3e-3)
    assert result.advised.cost.value == pytest.approx(costs[True], rel=1e-3)
    took = sum(one["metrics"]["iteration_seconds"] for one in followed[True])
    assert result.advised.seconds.value == pytest.approx(took, rel=2e-3)
