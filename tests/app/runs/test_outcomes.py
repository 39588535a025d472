"""The outcome of a run, as the API, lists and metrics tell it: on both databases, two workloads, two tenants."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.base import utc_now
from app.database.engine import Database
from app.kinds.iterative import policies
from app.kinds.registry import KINDS
from app.main import create_app
from app.runs.outcomes import Staleness, stale_reason
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model
from tests.app.keys.conftest import make_key
from tests.app.runs.test_queue import POOL, put, task

SECONDS = 20.0
OTHER = "vgg"
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": SECONDS}, "features": {"batch": 128}}


def started(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def reported(client: TestClient, run: str, first: int, count: int, seconds: float = SECONDS) -> None:
    body = {**REPORT, "metrics": {"iteration_seconds": seconds}}
    for number in range(first, first + count):
        assert client.put(f"/runs/{run}/iterations/{number}", json=body).status_code == 201


def ended(client: TestClient, run: str, state: str = "finished", **body: Any) -> dict[str, Any]:
    answer = client.patch(f"/runs/{run}", json={"state": state, **body})
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def outcome(client: TestClient, run: str) -> tuple[str, str | None]:
    body = client.get(f"/runs/{run}").json()
    return body["outcome"], body["outcome_reason"]


def listed(client: TestClient, **query: str) -> set[str]:
    return {one["id"] for one in client.get("/runs", params=query).json()["items"]}


def later(client: TestClient, seconds: float, iterations: float = 10, floor: float = 300) -> None:
    """Let the application read runs at a later time."""
    at = utc_now() + timedelta(seconds=seconds)
    client.app.state.staleness = Staleness(iterations, floor, lambda: at)  # type: ignore[attr-defined]


@pytest.fixture
def other(client: TestClient, spec: dict[str, Any]) -> str:
    """A second workload, of 3 iterations."""
    assert client.post("/workloads", json={**spec, "name": OTHER, "iterations": 3}).status_code == 201
    return OTHER


@on_both
def test_a_finished_run_has_met_or_missed_its_deadline_and_says_by_how_much(client: TestClient, other: str) -> None:
    met, missed = (started(client, other, targets={"iteration_seconds": goal}) for goal in (61, 59))
    for run in (met, missed):
        reported(client, run, 0, 3)
    assert ended(client, met)["outcome"] == "met"
    assert outcome(client, met) == ("met", "finished in 1 min, 1 s before the deadline of 1 min 01 s")
    result = ended(client, missed, reason="it was slow")
    assert (result["state"], result["outcome"]) == ("finished", "missed")
    assert result["outcome_reason"] == "finished in 1 min, 1 s after the deadline of 59 s; it was slow"
    assert (listed(client, outcome="met"), listed(client, outcome="missed")) == ({met}, {missed})


@on_both
def test_a_failed_or_cancelled_run_has_not_met_its_target_and_keeps_the_first_reason(
    client: TestClient, other: str
) -> None:
    failed, cancelled, silent = (started(client, other, targets={"iteration_seconds": 100}) for _ in range(3))
    reported(client, failed, 0, 3)
    assert ended(client, failed, "failed", reason="exit status 1")["outcome"] == "failed"
    assert ended(client, failed, "failed", reason="another")["outcome_reason"] == "exit status 1"
    assert ended(client, cancelled, "cancelled", reason="Ctrl-C")["outcome"] == "cancelled"
    assert outcome(client, cancelled) == ("cancelled", "Ctrl-C")
    assert ended(client, silent, "failed")["outcome_reason"] is None
    refused = client.patch(f"/runs/{cancelled}", json={"state": "finished"})
    assert refused.status_code == 409
    assert "was cancelled already" in refused.json()["detail"]
    refused = client.put(f"/runs/{cancelled}/iterations/0", json=REPORT)
    assert (refused.status_code, "was cancelled" in refused.json()["detail"]) == (409, True)
    assert client.patch(f"/runs/{silent}", json={"state": "failed", "reason": "x" * 501}).status_code == 422
    assert listed(client, outcome="failed") == {failed, silent}
    assert listed(client, outcome="cancelled", state="cancelled") == {cancelled}


def test_what_any_ended_run_has_reported_becomes_a_sample(client: TestClient, workload: str, other: str) -> None:
    runs = [started(client, workload) for _ in range(3)]
    for run, state in zip(runs, ("failed", "cancelled", "finished"), strict=True):
        reported(client, run, 0, 2)
        ended(client, run, state)
        ended(client, run, state)
    ended(client, started(client, other), "cancelled")  # it has reported nothing
    samples = {name: client.get(f"/workloads/{name}/samples").json()["items"] for name in (workload, other)}
    assert {one["execution"] for one in samples[workload]} == set(runs)
    assert samples[other] == []


@on_both
def test_a_run_that_stops_early_is_judged_by_what_it_took(client: TestClient, workload: str) -> None:
    early, late = (started(client, workload, targets={"iteration_seconds": goal}) for goal in (100, 70))
    for run in (early, late):
        reported(client, run, 0, 4)
        ended(client, run)
    words = "finished in 1 min 20 s, 20 s before the deadline of 1 min 40 s; after 4 of 90 iterations"
    assert outcome(client, early) == ("met", words)
    assert outcome(client, late)[0] == "missed"


@on_both
def test_a_run_without_target_or_report_has_completed(client: TestClient, spec: dict[str, Any], workload: str) -> None:
    metrics = [{"name": "iteration_seconds", "unit": "s"}]
    client.post("/workloads", json={**spec, "name": "free", "metrics": metrics, "iterations": 2})
    free, empty = started(client, "free"), started(client, workload)
    reported(client, free, 0, 2)
    assert ended(client, free)["outcome"] == "completed"
    assert outcome(client, free)[1] == "no target is set"
    ended(client, empty)
    assert outcome(client, empty) == ("completed", "no iteration was reported")
    assert listed(client, outcome="completed") == {free, empty}


@on_both
def test_a_live_run_is_at_risk_as_its_reports_say(client: TestClient, workload: str, backend: Database) -> None:
    slow, quick = started(client, workload), started(client, workload)
    reported(client, slow, 0, 3, 40)
    reported(client, quick, 0, 3, 10)
    assert outcome(client, quick) == ("on_track", None)
    risk, reason = outcome(client, slow)
    assert (risk, (reason or "").partition(";")[2]) == ("at_risk", " the deadline of 30 min")
    assert (listed(client, outcome="at_risk"), listed(client, outcome="on_track")) == ({slow}, {quick})
    reported(client, slow, 3, 12, 1)  # it catches up
    assert outcome(client, slow) == ("on_track", None)
    another = TestClient(create_app(Settings(), backend))  # a process that knows nothing of it yet
    reported(another, slow, 15, 1, 1_700)
    assert outcome(client, slow)[0] == "at_risk"
    reported(another, slow, 16, 1, 1_000)
    assert outcome(client, slow)[1] == "the deadline of 30 min has passed: 47 min 12 s so far"
    reported(another, quick, 3, 1, 10)
    assert outcome(client, quick) == ("on_track", None)


@on_both
def test_a_model_tells_the_risk_and_the_length_of_an_iteration_before_the_first_report(
    client: TestClient, workload: str, backend: Database, other: str
) -> None:
    publish_model(backend, workload)  # 2 s an iteration on one GPU, which is the quickest
    calm, tight = (started(client, workload, targets={"iteration_seconds": goal}) for goal in (1_000, 90))
    sure = started(client, workload, targets={"iteration_seconds": 181}, probabilities={"iteration_seconds": 0.99})
    unknown = started(client, other)
    assert [outcome(client, run)[0] for run in (calm, tight, sure)] == ["on_track", "at_risk", "at_risk"]
    assert (outcome(client, tight)[1] or "").endswith(" % likely to meet the deadline of 1 min 30 s")
    assert (outcome(client, sure)[1] or "").endswith("likely to meet the deadline of 3 min 01 s, 99 % required")
    later(client, 310)
    assert listed(client, outcome="stale") == {calm, tight, sure}
    reason = outcome(client, calm)[1] or ""
    assert (reason[:19], reason.partition("; ")[2]) == ("no report for 5 min", "expected every 2 s")
    assert outcome(client, unknown)[0] == "on_track"


@on_both
def test_a_silent_run_is_stale_until_it_reports_again(client: TestClient, workload: str, other: str) -> None:
    silent, ending, fresh = started(client, workload), started(client, workload), started(client, other)
    for run in (silent, ending):
        reported(client, run, 0, 2)
    later(client, 290)
    assert listed(client, outcome="stale") == set()
    later(client, 2_400)  # fresh has not reported: an iteration of it is expected to take the floor
    assert listed(client, outcome="stale") == {silent, ending}
    assert listed(client, outcome="stale", workload=other) == set()
    result, reason = outcome(client, silent)
    assert (result, (reason or "")[:20]) == ("stale", "no report for 40 min")
    assert client.get(f"/runs/{silent}").json()["state"] == "running"
    assert not {silent, ending} & (listed(client, outcome="on_track") | listed(client, outcome="at_risk"))
    ended(client, ending, "failed")
    assert outcome(client, ending) == ("failed", None)
    assert (listed(client, outcome="stale"), listed(client, state="running")) == ({silent}, {silent, fresh})
    later(client, 3_100)
    assert listed(client, outcome="stale") == {silent, fresh}
    assert (outcome(client, fresh)[1] or "").endswith("; the duration of its iterations is unknown")
    later(client, 2_400, iterations=1e9)
    assert listed(client, outcome="stale") == set()
    later(client, 0)
    reported(client, silent, 2, 1)
    assert outcome(client, silent)[0] != "stale"


@on_both
def test_metrics_count_the_runs_of_all_tenants_by_outcome(client: TestClient, workload: str) -> None:
    runs = [started(client, workload) for _ in range(4)]
    reported(client, runs[0], 0, 1)
    ended(client, runs[1], "failed")
    ended(client, runs[2], "cancelled")

    def counted() -> dict[str, float]:
        lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith("steward_runs{")]
        return {line.split('"')[1]: float(line.split()[-1]) for line in lines}

    result = counted()
    assert len(result) == 9
    assert (result["failed"], result["cancelled"], result["stale"]) == (1, 1, 0)
    assert result["on_track"] + result["at_risk"] == 2
    later(client, 10_000)
    assert (counted()["stale"], counted()["on_track"] + counted()["at_risk"]) == (2, 0)


def test_another_tenants_runs_are_neither_listed_nor_ended(
    client: TestClient, spec: dict[str, Any], backend: Database
) -> None:
    tenants = [make_key(backend, tenant, ("admin",)) for tenant in ("default", "blue")]
    runs = []
    for headers in tenants:  # both have a workload of that name
        assert client.post("/workloads", json=spec, headers=headers).status_code == 201
        runs.append(client.post("/runs", json={"workload": spec["name"]}, headers=headers).json()["id"])
    assert client.patch(f"/runs/{runs[0]}", json={"state": "failed"}, headers=tenants[1]).status_code == 404
    for run, headers in zip(runs, tenants, strict=True):
        assert client.patch(f"/runs/{run}", json={"state": "cancelled"}, headers=headers).status_code == 200
        (result,) = client.get("/runs", params={"outcome": "cancelled"}, headers=headers).json()["items"]
        assert result["id"] == run


def of_kind(client: TestClient, kind: str) -> str:
    """A run of a kind's example; its other runs are another's."""
    spec = KINDS[kind].example.spec
    client.post("/workloads", json=spec)
    started(client, spec["name"])
    return started(client, spec["name"])


def test_a_queue_is_judged_by_the_deadlines_of_its_tasks(client: TestClient) -> None:
    client.post("/workloads", json=POOL)
    late, in_time, free, broken = (started(client, "pool") for _ in range(4))
    for run, deadline in ((late, 90.0), (in_time, 500.0), (free, None), (broken, 500.0)):
        queued = [task("a", deadline=deadline), task("b", deadline=deadline)]
        put(client, run, 0, now=0.0, queued=queued)
    put(client, late, 1, now=100.0, delta=True)
    assert outcome(client, late) == (
        "at_risk",
        "a is past its deadline, 1 min 30 s of the run (now 1 min 40 s of the run), and 1 more",
    )

    def ran(name: str, end: float) -> dict[str, Any]:
        return {"id": name, "node": "pool-0", "start": 1.0, "end": end}

    for run in (late, in_time, free):
        put(client, run, 2 if run == late else 1, now=120.0, delta=True, finished=[ran("a", 80.0)])
    put(client, in_time, 2, now=130.0, delta=True, finished=[ran("b", 130.0)])
    assert [outcome(client, run)[0] for run in (late, in_time, free)] == ["at_risk", "on_track", "on_track"]
    put(client, broken, 1, now=120.0, delta=True, finished=[ran("a", 80.0), ran("b", 80.0) | {"state": "failed"}])
    for run in (late, in_time, free, broken):
        ended(client, run)
    assert outcome(client, broken) == outcome(client, late)
    assert outcome(client, late) == ("missed", "1 of 2 tasks with a deadline ended in time")
    assert outcome(client, in_time) == ("met", "2 of 2 tasks with a deadline ended in time")
    assert outcome(client, free) == ("completed", "no task had a deadline")


def test_a_cluster_is_at_risk_while_a_job_asks_for_more_than_is_there(client: TestClient) -> None:
    run = of_kind(client, "cluster")
    put(client, run, 0, at=10, submitted=[{"job": "small", "gpus": 4}])
    assert outcome(client, run) == ("on_track", None)
    lost = [{"node": "a100-1", "gpus": 0}]
    put(client, run, 1, at=20, nodes=lost, submitted=[{"job": "large", "gpus": 8, "minimum": 8, "queue": "urgent"}])
    assert outcome(client, run) == ("at_risk", "large waits for 8 GPUs of 4 that are there")
    put(client, run, 2, at=30, nodes=[{"node": "a100-1", "gpus": 4}])
    assert outcome(client, run) == ("on_track", None)
    assert ended(client, run)["outcome"] == "completed"


def test_a_cluster_is_judged_by_the_targets_of_its_members(client: TestClient, spec: dict[str, Any]) -> None:
    client.post("/workloads", json=spec)  # 1,800 s for each of its runs
    lab = {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 2, "gpus": 4}], "members": ["resnet18"]}
    assert client.post("/workloads", json=lab).status_code == 201
    in_time, late = started(client, "lab"), started(client, "lab")
    submitted = [{"job": name, "gpus": 1, "application": "resnet18"} for name in ("a", "b")]
    for run, end in ((in_time, 1_790), (late, 1_810)):
        put(client, run, 0, at=0, submitted=[*submitted, {"job": "free", "gpus": 1}])
        put(client, run, 1, at=1_000, ended=[{"job": "a"}])
        put(client, run, 2, at=end, ended=[{"job": "b"}, {"job": "free"}])
        ended(client, run)
    assert outcome(client, in_time) == ("met", "2 of 2 jobs with a deadline ended in time")
    assert outcome(client, late) == ("missed", "1 of 2 jobs with a deadline ended in time")


def test_serving_is_judged_by_the_quality_of_recent_answers(client: TestClient) -> None:
    run, unused = of_kind(client, "inference"), of_kind(client, "inference")
    for number, report in enumerate(KINDS["inference"].example.reports):
        decision = put(client, run, number, **report)
    assert decision["quality"]["shop"] < 0.5 <= decision["quality"]["archive"]
    words = f"mean quality of recent answers below 0.5: shop {decision['quality']['shop']:.2f}"
    assert outcome(client, run) == ("at_risk", words)
    ended(client, run)
    assert outcome(client, run) == ("missed", words)
    assert ended(client, unused)["outcome"] == "completed"


@on_both
def test_rounding_does_not_make_a_run_miss_its_deadline(client: TestClient, other: str) -> None:
    met, missed = (started(client, other, targets={"iteration_seconds": goal}) for goal in (0.3, 0.299))
    for run in (met, missed):
        reported(client, run, 0, 3, 0.1)  # 0.30000000000000004 s
    assert outcome(client, met) == ("on_track", None)
    texts = [client.get(f"/runs/{run}").json()["decision"]["reason"]["text"] for run in (met, missed)]
    assert [text.partition("took 300 ms, ")[2].partition(";")[0] for text in texts] == [
        "target 300 ms (met)",
        "target 299 ms (missed)",
    ]
    assert [ended(client, run)["outcome"] for run in (met, missed)] == ["met", "missed"]
    assert outcome(client, missed)[1] == "finished in 300 ms, 1 ms after the deadline of 299 ms"


def test_a_run_stays_at_risk_when_nothing_can_decide(
    client: TestClient, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = started(client, workload), started(client, workload)
    reported(client, slow, 0, 3, 40)
    reported(client, quick, 0, 3, 10)
    before = outcome(client, slow)
    assert before[0] == "at_risk"

    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(policies, "decide", broken)
    for run in (slow, quick):
        reported(client, run, 3, 1)
        assert client.get(f"/runs/{run}").json()["decision"]["policy"] == "hold"
    assert (outcome(client, slow), outcome(client, quick)) == (before, ("on_track", None))


def test_a_run_ends_when_its_workload_can_not_be_compiled(
    client: TestClient, workload: str, backend: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/workloads", json=POOL)
    run, queue = started(client, workload), started(client, "pool")
    reported(client, run, 0, 2)
    put(client, queue, 0, now=0.0, queued=[task("a", deadline=90.0)])

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(KINDS["iterative"].engine, "compile", broken)
    fresh = TestClient(create_app(Settings(), backend))  # a process that has compiled nothing yet
    result = ended(fresh, run)
    assert (result["state"], result["outcome"]) == ("finished", "completed")
    assert result["outcome_reason"] == "the workload can't be read: ZeroDivisionError: by nothing"
    assert ended(fresh, queue)["outcome_reason"] == "no task had a deadline"


def test_a_task_that_a_whole_report_leaves_out_is_not_late(client: TestClient) -> None:
    client.post("/workloads", json=POOL)
    withdrawn, waiting = started(client, "pool"), started(client, "pool")
    for run, left in ((withdrawn, []), (waiting, [task("t0", deadline=100.0)])):
        put(client, run, 0, now=0.0, queued=[task("t0", deadline=100.0)], nodes=[{"name": "pool-0", "state": "failed"}])
        put(client, run, 1, now=50.0, queued=left)
        put(client, run, 2, now=200.0, queued=left)
        ended(client, run)
    assert outcome(client, withdrawn) == ("completed", "no task had a deadline")
    assert outcome(client, waiting) == ("missed", "0 of 1 task with a deadline ended in time")


def test_a_task_may_be_late_by_its_estimate_on_the_fastest_node(client: TestClient) -> None:
    slow = {**POOL, "name": "slow"}
    fast = {**POOL, "name": "fast", "nodes": [{**POOL["nodes"][0], "speed": 4.0}]}
    results = []
    for spec in (slow, fast):
        client.post("/workloads", json=spec)
        run = started(client, spec["name"])
        put(client, run, 0, now=0.0, queued=[task("first", 8), task("a", 8, deadline=90.0)])
        results.append(outcome(client, run))
    late = "a may miss its deadline, 1 min 30 s of the run (now 0 s of the run), by its estimate"
    assert results == [("at_risk", late), ("on_track", None)]


@pytest.fixture
def lab(client: TestClient, spec: dict[str, Any], workload: str, backend: Database) -> str:
    """A cluster of 8 GPUs with two members, whose runs take 180 s at best: one allows 1,800 s, `tight` 100."""
    metrics = [{**spec["metrics"][0], "target": 100}, *spec["metrics"][1:]]
    assert client.post("/workloads", json={**spec, "name": "tight", "metrics": metrics}).status_code == 201
    for name in (workload, "tight"):
        publish_model(backend, name)
    nodes = [{"name": "n", "count": 2, "gpus": 4}]
    values = {"name": "lab", "kind": "cluster", "nodes": nodes, "members": [workload, "tight"]}
    assert client.post("/workloads", json=values).status_code == 201
    return "lab"


def test_a_job_that_will_be_late_is_at_risk_for_as_long_as_it_will(client: TestClient, workload: str, lab: str) -> None:
    late, calm = started(client, lab), started(client, lab)
    for run, application in ((late, "tight"), (calm, workload)):
        jobs = {"a": application, "b": workload}
        submitted = [{"job": name, "gpus": 1, "application": one} for name, one in jobs.items()]
        put(client, run, 0, at=0, submitted=submitted)
    for number in (1, 2):
        assert put(client, late, number, at=10 * number)["changes"] == []
        assert outcome(client, late) == ("at_risk", "a will end after its deadline")
        put(client, calm, number, at=10 * number)
        assert outcome(client, calm) == ("on_track", None)
    put(client, late, 3, at=90, ended=[{"job": "a"}])
    assert outcome(client, late) == ("on_track", None)


def test_a_job_that_can_start_on_fewer_gpus_does_not_wait_for_what_it_asks_for(client: TestClient, lab: str) -> None:
    run, stuck = started(client, lab), started(client, lab)
    jobs = [{"job": f"j{number}", "gpus": 8} for number in range(5)]
    for one, more in ((run, []), (stuck, [{"job": "huge", "gpus": 8, "minimum": 8}])):
        decision = put(client, one, 0, at=0, nodes=[{"node": "n-1", "gpus": 0}], submitted=[*jobs, *more])
        assert decision["waiting"] > 0
    assert outcome(client, run) == ("on_track", None)
    assert outcome(client, stuck) == ("at_risk", "huge waits for 8 GPUs of 4 that are there")


@on_both
def test_a_run_with_nothing_to_report_is_not_stale(client: TestClient, backend: Database) -> None:
    idle, busy = of_kind(client, "cluster"), of_kind(client, "cluster")
    new, served = of_kind(client, "inference"), of_kind(client, "inference")
    for run in (idle, busy):
        put(client, run, 0, at=10, submitted=[{"job": "a", "gpus": 4}])
    put(client, served, 0, **KINDS["inference"].example.reports[0])
    runs = (idle, busy, new, served)

    def expected() -> set[str]:
        return {run for run in runs if client.get(f"/runs/{run}").json()["decision"]["wake_at"] is not None}

    def stale() -> set[str]:
        return listed(client, outcome="stale") & set(runs)

    later(client, 1e6)
    assert stale() == expected() >= {idle, busy}
    another = TestClient(create_app(Settings(), backend))  # a process that knows nothing of it yet
    assert put(another, idle, 1, at=20, ended=[{"job": "a"}])["wake_at"] is None
    assert stale() == expected()
    assert (busy in stale(), idle in stale()) == (True, False)
    put(another, idle, 2, at=30, submitted=[{"job": "b", "gpus": 4}])
    assert outcome(client, idle)[0] == "stale"


def test_reports_that_came_at_once_tell_nothing_of_when_the_next_is_due() -> None:
    assert stale_reason(300.0, 0.0044) == "no report for 5 min"
    assert stale_reason(300.0, 2.0) == "no report for 5 min; expected every 2 s"
