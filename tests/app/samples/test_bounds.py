"""What an upload may cost: work in proportion to its bytes, none for a client that has gone, no memory that stays."""

from __future__ import annotations

import asyncio
import gzip
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anyio.to_thread
import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database, DeadlinePassed, commit_deadline
from app.errors import BadRequest, StewardError
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.kinds.contract.inputs import InvalidInput
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples import Checker, CsvReader
from app.kinds.iterative.spec import Spec
from app.kinds.workflow.formats import json_walk
from app.kinds.workflow.formats.json_walk import walk
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import critical_path
from app.kinds.workflow.trace import independent_jobs
from app.main import create_app
from app.samples import body, service
from app.samples import body as stream
from app.samples.body import PIECE, Body, blocks, decompress, returning
from app.settings import Settings
from app.workloads import service as workloads
from tests.app.samples.bodies import csv_of
from tests.batched import SAMPLE
from tests.batched import SPEC as EXAMPLE

NODE = {"name": "big", "processors": 8, "minimum": 1, "maximum": 1}
JOB = b"%d 0 -1 9 4 -1 -1 4 200 -1 1 1 1 -1 -1 -1 -1 -1\n"
EMPTY_MEMBER = gzip.compress(b"")


def refused(work: Callable[[], object]) -> None:
    with pytest.raises((StewardError, InvalidInput)):
        work()


def dense(tasks: int) -> None:
    """Every task has all tasks before it as parents."""
    submit, runtime, estimate = np.ones((3, tasks))
    trace = independent_jobs(submit, runtime, estimate, np.ones(tasks, np.int64), np.full(tasks, -1))
    start = np.arange(tasks) * (np.arange(tasks) - 1) // 2
    parents = np.concatenate([np.arange(task) for task in range(tasks)])
    assert critical_path(trace._replace(parent_start=np.append(start, len(parents)), parents=parents)) == tasks


def csv(rows: int) -> None:
    header = b"execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
    [result] = CsvReader(Checker(Layout(Spec.model_validate(EXAMPLE)))).read(iter([header + b'"\n' * rows]))
    assert result.line == 2


WORK: dict[str, tuple[int, Callable[[int], object]]] = {
    "a comment of spaces": (8_000, lambda n: refused(lambda: read_swf([b"; a" + b" " * n + b"x\n"]))),
    "a line in small chunks": (4_000, lambda n: list(blocks([b"x" * 100] * n, 10**9))),
    "empty gzip members": (4_000, lambda n: list(decompress([EMPTY_MEMBER * n]))),
    "a number in small chunks": (2_000, lambda n: list(walk([b"0."] + [b"1" * 100] * n, ()))),
    "tasks with all others as parents": (150, dense),
    "quotes that never close": (20_000, csv),
    "jobs of one number": (5_000, lambda n: refused(lambda: read_swf([JOB % 1 * n]))),
}


@pytest.mark.parametrize("case", WORK)
def test_work_grows_as_what_is_sent(case: str) -> None:
    """Eight times the size: eight times the work where it is linear, 64 times where it is quadratic."""
    size, work = WORK[case]

    def seconds(size: int) -> float:
        def once() -> float:
            begun = time.thread_time()
            work(size)
            return time.thread_time() - begun

        return min(once() for _ in range(3))

    units = 8 if not case.startswith("tasks") else 64  # edges
    small, large = seconds(size), seconds(8 * size)
    assert large < 3 * units * max(small, 0.002)


def test_files_that_all_tasks_share_are_refused_before_they_are_joined() -> None:
    task = '{"id": "t%d", "inputFiles": ["f"], "outputFiles": ["f"]}'
    tasks = ",".join(task % number for number in range(4_000))
    document = f'{{"schemaVersion": "1.5", "workflow": {{"specification": {{"tasks": [{tasks}]}}}}}}'
    with pytest.raises(InvalidInput, match="files join tasks 16,000,000 times"):
        read_wfformat([document])


def test_members_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_walk, "MOST_MEMBERS", 1_000)
    assert len(list(walk([b"[" + b"1," * 999 + b"1]"], [""]))) == 1_000
    with pytest.raises(InvalidInput, match="at most 1,000 members"):
        list(walk([b"[" + b"1," * 1_001], [""]))


@pytest.mark.parametrize("number", ["1.5", "-12.25e+3", "1E-7", "0.5"])
def test_a_number_may_be_cut_anywhere(number: str) -> None:
    for at in range(1, len(number)):
        document = f'{{"a": {number}}}'.encode()
        cut = 6 + at
        assert [node.value for node in walk([document[:cut], document[cut:]], [""])] == [float(number)]


@pytest.fixture
def cluster(client: TestClient) -> str:
    client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [NODE]})
    return "/workloads/cluster/samples"


async def _post(
    app: Any, path: str, receive: Callable[[], Awaitable[dict[str, Any]]], *headers: tuple[bytes, bytes]
) -> None:
    """An upload of which the service is told what ``receive`` says, whose answer nobody reads."""

    async def send(_: Any) -> None:
        return

    scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": path, "raw_path": path.encode(),
             "query_string": b"", "headers": [(b"host", b"test"), *headers], "root_path": "", "scheme": "http",
             "server": ("test", 80), "client": ("test", 1), "state": {}}  # fmt: skip
    await app(scope, receive, send)


def test_whole_executions_are_kept_of_what_was_read_before_a_client_went(
    client: TestClient, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, chunks = csv_of({f"run-{i:02}": 90 for i in range(40)}).encode(), Body.chunks
    messages = iter([{"type": "http.request", "body": body[: len(body) * 3 // 4], "more_body": True}])
    path = f"/workloads/{workload}/samples"

    async def upload() -> None:
        loop, read = asyncio.get_running_loop(), asyncio.Event()

        def read_chunks(self: Body) -> Iterator[bytes]:
            for chunk in chunks(self):
                yield chunk
                loop.call_soon_threadsafe(read.set)

        async def receive() -> dict[str, Any]:
            message = next(messages, None)
            if message is None:
                await read.wait()
            return message or {"type": "http.disconnect"}

        monkeypatch.setattr(Body, "chunks", read_chunks)
        await _post(client.app, path, receive, (b"content-type", b"text/csv"))

    asyncio.run(upload())
    items = client.get(path).json()["items"]
    assert {item["iterations"] for item in items} == {90}
    assert len(items) in {29, 30}  # the last may go on


def test_a_client_that_goes_ends_the_reading(client: TestClient, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces, unzip = 0, stream.decompress

    messages = iter([{"type": "http.request", "body": gzip.compress(b"\n" * (200 * PIECE)), "more_body": False}])

    async def upload() -> None:
        loop, gone, signal_sent = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        async def receive() -> dict[str, Any]:
            message = next(messages, None)
            if message is None:
                await gone.wait()
                signal_sent.set()
            return message or {"type": "http.disconnect"}

        def counted(chunks: Any) -> Iterator[bytes]:
            nonlocal pieces
            for piece in unzip(chunks):
                pieces += 1
                if pieces == 3:
                    loop.call_soon_threadsafe(gone.set)
                    assert signal_sent.wait(60)
                yield piece

        monkeypatch.setattr(service, "decompress", counted)
        await _post(
            client.app, cluster, receive, (b"content-type", b"application/x-swf"), (b"content-encoding", b"gzip")
        )

    asyncio.run(upload())
    assert 3 <= pieces < 100


def test_blank_lines_cost_no_work_each(client: TestClient, backend: Database) -> None:
    assert client.post("/workloads", json=EXAMPLE).status_code == 201
    first, second = (SAMPLE.replace("run-17", name).encode() for name in "ab")
    lines, calls = 64 * PIECE, 0
    packed = gzip.compress(b"\n" * lines + first + b" \n" * lines + second)

    def count(_frame: object, _event: str, _argument: object) -> None:
        nonlocal calls
        calls += 1

    upload = service.Upload(
        "application/x-ndjson", iter([packed]), gzip=True, limit_bytes=10**9, json_limit_bytes=10**9
    )
    sys.setprofile(count)
    try:
        result = service.upload(backend, "default", EXAMPLE["name"], upload)
    finally:
        sys.setprofile(None)
    assert result.accepted == 2
    assert calls < lines / 100


def test_a_time_that_has_run_out_ends_the_reading(backend: Database, cluster: str) -> None:
    assert cluster
    read = iter([b";\n"] * 1000)
    upload = service.Upload("application/x-swf", read, gzip=False, limit_bytes=10**6, json_limit_bytes=10**6)
    token = commit_deadline.set(time.monotonic() - 1)
    try:
        with pytest.raises(DeadlinePassed):
            service.upload(backend, "default", "cluster", upload)
    finally:
        commit_deadline.reset(token)
    assert len(list(read)) >= 998


class Large:
    """Something that takes much memory."""


def test_an_error_lets_go_of_what_was_read() -> None:
    refs: list[weakref.ref[Large]] = []

    def work() -> None:
        large = Large()
        refs.append(weakref.ref(large))
        try:
            int(str(large))
        except ValueError as error:
            raise KeyError from error

    with pytest.raises(KeyError) as caught:
        returning(work)
    assert refs[0]() is None
    assert caught.value.__cause__ is not None


async def test_an_upload_that_sends_nothing_any_more_gives_its_thread_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "SILENT_SECONDS", 0.05)
    messages: list[Any] = [{"type": "http.request", "body": b"execution", "more_body": True}]

    async def receive() -> Any:
        return messages.pop(0) if messages else await asyncio.sleep(60)

    here = Body(receive)
    feeding = asyncio.create_task(here.feed())
    with pytest.raises(BadRequest, match="no data was received for"):
        await anyio.to_thread.run_sync(lambda: list(here.chunks()))
    feeding.cancel()


async def test_uploads_of_one_tenant_that_stand_still_keep_no_other_waiting(
    settings: Settings, database: Database
) -> None:
    app, over = create_app(settings, database), asyncio.Event()
    secrets = {}
    for tenant in ("slow", "quick"):
        workloads.register(database, tenant, Spec.model_validate(EXAMPLE))
        secrets[tenant] = keys.create(database, tenant, KeyRequest(scopes=["admin"]), "test").key

    async def stalled() -> AsyncIterator[bytes]:
        yield csv_of({"a": 1}).encode()
        await over.wait()

    def of(tenant: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {secrets[tenant]}", "Content-Type": "text/csv"}
        transport = httpx.ASGITransport(app=app)
        return httpx.AsyncClient(transport=transport, base_url="http://steward", timeout=60, headers=headers)

    path = "/workloads/resnet18/samples"
    async with of("slow") as slow, of("quick") as quick:
        waits = [asyncio.create_task(slow.post(path, content=stalled())) for _ in range(20)]
        await asyncio.sleep(0.1)
        answer = await quick.post(path, content=csv_of({"b": 2}).encode())
        assert (answer.status_code, answer.json()["accepted"]) == (201, 1)
        assert not any(one.done() for one in waits)
        over.set()
        assert {one.status_code for one in await asyncio.gather(*waits)} == {201}
