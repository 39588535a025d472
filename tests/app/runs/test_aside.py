"""Reports that take long are decided aside: others are answered meanwhile, and there is room for every tenant."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from app.database.engine import Database
from app.errors import TooManyRequests
from app.kinds.cluster.report import MOST_JOBS
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.contract.inputs import InvalidInput
from app.kinds.registry import KINDS
from app.runs import service, waiting
from app.runs.reporter import Reporter
from app.runs.waiting import Aside
from app.workloads import service as workloads
from tests.app.runs.reporting import TENANT, compiled_workloads, register, report, reporter, start

OTHER = "other"
JOBS = 150


def cluster(database: Database, tenant: str) -> str:
    """A run of a tenant's cluster; its id."""
    spec = ClusterSpec.model_validate({"name": "c", "kind": "cluster", "nodes": [{"name": "a", "count": 2, "gpus": 4}]})
    workloads.register(database, tenant, spec)
    compiled = compiled_workloads(database).fetch("c", tenant)
    return service.start(database, tenant, compiled, {"workload": "c"}).id


def large(jobs: int = JOBS) -> bytes:
    """A report of so many jobs."""
    submitted = [{"job": f"j{number}", "application": "x", "gpus": 1} for number in range(jobs)]
    return json.dumps({"at": 10, "submitted": submitted}).encode()


class Gate:
    """Holds up the answers to reports of kind ``cluster`` until it is opened."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.open, self.lock = answer, threading.Event(), threading.Lock()
        self.now = self.most = self.count = 0

    def __call__(self, *values: Any) -> Any:
        with self.lock:
            self.now, self.count = self.now + 1, self.count + 1
            self.most = max(self.most, self.now)
        self.open.wait(60)
        try:
            return self.answer(*values)
        finally:
            with self.lock:
                self.now -= 1

    async def reached(self, count: int) -> None:
        """Wait until so many answers have begun."""
        while self.count < count:
            await asyncio.sleep(0.001)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate(KINDS["cluster"].engine.answer)
    monkeypatch.setattr(KINDS["cluster"].engine, "answer", gate)
    yield gate
    gate.open.set()


def test_others_are_answered_while_a_large_report_is_decided(database: Database, gate: Gate) -> None:
    register(database)
    slow, quick = cluster(database, OTHER), [start(database) for _ in range(2)]
    taker = reporter(database)

    async def go() -> None:
        waits = asyncio.ensure_future(taker.report(OTHER, slow, 0, large()))
        await gate.reached(1)
        for run in quick:
            for iteration in range(3):
                status, _ = await taker.report(TENANT, run, iteration, report())
                assert status == 201
        assert not waits.done()
        gate.open.set()
        status, decision = await waits
        assert (status, len(msgspec.json.decode(decision)["changes"])) == (201, 8)
        assert await taker.report(OTHER, slow, 0, large()) == (200, decision)

    asyncio.run(go())


def test_two_large_reports_of_a_tenant_are_decided_at_once_and_there_is_a_thread_for_another(
    database: Database, gate: Gate
) -> None:
    runs = {tenant: [cluster(database, tenant)] for tenant in (TENANT, OTHER)}
    compiled = compiled_workloads(database).fetch("c", TENANT)
    runs[TENANT] += [service.start(database, TENANT, compiled, {"workload": "c"}).id for _ in range(3)]
    taker = reporter(database)

    async def go() -> None:
        waits = [
            asyncio.ensure_future(taker.report(tenant, run, 0, large())) for tenant in runs for run in runs[tenant]
        ]
        await gate.reached(3)
        await asyncio.sleep(0.05)
        assert gate.count == 3  # two of the first tenant, of which two more wait, and one of the other
        gate.open.set()
        assert {status for status, _ in await asyncio.gather(*waits)} == {201}
        assert gate.most == 3

    asyncio.run(go())


def test_a_report_that_was_given_up_while_it_was_decided_is_never_stored(database: Database, gate: Gate) -> None:
    run, other = cluster(database, TENANT), cluster(database, OTHER)
    taker, committed = reporter(database), list[str]()

    async def go() -> None:
        given_up = asyncio.ensure_future(taker.report(TENANT, run, 0, large(), lambda: committed.append("given up")))
        await gate.reached(1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        waits = asyncio.ensure_future(taker.report(TENANT, run, 0, large(120), lambda: committed.append("sent again")))
        await gate.reached(2)
        assert gate.now == 2  # what was given up keeps a place until it ends
        gate.open.set()
        status, decision = await waits
        assert (status, msgspec.json.decode(decision)["running"]) == (201, 8)
        assert (await taker.report(OTHER, other, 0, large()))[0] == 201

    asyncio.run(go())
    assert committed == ["sent again"]
    assert asyncio.run(again(reporter(database), run))[0] == 200  # as it is stored


async def again(taker: Reporter, run: str) -> tuple[int, bytes]:
    return await taker.report(TENANT, run, 0, large(120))


def test_large_reports_wait_in_bounded_number_and_size_for_each_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST_WAITING", 4)
    opened = threading.Event()

    async def go() -> None:
        here = Aside()
        waits = [asyncio.ensure_future(here.run(TENANT, 10, opened.wait, 60)) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match="tenant default has 4 large reports queued") as refused:
            await here.run(TENANT, 10, opened.wait, 60)
        assert refused.value.retry_after == waiting.RETRY_SECONDS
        assert await here.run(OTHER, 10, lambda: "other") == "other"
        waits[3].cancel()  # one that waits leaves its place
        await asyncio.sleep(0)
        monkeypatch.setattr(waiting, "MOST_BYTES", 29)
        with pytest.raises(TooManyRequests, match="30 bytes"):
            await here.run(TENANT, 10, opened.wait, 60)
        monkeypatch.setattr(waiting, "MOST_BYTES", 30)
        waits[3] = asyncio.ensure_future(here.run(TENANT, 10, lambda: True))
        opened.set()
        assert await asyncio.gather(*waits) == [True] * 4
        with pytest.raises(ZeroDivisionError):
            await here.run(TENANT, 10, lambda: 1 / 0)
        assert await here.run(TENANT, 10, lambda: "free again") == "free again"

    asyncio.run(go())


def test_a_place_is_free_again_where_no_thread_could_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        here = Aside()
        with monkeypatch.context() as patched:
            patched.setattr(here._threads, "submit", refused)
            for _ in range(2 * waiting.AT_ONCE):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    await here.run(TENANT, 10, lambda: None)
        assert await here.run(TENANT, 10, lambda: "free again") == "free again"

    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    asyncio.run(go())


def test_a_run_holds_a_bounded_number_of_jobs_at_once(database: Database) -> None:
    runs = [cluster(database, tenant) for tenant in (TENANT, OTHER)]
    taker = reporter(database)
    more = {"at": 20, "submitted": [{"job": "one", "gpus": 1}], "ended": []}

    async def go() -> None:
        assert (await taker.report(TENANT, runs[0], 0, large(MOST_JOBS)))[0] == 201
        with pytest.raises(InvalidInput, match="at most 2,000 pending and running jobs") as refused:
            await taker.report(TENANT, runs[0], 1, json.dumps(more).encode())
        assert (refused.value.errors[0].pointer, refused.value.errors[0].value) == ("/submitted", MOST_JOBS + 1)
        leaves = {**more, "ended": [{"job": "j7"}]}
        assert (await taker.report(TENANT, runs[0], 1, json.dumps(leaves).encode()))[0] == 201
        assert (await taker.report(OTHER, runs[1], 0, json.dumps(more).encode()))[0] == 201

    asyncio.run(go())
