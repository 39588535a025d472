"""What a run tells of its end, and targets that are changed while it goes on."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.database.engine import Database
from app.database.tables import AuditEntry, Run
from app.errors import Conflict
from app.kinds.contract.caps import Caps
from app.kinds.registry import KINDS
from app.retention.batches import _kinds, _plain
from app.runs.outcomes import Staleness
from app.runs.service import RunPatch, change
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model
from tests.app.runs.reporting import TENANT, compiled_workloads, register, report, reporter, start
from tests.app.runs.test_endpoints import REPORT, pointers

OUTPUT = "epoch 1/3\nTraceback (most recent call last):\n  <script>alert(1)</script>\nMemoryError: secret-of-mine"


def started(client: TestClient, workload: str, **parameters: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **parameters})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


# The last lines of a failed run's output.


@on_both
def test_the_output_of_a_failed_run_is_its_own_alone_until_it_is_deleted(
    client: TestClient, backend: Database, workload: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ran = {name: started(client, workload) for name in ("verbose", "silent")}
    end = {"state": "failed", "reason": "exit status 1: MemoryError"}
    ended = client.patch(f"/runs/{ran['verbose']}", json={**end, "output": OUTPUT}).json()
    assert (ended["output"], ended["outcome_reason"]) == (OUTPUT, "exit status 1: MemoryError")
    client.patch(f"/runs/{ran['silent']}", json=end)
    assert client.patch(f"/runs/{ran['verbose']}", json={**end, "output": "other"}).json()["output"] == OUTPUT
    assert [client.get(f"/runs/{one}").json()["output"] for one in ran.values()] == [OUTPUT, None]
    listed = client.get("/runs")
    assert (len(listed.json()["items"]), "output" in listed.json()["items"][0]) == (2, False)
    page, other = (client.get(f"/ui/runs/{one}").text for one in ran.values())
    assert ("Why it failed" in page, "&lt;script&gt;alert(1)" in page, "<script>alert(1)" in page) == (
        True,
        True,
        False,
    )
    assert "Last lines of its output" not in other
    for text in (
        listed.text,
        caplog.text,
        client.get("/ui/runs").text,
        client.get("/").text,
        client.get("/audit").text,
    ):
        assert "secret-of-mine" not in text
    assert client.delete(f"/runs/{ran['verbose']}").status_code == 204
    with backend.reading() as session:
        assert session.scalars(select(Run.output)).all() == [None]


def test_output_is_bounded_and_needs_an_end(client: TestClient, workload: str) -> None:
    run = started(client, workload)
    answer = client.patch(f"/runs/{run}", json={"state": "failed", "output": "x" * 16_385})
    assert (answer.status_code, pointers(answer)) == (422, ["/output"])
    answer = client.patch(f"/runs/{run}", json={"output": "x"})
    assert (answer.status_code, pointers(answer)) == (422, ["/state"])
    assert client.get(f"/runs/{run}").json()["state"] == "running"
    assert client.patch(f"/runs/{run}", json={"state": "failed", "output": "ü" * 16_384}).status_code == 200


def test_an_archive_has_no_output(client: TestClient, database: Database, workload: str) -> None:
    run = started(client, workload)
    client.patch(f"/runs/{run}", json={"state": "failed", "output": OUTPUT})
    with database.reading() as session:
        (row,) = _plain([session.get_one(Run, run)])
    assert ("output" in row, "output" in _kinds(Run)) == (False, False)


# Targets of a single run.


@on_both
def test_a_run_s_changed_targets_are_aimed_at_and_judge_it_alone(
    client: TestClient, backend: Database, workload: str
) -> None:
    publish_model(backend, workload)
    mine, other = (started(client, workload, features={"batch": 64}) for _ in range(2))

    def aims(run: str, number: int) -> str:
        return str(client.put(f"/runs/{run}/iterations/{number}", json=REPORT).json()["reason"]["text"])

    assert "; target 30 min" in aims(mine, 0)
    changed = client.patch(f"/runs/{mine}", json={"targets": {"iteration_seconds": 900}})
    assert (changed.status_code, changed.json()["start"]["targets"]) == (200, {"iteration_seconds": 900})
    assert (changed.json()["state"], changed.json()["iterations"]) == ("running", 1)
    assert "; target 15 min" in aims(mine, 1)
    assert "; target 30 min" in aims(other, 0)
    client.patch(f"/workloads/{workload}", json={"targets": {"iteration_seconds": 50}})
    judged = [client.patch(f"/runs/{one}", json={"state": "finished"}).json() for one in (mine, other)]
    assert [one["outcome"] for one in judged] == ["met", "met"]
    assert "the deadline of 15 min" in judged[0]["outcome_reason"]
    assert "the deadline of 50 s" in judged[1]["outcome_reason"]
    with backend.reading() as session:
        (entry,) = session.scalars(select(AuditEntry).where(AuditEntry.action == "run.change"))
    detail = {"targets": {"iteration_seconds": 900}, "before": {"targets": {}}}
    assert (entry.target, entry.detail) == (f"run {mine}", detail)
    late = client.patch(f"/runs/{mine}", json={"targets": {"iteration_seconds": 1}})
    assert (late.status_code, "has finished" in late.json()["detail"]) == (409, True)


def test_a_request_for_what_is_in_force_is_no_change(client: TestClient, backend: Database, workload: str) -> None:
    own, usual = started(client, workload, targets={"iteration_seconds": 900}), started(client, workload)
    same = [(own, {}), (own, {"iteration_seconds": 900}), (usual, {}), (usual, {"iteration_seconds": None})]
    for run, targets in same:
        assert client.patch(f"/runs/{run}", json={"targets": targets}).status_code == 200
    assert client.patch(f"/runs/{own}", json={"targets": {}, "caps": None}).status_code == 200
    with backend.reading() as session:
        changed = {one.id: one.changes for one in session.execute(select(Run.id, Run.changes))}
        assert [changed[run] for run in (own, usual)] == [0, 0]
        assert session.scalars(select(AuditEntry).where(AuditEntry.action == "run.change")).all() == []
    assert client.patch(f"/runs/{usual}", json={"targets": {"iteration_seconds": 900}}).status_code == 200
    client.patch(f"/runs/{own}", json={"state": "finished"})
    assert client.patch(f"/runs/{own}", json={"targets": {}}).status_code == 409
    with backend.reading() as session:
        (entry,) = session.scalars(select(AuditEntry).where(AuditEntry.action == "run.change"))
    assert entry.target == f"run {usual}"


def test_a_target_of_null_is_the_workload_s_again(client: TestClient, workload: str) -> None:
    run = started(client, workload, targets={"iteration_seconds": 900})
    assert client.patch(f"/runs/{run}", json={"targets": {}}).json()["start"]["targets"] == {"iteration_seconds": 900}
    assert client.patch(f"/runs/{run}", json={"targets": {"iteration_seconds": None}}).json()["start"]["targets"] == {}


@pytest.mark.parametrize(
    ("body", "pointer", "accepted"),
    [
        ({"targets": {"loss": 1.0}}, "/targets/loss", "known: iteration_seconds"),
        ({"targets": {"loss": None}}, "/targets/loss", "known: iteration_seconds"),
        ({"targets": {"iteration_seconds": 0}}, "/targets/iteration_seconds", "greater than 0"),
        ({"targets": {"iteration_seconds": -5}}, "/targets/iteration_seconds", "greater than 0"),
        ({"targets": {"iteration_seconds": "soon"}}, "/targets/iteration_seconds", "number"),
        ({"targets": [1]}, "/targets", "dictionary"),
        ({"targets": {"iteration_seconds": 900}, "state": "finished"}, "/state", "left out where targets"),
        ({"targets": {"iteration_seconds": 900}, "reason": "x"}, "/reason", "left out where targets"),
        ({}, "/state", "finished, failed or cancelled, or targets"),
    ],
)
def test_a_change_that_does_not_fit_names_the_field(
    client: TestClient, workload: str, body: dict[str, Any], pointer: str, accepted: str
) -> None:
    run = started(client, workload)
    answer = client.patch(f"/runs/{run}", json=body)
    assert (answer.status_code, pointers(answer)) == (422, [pointer])
    assert accepted in answer.json()["errors"][0]["message"]
    assert client.get(f"/runs/{run}").json()["start"] == {}


def test_runs_of_other_kinds_have_no_targets_of_their_own(client: TestClient, database: Database) -> None:
    for name, kind in KINDS.items():
        if "targets" in kind.start.model_fields:
            continue
        client.post("/workloads", json={**kind.example.spec, "name": name})
        run = started(client, name, **{key: one for key, one in kind.example.start.items() if key != "workload"})
        answer = client.patch(f"/runs/{run}", json={"targets": {"iteration_seconds": 5}})
        assert (answer.status_code, pointers(answer)) == (422, ["/targets"])
        assert name in answer.json()["detail"]


def test_a_report_that_another_process_decided_by_old_targets_is_decided_anew(database: Database) -> None:
    """Two processes have the run in their caches; a third one changes it between two reports."""
    register(database)
    run = start(database)
    takers, workloads = [reporter(database), reporter(database)], compiled_workloads(database)

    def compiled_of(workload: str) -> Any:
        return workloads.fetch(workload, TENANT)

    async def go() -> list[Any]:
        go = []
        for number, taker in enumerate((takers[0], takers[1], takers[0], takers[1], takers[0])):
            if number == 3:
                patch = RunPatch(targets={"iteration_seconds": 777.0})
                change(database, TENANT, run, patch, compiled_of, Staleness(10, 60))
            status, decision = await taker.report(TENANT, run, number, report(30.0 + number))
            assert status == 201
            go.append(json.loads(decision)["reason"]["text"])
        return go

    texts = asyncio.run(go())
    assert ["12 min 57 s" in text for text in texts] == [False, False, False, True, True], texts


def test_every_process_that_has_a_run_takes_up_its_changed_caps(database: Database) -> None:
    """Two processes have both runs in their caches; a third one changes the caps of one."""
    register(database)
    run, other = start(database), start(database)
    takers, workloads = [reporter(database), reporter(database)], compiled_workloads(database)

    def compiled_of(workload: str) -> Any:
        return workloads.fetch(workload, TENANT)

    changes: dict[int, RunPatch] = {
        2: RunPatch(caps=Caps(seconds=1.0)),
        3: RunPatch(caps=Caps(seconds=1e9), targets={"iteration_seconds": 777.0}),
        4: RunPatch(caps=None),
    }

    async def go(which: str) -> list[tuple[list[float], bool]]:
        go = []
        for number in range(6):
            if which == run and number in changes:
                change(database, TENANT, run, changes[number], compiled_of, Staleness(10, 60))
            status, decision = await takers[number % 2].report(TENANT, which, number, report(30.0 + number))
            assert status == 201
            decided = json.loads(decision)
            go.append(([one["limit"] for one in decided.get("caps", [])], decided.get("stop", False)))
        return go

    async def both() -> list[Any]:
        return list(await asyncio.gather(go(run), go(other)))

    changed, selection = asyncio.run(both())
    assert changed == [([], False), ([], False), ([1.0], True), ([1e9], False), ([], False), ([], False)]
    assert selection == [([], False)] * 6


def test_of_two_changes_at_the_same_time_one_is_refused(database: Database) -> None:
    register(database)
    run = start(database)
    compiled = compiled_workloads(database)
    requests: list[float] = []

    def between(one: str) -> Any:
        if len(requests) < 1:
            requests.append(1.0)
            patch = RunPatch(targets={"iteration_seconds": 500.0})
            change(database, TENANT, run, patch, between, Staleness(10, 60))
        return compiled.fetch(one, TENANT)

    with pytest.raises(Conflict, match="was changed by another request"):
        change(database, TENANT, run, RunPatch(targets={"iteration_seconds": 600.0}), between, Staleness(10, 60))
    with database.reading() as session:
        assert session.get_one(Run, run).start["targets"] == {"iteration_seconds": 500.0}
