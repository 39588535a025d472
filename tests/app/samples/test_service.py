"""Samples without HTTP: what a run leaves behind, what workers read, and many callers at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from app.database.engine import Database, DeadlinePassed, commit_deadline
from app.database.tables import Execution, Iteration, Run
from app.errors import Timeout, Unavailable
from app.http.pagination import PageRequest
from app.kinds.contract.inputs import tabular
from app.kinds.iterative.samples import IterationSamples
from app.kinds.iterative.spec import Spec
from app.samples import intake, service
from app.samples import intake as repository
from app.samples.body import FORMATS
from app.samples.intake import Intake, Target, UploadRead
from app.samples.service import Upload
from app.workloads import service as workloads
from tests.app.both import on_both
from tests.app.samples.bodies import HEADER, csv_of, report

TENANT = "default"


@pytest.fixture
def target(backend: Database, spec: dict[str, Any]) -> Target:
    register = workloads.register(backend, TENANT, Spec.model_validate(spec))
    return Target(TENANT, register.id)


def upload(database: Database, text: str) -> UploadRead:
    upload = Upload("text/csv", [text.encode()], gzip=False, limit_bytes=10**9, json_limit_bytes=10**7)
    return service.upload(database, TENANT, "resnet18", upload)


def stored(database: Database, target: Target) -> dict[str, np.ndarray]:
    with database.reading() as session:
        return dict(service.executions(session, workloads.require(session, TENANT, target.workload_id)))


def finished_run(database: Database, target: Target, seconds: list[float], first: int = 0) -> str:
    with database.session() as session:
        run = Run(
            tenant=TENANT,
            workload_id=target.workload_id,
            spec_version=1,
            start={},
            state_vector=[],
            decision={},
            next_iteration=first + len(seconds),
        )
        session.add(run)
        session.flush()
        for i, value in enumerate(seconds, start=first):
            result = report(metrics={"iteration_seconds": value}, allocation={"gpus": 4 + i - first})
            session.add(Iteration.of(run.id, i, result, {}, tenant=TENANT, digest=""))
        return run.id


@on_both
def test_a_run_becomes_a_sample_once(backend: Database, target: Target) -> None:
    identifier = finished_run(backend, target, [10.0, 11.5])
    for _ in range(2):
        with backend.session() as session:
            assert len(service.add_run(session, session.get_one(Run, identifier))) == 2
    result = stored(backend, target)
    assert result[identifier].tolist() == [[0, 4, 10.0, 128], [1, 5, 11.5, 128]]
    assert list(result) == [identifier]


@on_both
def test_runs_that_begin_later_are_stored_under_their_iterations(backend: Database, target: Target) -> None:
    runs = [finished_run(backend, target, [10.0, 11.5], first) for first in (40, 0)]
    with backend.session() as session:
        for identifier in runs:
            service.add_run(session, session.get_one(Run, identifier))
    assert [stored(backend, target)[one][:, 0].tolist() for one in runs] == [[40, 41], [0, 1]]
    with backend.session() as session:
        run = session.get_one(Run, runs[0])
        service.add_run(session, run, [repository.Cut(41, run.created_at)])
    parts = {name: rows[:, 0].tolist() for name, rows in stored(backend, target).items() if name != runs[1]}
    assert parts == {f"{runs[0]}{repository.PART}0": [40], f"{runs[0]}{repository.PART}41": [41]}


def test_a_run_without_reports_leaves_no_sample(backend: Database, target: Target) -> None:
    identifier = finished_run(backend, target, [])
    with backend.session() as session:
        assert service.add_run(session, session.get_one(Run, identifier)) == []
    assert stored(backend, target) == {}


def test_workers_read_what_was_uploaded(backend: Database, target: Target) -> None:
    upload(backend, csv_of({"b": 2, "a": 1}))
    result = stored(backend, target)
    assert list(result) == ["b", "a"]
    assert result["b"].tolist() == [[0, 4, 31.5, 128], [1, 4, 32.5, 128]]


@pytest.mark.parametrize(
    ("error", "family", "words"),
    [
        (OperationalError("INSERT", {}, Exception("gone")), Unavailable, "database does not answer; the 20 executions"),
        (DeadlinePassed("late"), Timeout, "took too long; the 20 executions"),
    ],
)
def test_an_interrupted_upload_says_what_is_kept(
    backend: Database,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    family: type[Exception],
    words: str,
) -> None:
    monkeypatch.setattr(intake, "BATCH_EXECUTIONS", 20)
    add = repository.add
    batches = iter([None, error])

    def failing(session: Any, rows: Any) -> None:
        add(session, rows)
        if (trouble := next(batches)) is not None:
            raise trouble

    monkeypatch.setattr(repository, "add", failing)
    with pytest.raises(family, match=words):
        upload(backend, csv_of({f"run-{i:02}": 2 for i in range(60)}))
    assert len(stored(backend, target)) == 20


def test_an_upload_whose_time_is_over_stops_at_once_and_says_what_is_kept(
    backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_EXECUTIONS", 20)
    lines = csv_of({f"run-{i:02}": 2 for i in range(60)}).splitlines(keepends=True)

    def chunks() -> Iterator[bytes]:
        yield "".join(lines[:90]).encode()
        commit_deadline.set(time.monotonic() - 1)
        yield "".join(lines[90:94]).encode()
        pytest.fail("it was read on")

    upload = Upload("text/csv", chunks(), gzip=False, limit_bytes=10**9, json_limit_bytes=10**7)
    with pytest.raises(Timeout, match="took too long; the 40 executions accepted before it are kept"):
        copy_context().run(service.upload, backend, TENANT, target.workload_id, upload)
    assert len(stored(backend, target)) == 40


@on_both
def test_the_same_executions_from_many_callers_are_stored_once(backend: Database, target: Target) -> None:
    text = csv_of({f"run-{i}": 2 for i in range(50)})
    counts: list[UploadRead] = []
    threads = [threading.Thread(target=lambda: counts.append(upload(backend, text))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((count.accepted, count.duplicate) for count in counts) == [(0, 50)] * 3 + [(50, 0)]
    assert len(stored(backend, target)) == 50


def test_what_was_committed_before_a_failure_stays_and_can_be_sent_again(
    backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "BATCH_EXECUTIONS", 10)
    add = repository.add
    calls = 0

    def failing(session: Any, rows: Any) -> None:
        nonlocal calls
        calls += 1
        add(session, rows)
        if calls == 3:
            raise Unavailable("the database went away")

    text = csv_of({f"run-{i:02}": 2 for i in range(40)})
    monkeypatch.setattr(repository, "add", failing)
    with pytest.raises(Unavailable, match="20 executions accepted before it are kept"):
        upload(backend, text)
    assert len(stored(backend, target)) == 20
    result = upload(backend, text)
    assert (result.accepted, result.duplicate) == (20, 20)


def test_far_too_many_refusals_end_an_upload(
    backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAXIMUM_REJECTIONS", 600)
    bad = "".join(f"bad-{i},0,99,31,128\n" for i in range(5000))
    with pytest.raises(Exception, match="stopped after 999 refused executions"):
        upload(backend, csv_of({"good": 2}) + bad)
    assert list(stored(backend, target)) == ["good"]


def test_rejections_beyond_the_first_thousand_are_counted(backend: Database, target: Target) -> None:
    text = csv_of({"good": 1}) + "".join(f"bad-{i},0,99,31,128\n" for i in range(1500))
    result = upload(backend, text)
    assert (result.accepted, result.rejected, len(result.rejections)) == (1, 1500, 1000)
    assert result.rejections[-1].line == 1002


def test_a_batch_holds_bounded_bytes(backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BATCH_BYTES", 1000)
    taking = Intake(backend, target, FORMATS["text/csv"])
    for i in range(4):
        taking.take(tabular(f"run-{i}", i, np.ones((10, 4)), {"seconds": 10.0}))
    assert (taking.counts.accepted, len(stored(backend, target))) == (4, 4)


def test_a_header_alone_is_no_upload(backend: Database, target: Target) -> None:
    with pytest.raises(Exception, match="no execution"):
        upload(backend, HEADER)
    assert stored(backend, target) == {}


@on_both
def test_what_lists_tell_is_computed_once(backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    assert upload(backend, csv_of({"a": 3, "b": 2})).accepted == 2
    calls: list[bytes] = []
    summary = IterationSamples.summary

    def counted(codec: IterationSamples, data: bytes) -> Mapping[str, Any]:
        calls.append(data)
        return summary(codec, data)

    monkeypatch.setattr(IterationSamples, "summary", counted)

    def seconds() -> list[float]:
        outcome, result = service.list_executions(backend, TENANT, target.workload_id, PageRequest(10))
        return [result(row).model_dump()["seconds"] for row in outcome.rows]

    expected = seconds()
    assert (expected, calls) == ([97.5, 64.0], [])
    with backend.session() as session:  # as they were stored before there were summaries
        session.execute(update(Execution).values(summary=None))
    assert (seconds(), len(calls)) == (expected, 2)
    assert (seconds(), len(calls)) == (expected, 2)


def test_what_was_summarised_before_the_time_ran_out_is_kept(
    backend: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(backend, csv_of({"a": 3, "b": 2, "c": 2}))
    with backend.session() as session:
        session.execute(update(Execution).values(summary=None))
    monkeypatch.setattr(service, "SUMMARISED_BYTES", 1)
    summary, left = IterationSamples.summary, iter([True])

    def slow(codec: IterationSamples, data: bytes) -> Any:
        if next(left, None) is None:
            raise DeadlinePassed("late")
        return summary(codec, data)

    monkeypatch.setattr(IterationSamples, "summary", slow)
    with pytest.raises(DeadlinePassed):
        service.list_executions(backend, TENANT, target.workload_id, PageRequest(10))
    with backend.reading() as session:
        rows = session.scalars(select(Execution.summary).order_by(Execution.created_at, Execution.id)).all()
    assert [result is not None for result in rows] == [True, False, False]
