"""What is older than it is kept goes, after it is in the archive; what something live rests on stays."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pyarrow import parquet
from sqlalchemy import select

from app.database import leases
from app.database.base import new_id
from app.database.engine import Database
from app.database.tables import Adaptation, Agent, AuditEntry, DomainModel, Evaluation, Job, JobEvent, Run, Workload
from app.retention import batches as batching
from app.retention.batches import Batch
from app.retention.service import Archive, HeldElsewhere, NoArchive, Pruning, plan
from app.runs.logs import logged_runs
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.domain_models.published import TENANT, publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.retention.ageing import NOW, OLD, YOUNG, add_job, add_run, age, clock, count, iterations
from workers.archive import ParquetArchive


class Crash(Exception):
    """The process ends here."""


class CrashingArchive:
    """Ends the process once some batches are on disk."""

    def __init__(self, archive: Archive, batches: int) -> None:
        self._archive, self._left = archive, batches

    def keep(self, workload: Workload, batch: Batch) -> None:
        self._archive.keep(workload, batch)
        self._left -= 1
        if self._left < 0:
            raise Crash


@pytest.fixture
def workload_id(client: TestClient, workload: str, backend: Database) -> str:
    with backend.reading() as session:
        return workloads.require(session, TENANT, workload).id


@pytest.fixture
def archive(tmp_path: Path) -> ParquetArchive:
    return ParquetArchive(tmp_path / "archive")


@pytest.fixture
def thirty(settings: Settings) -> Settings:
    """Iterations and events are kept for 30 days, nothing else goes."""
    return settings.model_copy(update={"retention_iterations_days": 30.0, "retention_events_days": 30.0})


def pruning(database: Database, settings: Settings, archive: Archive, owner: str = "worker") -> Pruning:
    return Pruning(database, settings, archive, owner, clock)


def archived(folder: Path, noun: str) -> list[dict[str, Any]]:
    """All rows of a noun, as any reader of Parquet finds them."""
    results: list[dict[str, Any]] = []
    for file in sorted((folder / "archive" / noun).rglob("*.parquet")):
        results += parquet.read_table(file).to_pylist()
    return results


@on_both
def test_old_iterations_of_ended_runs_go_and_are_in_the_archive(
    client: TestClient,
    workload_id: str,
    backend: Database,
    thirty: Settings,
    archive: ParquetArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "ROWS", 4)
    for name, length in (("long", 11), ("one", 1), ("short", 3), ("none", 0)):
        add_run(backend, workload_id, name, length)
    add_run(backend, workload_id, "young", 3, finished_at=YOUNG)
    add_run(backend, workload_id, "live", 3, state="running", finished_at=None)
    planned = {(one.workload, one.noun): one.rows for one in plan(backend, thirty, clock)}
    assert planned == {("resnet18", "iterations"): 12}
    assert pruning(backend, thirty, archive).run() == {("resnet18", "iterations"): 12}
    assert [iterations(backend, run) for run in ("long", "one", "short")] == [[10], [0], [2]]
    assert [len(iterations(backend, run)) for run in ("young", "live")] == [3, 3]
    result = archived(tmp_path, "iterations")
    expected = [*(("long", i) for i in range(10)), ("short", 0), ("short", 1)]
    assert sorted((row["run_id"], row["iteration"]) for row in result) == expected
    assert {row["report"] for row in result if row["iteration"] == 1} == {'{"metrics":{"iteration_seconds":1}}'}
    assert plan(backend, thirty, clock) == []
    assert pruning(backend, thirty, archive).run() == {}
    answer = client.get("/decision?run=long&iteration=3")
    assert (answer.status_code, "was deleted; the oldest kept is 10" in answer.json()["detail"]) == (404, True)
    with backend.reading() as session:
        texts = {len(run.reports) for run in logged_runs(session, workload_id)}
    assert texts == {1, 3}  # those whose beginning is gone are no logs any more


@on_both
def test_a_crash_between_archive_and_deletion_loses_nothing_and_is_done_again(
    client: TestClient,
    workload_id: str,
    backend: Database,
    thirty: Settings,
    archive: ParquetArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "ROWS", 4)
    add_run(backend, workload_id, "run", 11)
    with pytest.raises(Crash):
        pruning(backend, thirty, CrashingArchive(archive, 1)).run()
    selection = iterations(backend, "run")
    assert selection == list(range(4, 11))  # the first batch went, the second is archived and still here
    assert {row["iteration"] for row in archived(tmp_path, "iterations")} | set(selection) == set(range(11))
    assert pruning(backend, thirty, archive).run() == {("resnet18", "iterations"): 6}
    assert sorted(row["iteration"] for row in archived(tmp_path, "iterations")) == list(range(10))  # none twice
    assert list((tmp_path / "archive").rglob(".*")) == []


@on_both
def test_an_archive_that_can_not_be_written_keeps_everything(
    client: TestClient, workload_id: str, backend: Database, thirty: Settings, tmp_path: Path
) -> None:
    add_run(backend, workload_id, "run", 5)
    (tmp_path / "archive").write_text("no folder")
    with pytest.raises(OSError, match="archive"):
        pruning(backend, thirty, ParquetArchive(tmp_path / "archive")).run()
    assert iterations(backend, "run") == list(range(5))


@on_both
def test_only_one_process_deletes_at_a_time(
    client: TestClient, workload_id: str, backend: Database, thirty: Settings, archive: ParquetArchive
) -> None:
    add_run(backend, workload_id, "run", 5)

    class Overtaken:
        """Meanwhile the lease of the first has expired, and another has it."""

        def keep(self, workload: Workload, batch: Batch) -> None:
            with pytest.raises(HeldElsewhere):
                pruning(backend, thirty, archive, "second").run()
            with backend.session() as session:
                leases.release(session, "prune", "first")
                assert leases.hold(session, "prune", "second", 60.0, clock)

    with pytest.raises(HeldElsewhere):
        pruning(backend, thirty, Overtaken(), "first").run()
    assert iterations(backend, "run") == list(range(5))
    with pytest.raises(HeldElsewhere):
        pruning(backend, thirty, archive, "first").run()
    assert pruning(backend, thirty, archive, "second").run() == {("resnet18", "iterations"): 4}
    assert pruning(backend, thirty, archive, "first").run() == {}


@on_both
def test_what_live_things_rest_on_stays_however_old(
    client: TestClient, workload: str, workload_id: str, backend: Database, settings: Settings, archive: ParquetArchive
) -> None:
    body = {"runs_days": 30, "jobs_days": 30, "artifacts_days": 30, "evaluations_days": 30}
    answer = client.put(f"/workloads/{workload}/retention", json=body)
    assert answer.status_code == 200, answer.text
    for promote in (False, True, False, True, False):
        publish_model(backend, workload)
        publish_agent(backend, workload, promote=promote)
    publish_evaluation(backend, workload)
    age(backend, Agent, DomainModel, Evaluation)
    add_job(backend, workload_id, "waiting", 2, "waiting")
    for name in ("awaited", "ended"):
        add_job(backend, workload_id, name, 3)
    for name in ("judging", "over"):
        add_run(backend, workload_id, name, 3)
    add_run(backend, workload_id, "shadowed", 3, state="running", finished_at=None, shadow_version=1)
    with backend.session() as session:
        going_on = {"going_on": True, "state": "fitting", "request": {}, "notice": {}, "steps": [], "created_at": NOW}
        going_on |= {"run_id": "judging", "marks": {}, "job_id": "awaited", "tenant": "default"}
        session.add(Adaptation(workload_id=workload_id, **going_on))
    gone = pruning(backend, settings, archive).run()
    assert {noun: rows for (_, noun), rows in gone.items() if rows} == {
        "iterations": 3,
        "runs": 1,
        "jobs": 1,
        "evaluations": 1,
        "agents": 1,
        "models": 3,
    }
    versions = [one["version"] for one in client.get(f"/workloads/{workload}/agents").json()["items"]]
    assert versions == [5, 4, 2, 1]  # the newest, the champion, what it would be rolled back to, a shadow
    assert [one["version"] for one in client.get(f"/workloads/{workload}/models").json()["items"]] == [5, 1]
    with backend.reading() as session:
        assert sorted(one.id for one in session.query(Run)) == ["judging", "shadowed"]
        assert sorted(one.id for one in session.query(Job)) == ["awaited", "waiting"]
    assert publish_agent(backend, workload) == 6


@on_both
def test_events_go_but_for_the_last_and_jobs_take_theirs_along(
    client: TestClient,
    workload: str,
    workload_id: str,
    backend: Database,
    thirty: Settings,
    archive: ParquetArchive,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "ROWS", 20)
    add_job(backend, workload_id, "told", 45)
    add_job(backend, workload_id, "brief", 1)
    add_job(backend, workload_id, "running", 5, "running")
    for name in ("told", "brief", "running"):
        audited(backend, "job.create", f"job {name}")
    audited(backend, "job.cancel", "job brief")
    audited(backend, "key.create", "key told")
    assert [one.rows for one in plan(backend, thirty, clock)] == [44]
    assert pruning(backend, thirty, archive).run() == {("resnet18", "events"): 44}
    assert count(backend, JobEvent) == 7
    assert sorted(row["sequence"] for row in archived(tmp_path, "events")) == list(range(1, 45))
    client.put(f"/workloads/{workload}/retention", json={"jobs_days": 1})
    pruning(backend, thirty, archive).run()
    assert (count(backend, Job), count(backend, JobEvent)) == (1, 5)
    assert sorted(row["id"] for row in archived(tmp_path, "jobs")) == ["brief", "told"]
    assert targets(backend) == ["job running", "key told"]
    assert len(archived(tmp_path, "events")) == 46


@on_both
def test_runs_take_their_audit_entries_along_and_old_ones_without_a_run_go(
    client: TestClient,
    workload: str,
    workload_id: str,
    backend: Database,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batching, "ROWS", 1)
    add_run(backend, workload_id, "old", 2)
    add_run(backend, workload_id, "young", 2, finished_at=YOUNG)
    for name in ("old", "young", "by-hand", "by-hand-too"):
        audited(backend, "run.end", f"run {name}")
    audited(backend, "run.end", "run old", tenant="other")
    audited(backend, "run.end", "run at-last", at=YOUNG)
    audited(backend, "run.delete", "run by-hand")
    client.put(f"/workloads/{workload}/retention", json={"runs_days": 30})
    pruning(backend, settings, NoArchive()).run()
    others = ["run at-last", "run by-hand", "run by-hand", "run by-hand-too"]
    assert targets(backend) == [*others, "run old", "run young"]
    fifty = settings.model_copy(update={"retention_runs_days": 50.0})
    client.put(f"/workloads/{workload}/retention", json={"runs_days": None})
    pruning(backend, fifty, NoArchive()).run()
    assert targets(backend) == [*others, "run old", "run young"]  # a workload keeps runs for ever
    client.put(f"/workloads/{workload}/retention", json={"runs_days": 60})
    assert [(one.noun, one.rows) for one in plan(backend, fifty, clock)] == [("audit entries", 4)]
    pruning(backend, fifty, NoArchive()).run()
    assert targets(backend) == ["run at-last", "run by-hand"]


def audited(database: Database, action: str, target: str, *, at: datetime = OLD, tenant: str = TENANT) -> None:
    with database.session() as session:
        entry = {"tenant": tenant, "created_at": at, "actor": "steward", "action": action, "target": target}
        session.add(AuditEntry(id=new_id(), **entry))


def targets(database: Database) -> list[str]:
    """Targets of all audit entries about runs, jobs and keys."""
    with database.reading() as session:
        rows = session.scalars(select(AuditEntry.target).order_by(AuditEntry.target))
        return [one for one in rows if not one.startswith("workload")]


@on_both
def test_a_workload_says_otherwise_than_the_settings(
    client: TestClient, workload: str, workload_id: str, backend: Database, thirty: Settings, archive: ParquetArchive
) -> None:
    add_run(backend, workload_id, "run", 5)
    path = f"/workloads/{workload}/retention"
    answer = client.put(path, json={"iterations_days": None})
    assert answer.json()["given"]["iterations_days"] is None
    assert plan(backend, thirty, clock) == []
    client.put(path, json={})
    assert [one.rows for one in plan(backend, thirty, clock)] == [4]
    client.put(path, json={"iterations_days": 1000})
    assert plan(backend, thirty, clock) == []
    assert client.get(path).json()["effective"]["iterations_days"] == 1000
    for body in ({"iterations_days": 0}, {"iterations_days": -1}, {"iterations_days": "old"}, {"days": 3}):
        assert client.put(path, json=body).status_code == 422
