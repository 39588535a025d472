"""A run that this process has started: its first report needs no look at the database, and is taken as if it did."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest
from numpy.testing import assert_equal

from app.database.engine import Database
from app.errors import Conflict, NotFound
from app.kinds.contract.kind import Kind
from app.kinds.registry import KINDS, read_spec
from app.runs import repository, service
from app.runs.deciding import OVERHEAD, StartedRuns, from_stored
from app.runs.reporter import Reporter
from app.workloads import service as workloads
from tests.app.runs.reporting import TENANT, compiled_workloads, end, register, report, reporter


def start(database: Database, runs: StartedRuns, workload: str, **body: Any) -> str:
    compiled = compiled_workloads(database).fetch(workload, TENANT)
    return service.start(database, TENANT, compiled, {"workload": workload, **body}, runs=runs).id


@pytest.fixture
def runs() -> StartedRuns:
    return StartedRuns()


@pytest.fixture
def taker(database: Database, runs: StartedRuns) -> Reporter:
    return Reporter(database, compiled_workloads(database), started=runs)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_it_is_kept_as_it_stands_in_the_database(any_database: Database, runs: StartedRuns, kind: Kind) -> None:
    spec = read_spec(copy.deepcopy(dict(kind.example.spec)))
    workloads.register(any_database, TENANT, spec)
    run = start(any_database, runs, spec.name, **kind.example.start)
    with any_database.reading() as session:
        row = repository.deciding_row(session, TENANT, run)
    assert row is not None
    taken = runs.take(run)
    assert taken is not None
    remembered, read = (msgspec.structs.asdict(live) for live in (taken, from_stored(row)))
    states = [kind.engine.serialise(state.pop("kind_state")) for state in (remembered, read)]
    assert states[0] == states[1]
    assert_equal(remembered, read)
    assert runs.take(run) is None


def test_its_first_report_reads_nothing(
    database: Database, runs: StartedRuns, taker: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(database, runs, register(database))
    with monkeypatch.context() as patch:
        patch.setattr(repository, "deciding_row", None)
        for iteration in range(2):
            assert asyncio.run(taker.report(TENANT, run, iteration, report()))[0] == 201


def test_what_was_done_to_it_since_is_noticed(database: Database, runs: StartedRuns, taker: Reporter) -> None:
    name = register(database)
    reported, ended, deleted = (start(database, runs, name) for _ in range(3))
    first = asyncio.run(reporter(database).report(TENANT, reported, 0, report()))[1]
    for run in (ended, deleted):
        end(database, run, "failed")
    service.delete(database, TENANT, deleted)
    assert asyncio.run(taker.report(TENANT, reported, 0, report())) == (200, first)
    with pytest.raises(Conflict):
        asyncio.run(taker.report(TENANT, ended, 0, report()))
    with pytest.raises(NotFound):
        asyncio.run(taker.report(TENANT, deleted, 0, report()))


def test_another_tenant_does_not_find_it(database: Database, runs: StartedRuns, taker: Reporter) -> None:
    run = start(database, runs, register(database))
    with pytest.raises(NotFound):
        asyncio.run(taker.report("other", run, 0, report()))
    assert asyncio.run(taker.report(TENANT, run, 0, report()))[0] == 201


def test_those_that_never_report_take_no_more_than_there_is_for_them(database: Database) -> None:
    selection, name = StartedRuns(3 * OVERHEAD + 2_000), register(database)
    runs = [start(database, selection, name) for _ in range(5)]
    assert [selection.take(run) is not None for run in runs] == [False, False, True, True, True]
