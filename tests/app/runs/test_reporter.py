"""Taking reports: each number once, the same again the same, whoever else is reporting, and whatever fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from app.database.engine import Database
from app.database.tables import Iteration, Run
from app.errors import Conflict, NotFound, Unavailable
from app.kinds.contract.inputs import InvalidInput
from app.kinds.iterative import engine
from app.kinds.iterative.contingencies import advance_in_segments
from app.kinds.iterative.state import State
from app.runs import deciding, repository, waiting
from app.runs import deciding as writing
from app.runs.reporter import Reporter
from tests.app.runs.reporting import TENANT, end, register, report, reporter, start

Step = tuple[int, int, int]
"""Iteration, variant of the report, process that takes it."""
STEPS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 1)), max_size=14)


def stored_numbers(database: Database, run: str) -> list[int]:
    """Numbers of the iterations on disk."""
    with database.reading() as session:
        query = select(Iteration.iteration).where(Iteration.run_id == run).order_by(Iteration.iteration)
        return list(session.scalars(query))


async def outcome(taker: Reporter, run: str, iteration: int, body: bytes) -> tuple[int, bytes]:
    """Status and decision."""
    try:
        return await taker.report(TENANT, run, iteration, body)
    except Conflict as error:
        return error.status, b""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_order_of_reports_through_two_processes_obeys_the_rules(database: Database, steps: list[Step]) -> None:
    register(database)
    run = start(database)
    takers = [reporter(database), reporter(database)]
    known: dict[int, tuple[int, bytes]] = {}

    async def go() -> None:
        for iteration, variant, process in steps:
            status, decision = await outcome(takers[process], run, iteration, report(30.0 + variant))
            if iteration in known:
                assert (status, decision) == (
                    (200, known[iteration][1]) if known[iteration][0] == variant else (409, b"")
                )
            elif iteration == len(known):
                assert status == 201
                known[iteration] = (variant, decision)
            else:
                assert status == 409

    asyncio.run(go())
    assert stored_numbers(database, run) == list(range(len(known)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_reports_at_the_same_time_are_decided_once(database: Database, steps: list[Step]) -> None:
    register(database)
    run = start(database)
    takers = [reporter(database), reporter(database)]

    async def go() -> list[tuple[int, bytes]]:
        calls = (
            outcome(takers[process], run, iteration, report(30.0 + variant)) for iteration, variant, process in steps
        )
        return list(await asyncio.gather(*calls))

    answers = asyncio.run(go())
    written = [step[0] for step, (status, _) in zip(steps, answers, strict=True) if status == 201]
    assert sorted(written) == stored_numbers(database, run) == list(range(len(written)))
    for number in written:
        decisions = {a[1] for step, a in zip(steps, answers, strict=True) if step[0] == number and a[0] in (200, 201)}
        assert len(decisions) == 1


def test_many_runs_at_once_on_either_database(any_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LONGEST_SECONDS", 60.0)  # a batch may take longer than usual on a busy machine
    register(any_database)
    runs = [start(any_database) for _ in range(70)]
    taker = reporter(any_database)

    async def go() -> None:
        for iteration in range(3):
            reports = (taker.report(TENANT, run, iteration, report(20.0 + i)) for i, run in enumerate(runs))
            assert {status for status, _ in await asyncio.gather(*reports)} == {201}

    asyncio.run(go())
    assert all(stored_numbers(any_database, run) == [0, 1, 2] for run in runs)
    again = asyncio.run(reporter(any_database).report(TENANT, runs[3], 1, report(23.0)))
    assert again[0] == 200


def test_a_process_that_was_outrun_reads_again(any_database: Database) -> None:
    register(any_database)
    run = start(any_database)
    first, second = reporter(any_database), reporter(any_database)

    async def go() -> list[int]:
        statuses = []
        for iteration in range(6):
            taker = (first, second)[iteration % 2]
            statuses.append((await taker.report(TENANT, run, iteration, report(25.0 + iteration)))[0])
        return statuses

    assert asyncio.run(go()) == [201] * 6
    assert stored_numbers(any_database, run) == list(range(6))


def test_batch_neighbours_of_an_outrun_run_are_written(database: Database) -> None:
    register(database)
    runs = [start(database) for _ in range(4)]
    first, second = reporter(database), reporter(database)

    async def go() -> list[int]:
        await asyncio.gather(*(first.report(TENANT, run, 0, report()) for run in runs))
        await second.report(TENANT, runs[2], 1, report())  # the first process doesn't know
        answers = await asyncio.gather(*(first.report(TENANT, run, 1, report()) for run in runs))
        return [status for status, _ in answers]

    assert asyncio.run(go()) == [201, 201, 200, 201]
    assert all(stored_numbers(database, run) == [0, 1] for run in runs)


def test_the_state_that_is_kept_is_the_state_that_is_read(database: Database) -> None:
    register(database)
    run = start(database)
    taker = reporter(database)

    async def go() -> tuple[bytes, bytes]:
        for iteration in range(5):
            await taker.report(TENANT, run, iteration, report(20.0 + 3 * iteration))
        remembered = (await taker.report(TENANT, run, 5, report(50.0)))[1]
        with database.session() as session:  # undo it, and let a process decide that has to read everything
            session.delete(session.get_one(Iteration, (run, 5)))
            row = session.get_one(Run, run)
            row.next_iteration, row.state_vector = 5, taken
        return remembered, (await reporter(database).report(TENANT, run, 5, report(50.0)))[1]

    async def before() -> list[Any]:
        probe = reporter(database)
        for iteration in range(5):
            await probe.report(TENANT, run, iteration, report(20.0 + 3 * iteration))
        with database.reading() as session:
            return list(session.get_one(Run, run).state_vector)

    taken = asyncio.run(before())
    remembered, read = asyncio.run(go())
    assert remembered.split(b'"decided_at"')[0] == read.split(b'"decided_at"')[0]


def test_a_report_that_does_not_fit_is_refused_and_its_neighbours_are_not(database: Database) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker = reporter(database)
    bodies = [report(), report(gpus=4.5), report()]

    async def go() -> Sequence[object]:
        reports = (taker.report(TENANT, run, 0, body) for run, body in zip(runs, bodies, strict=True))
        return await asyncio.gather(*reports, return_exceptions=True)

    answers = asyncio.run(go())
    assert isinstance(answers[1], InvalidInput)
    assert answers[1].errors[0].pointer == "/allocation/gpus"
    assert [stored_numbers(database, run) for run in runs] == [[0], [], [0]]


def test_a_run_that_can_not_be_advanced_fails_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker = reporter(database)

    def choosy(projector: Any, state: Any, levels: Any, metrics: Any, *more: Any) -> State:
        if (metrics == 13.0).any():
            raise FloatingPointError("thirteen")
        return advance_in_segments(projector, state, levels, metrics, *more)

    monkeypatch.setattr(engine, "advance_in_segments", choosy)
    bodies = [report(), report(13.0), report()]

    async def go() -> Sequence[object]:
        reports = (taker.report(TENANT, run, 0, body) for run, body in zip(runs, bodies, strict=True))
        return await asyncio.gather(*reports, return_exceptions=True)

    answers = asyncio.run(go())
    assert isinstance(answers[1], FloatingPointError)
    assert [stored_numbers(database, run) for run in runs] == [[0], [], [0]]
    assert f"run {runs[1]}: iteration 0 can't be decided" in caplog.text


@pytest.mark.parametrize(("module", "at_fault"), [(deciding, "_watch"), (writing, "pack_iteration")])
def test_a_run_that_can_not_be_watched_or_packed_fails_alone(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    module: ModuleType,
    at_fault: str,
) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker, whole, at_fault_is = reporter(database), getattr(module, at_fault), [False, True, False]

    def choosy(*values: Any) -> Any:
        if at_fault_is.pop():
            raise FloatingPointError("thirteen")
        return whole(*values)

    monkeypatch.setattr(module, at_fault, choosy)

    async def go() -> Sequence[object]:
        reports = (taker.report(TENANT, run, 0, report()) for run in runs)
        return await asyncio.wait_for(asyncio.gather(*reports, return_exceptions=True), 60)

    answers = asyncio.run(go())
    failed = [isinstance(answer, FloatingPointError) for answer in answers]
    assert sorted(failed) == [False, False, True]
    assert [stored_numbers(database, run) for run in runs] == [[] if one else [0] for one in failed]
    verb = "decided" if module is deciding and at_fault == "_watch" else "written"
    assert f"run {runs[failed.index(True)]}: iteration 0 can't be {verb}" in caplog.text


class Undone(Exception):
    """PostgreSQL undid a transaction to resolve a conflict."""

    sqlstate = "40001"


@pytest.mark.parametrize(
    "refusal", [DataError("INSERT", {}, ValueError("odd")), OperationalError("INSERT", {}, Undone())]
)
def test_a_row_that_the_database_refuses_is_refused_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch, refusal: DBAPIError
) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker, append = reporter(database), repository.append

    def strict(connection: Any, entries: Sequence[repository.Entry], now: Any) -> set[str]:
        written = append(connection, entries, now)
        if any(entry.run == runs[1] for entry in entries):
            raise refusal
        return written

    monkeypatch.setattr(repository, "append", strict)

    async def go() -> Sequence[object]:
        reports = (taker.report(TENANT, run, 0, report()) for run in runs)
        return await asyncio.gather(*reports, return_exceptions=True)

    answers = asyncio.run(go())
    assert answers[1] is refusal
    assert [stored_numbers(database, run) for run in runs] == [[0], [], [0]]


def test_nothing_is_half_written_when_the_database_goes_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker, append = reporter(database), repository.append

    def cut(connection: Any, entries: Sequence[repository.Entry], now: Any) -> None:
        append(connection, entries, now)
        raise OperationalError("INSERT", {}, ConnectionError("gone"), connection_invalidated=True)

    async def go() -> Sequence[object]:
        reports = (taker.report(TENANT, run, 0, report()) for run in runs)
        return await asyncio.gather(*reports, return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(repository, "append", cut)
        assert all(isinstance(answer, OperationalError) for answer in asyncio.run(go()))
    assert [stored_numbers(database, run) for run in runs] == [[], [], []]
    answers = asyncio.run(go())
    assert [answer[0] for answer in answers if isinstance(answer, tuple)] == [201] * 3


def test_a_run_that_is_outrun_again_and_again_is_to_be_tried_later(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(database)
    run = start(database)

    def outrun(*_: object) -> None:
        raise repository.OutrunError

    monkeypatch.setattr(repository, "append", outrun)
    monkeypatch.setattr(repository, "append_current", lambda *_: set())
    with pytest.raises(Unavailable, match="concurrent reports of run") as caught:
        asyncio.run(reporter(database).report(TENANT, run, 0, report()))
    assert caught.value.retry_after == 1
    assert stored_numbers(database, run) == []


def test_a_connection_is_kept_from_batch_to_batch_and_goes_back_when_no_more_come(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.runs.reporter.REST_SECONDS", 0.2)
    register(database)
    runs, taker, pool = [start(database) for _ in range(3)], reporter(database), database.engine.pool
    assert isinstance(pool, QueuePool)
    taken = []

    async def go() -> None:
        for run in runs:  # states that are read anew come one by one, and not in a batch
            await taker.report(TENANT, run, 0, report())
        for iteration in (1, 2):
            await asyncio.gather(*(taker.report(TENANT, run, iteration, report()) for run in runs))
            taken.append(pool.checkedout())
        await asyncio.sleep(0.4)
        taken.append(pool.checkedout())
        await taker.report(TENANT, runs[0], 3, report())
        taken.append(pool.checkedout())

    asyncio.run(go())
    assert taken == [1, 1, 0, 0]


def test_a_caller_who_gives_up_holds_nobody_up(database: Database) -> None:
    register(database)
    runs = [start(database) for _ in range(3)]
    taker = reporter(database)

    async def go() -> Sequence[object]:
        tasks = [asyncio.create_task(taker.report(TENANT, run, 0, report())) for run in runs]
        while not taker._pending:
            await asyncio.sleep(0)
        tasks[1].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        return [*answers, await taker.report(TENANT, runs[1], 0, report())]

    first, given_up, last, again = asyncio.run(go())
    assert isinstance(given_up, asyncio.CancelledError)
    assert [isinstance(one, tuple) for one in (first, last, again)] == [True] * 3
    assert [stored_numbers(database, run) for run in runs] == [[0]] * 3


def test_reports_of_two_workloads_are_decided_each_with_its_own(database: Database) -> None:
    register(database)
    register(database, name="short", iterations=1)
    runs = [start(database), start(database, "short")]
    taker = reporter(database)

    async def go() -> list[bytes]:
        answers = await asyncio.gather(*(taker.report(TENANT, run, 0, report()) for run in runs))
        return [decision for _, decision in answers]

    assert [b'"complete"' in decision for decision in asyncio.run(go())] == [False, True]


def test_a_run_of_another_tenant_is_not_found(database: Database) -> None:
    register(database)
    run = start(database)
    taker = reporter(database)
    asyncio.run(taker.report(TENANT, run, 0, report()))  # it is in memory now
    for iteration in (0, 1):
        with pytest.raises(NotFound):
            asyncio.run(taker.report("stranger", run, iteration, report()))
    assert stored_numbers(database, run) == [0]


def test_a_gap_names_the_next_number(database: Database) -> None:
    register(database)
    run = start(database)
    with pytest.raises(Conflict, match="the next one to report is 0") as caught:
        asyncio.run(reporter(database).report(TENANT, run, 3, report()))
    assert caught.value.errors[0].message == "must be 0"


def test_a_finished_run_takes_no_more_reports_but_repeats_its_answers(database: Database) -> None:
    register(database)
    run = start(database)
    taker = reporter(database)
    first = asyncio.run(taker.report(TENANT, run, 0, report()))
    end(database, run, "finished")
    with pytest.raises(Conflict, match="has finished"):
        asyncio.run(taker.report(TENANT, run, 1, report()))
    assert asyncio.run(taker.report(TENANT, run, 0, report())) == (200, first[1])
    assert stored_numbers(database, run) == [0]


def test_numbers_beyond_the_workloads_are_refused(database: Database) -> None:
    register(database, iterations=2)
    run = start(database)
    taker = reporter(database)

    async def go() -> list[bytes]:
        return [(await taker.report(TENANT, run, n, report()))[1] for n in range(2)]

    assert b'"complete"' in asyncio.run(go())[1]
    with pytest.raises(InvalidInput, match="must be less than 2"):
        asyncio.run(taker.report(TENANT, run, 2, report()))


def test_an_unknown_run_and_a_deleted_one_are_not_found(database: Database) -> None:
    register(database)
    run = start(database)
    taker = reporter(database)
    asyncio.run(taker.report(TENANT, run, 0, report()))
    with database.session() as session:
        session.delete(session.get_one(Run, run))
    for missing in ("nobody", run):
        with pytest.raises(NotFound):
            asyncio.run(taker.report(TENANT, missing, 1, report()))
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Iteration)) == 0


def test_a_run_of_another_tenant_is_not_there_whatever_is_wrong_with_it(any_database: Database) -> None:
    register(any_database)
    run = start(any_database)
    with any_database.session() as session:
        session.execute(update(Run).where(Run.id == run).values(state_vector={"no": "row"}))

    async def go(tenant: str) -> None:
        await reporter(any_database).report(tenant, run, 0, report())

    with pytest.raises(NotFound):
        asyncio.run(go("another"))
    with pytest.raises((KeyError, TypeError, ValueError)):
        asyncio.run(go(TENANT))


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.servers
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.none() | st.just("NULL") | TEXTS, max_size=5), packs=st.lists(st.binary(), max_size=3))
def test_postgresql_reads_an_array_as_it_was_written(
    postgres_database: Database, values: list[str | None], packs: list[bytes]
) -> None:
    query = "SELECT CAST(%(texts)s AS text[]), CAST(%(packs)s AS bytea[])"
    given_packs = repository._array(f"\\x{pack.hex()}" for pack in packs)
    with postgres_database.engine.connect() as connection:
        parameters = {"texts": repository._array(values), "packs": given_packs}
        texts, read = connection.exec_driver_sql(query, parameters).one()
    assert (texts, [bytes(one) for one in read]) == (values, packs)


def test_only_runs_that_report_as_soon_as_they_are_answered_are_waited_for(database: Database) -> None:
    register(database)
    runs, others = ([start(database) for _ in range(6)] for _ in range(2))
    taker = reporter(database)

    async def round_of(number: int, those: Sequence[str]) -> None:
        await asyncio.gather(*(taker.report(TENANT, run, number, report()) for run in those))

    async def go() -> list[int]:
        waited_for = []
        for number in range(4):  # the first states are read one by one, and come in batches of their own
            await round_of(number, runs)
        waited_for.append(taker._usual)
        await round_of(0, others)
        waited_for.append(taker._usual)
        return waited_for

    again, anew = asyncio.run(go())
    assert again == 6
    assert anew < 6


def test_a_single_row_that_the_database_refuses_is_not_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(database)
    run, tried = start(database), []
    refusal = DataError("INSERT", {}, ValueError("odd"))

    def refuses(*given: Any) -> set[str]:
        tried.append(given)
        raise refusal

    monkeypatch.setattr(repository, "append", refuses)
    with pytest.raises(DataError) as caught:
        asyncio.run(reporter(database).report(TENANT, run, 0, report()))
    assert caught.value is refusal
    assert len(tried) == 1


def test_an_old_iteration_that_is_no_longer_kept_is_not_found(database: Database) -> None:
    register(database)
    run, taker = start(database), reporter(database)
    answers = [asyncio.run(taker.report(TENANT, run, number, report())) for number in range(3)]
    assert asyncio.run(taker.report(TENANT, run, 0, report())) == (200, answers[0][1])
    with database.session() as session:
        session.delete(session.get_one(Iteration, (run, 0)))
    with pytest.raises(NotFound, match="no iteration 0 of run"):
        asyncio.run(taker.report(TENANT, run, 0, report()))
    assert asyncio.run(taker.report(TENANT, run, 1, report())) == (200, answers[1][1])


def test_a_run_that_is_gone_is_forgotten_and_one_of_the_same_id_is_read(database: Database) -> None:
    """The last report is answered from memory only while the run is there."""
    register(database)
    run, taker = start(database), reporter(database)
    asyncio.run(taker.report(TENANT, run, 0, report()))
    with database.session() as session:
        session.delete(session.get_one(Run, run))
    with pytest.raises(NotFound, match=f"no run '{run}'"):
        asyncio.run(taker.report(TENANT, run, 0, report()))
    assert taker._runs.get(run) is None


def test_what_a_report_does_not_change_is_not_written_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run comes to be at risk, stays so, and is on track again; without a model nothing is tested for drift."""
    register(database)
    run, written, append = start(database), list[repository.Entry](), repository.append

    def seen(connection: Any, entries: Sequence[repository.Entry], now: Any) -> set[str]:
        written.extend(entries)
        return append(connection, entries, now)

    monkeypatch.setattr(repository, "append", seen)
    taker = reporter(database)

    async def go() -> None:
        for number, risk in enumerate(("", "late", "late", "later", "", "")):
            monkeypatch.setattr(deciding.Item, "risk", risk)
            await taker.report(TENANT, run, number, report())

    asyncio.run(go())
    assert [(entry.run, entry.iteration, entry.tenant) for entry in written] == [(run, n, TENANT) for n in range(6)]
    assert [entry.drift for entry in written] == [None] * 6
    assert [entry.outcome and entry.outcome[:2] for entry in written] == [
        None,
        ("at_risk", "late"),
        None,
        ("at_risk", "later"),
        ("on_track", None),
        None,
    ]


def test_a_cached_run_weighs_what_its_last_report_made_of_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deciding, "SLIGHT", 0)
    register(database)
    run, taker = start(database), reporter(database)
    asyncio.run(taker.report(TENANT, run, 0, report()))
    live = taker._runs.get(run)
    assert live is not None
    assert taker._runs.weight == deciding._weight(live) > deciding.OVERHEAD + len(live.decision)
