"""Frames of pandas and polars become samples, and jobs are waited for, in the application in this process."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pandas as pd
import pytest
import steward_client as steward
from steward_client import frames

from app import queue
from app.database.engine import Database
from app.jobs import lease
from app.settings import Settings
from tests.clients.test_run import Clock, Handler, clock, forwarded, through, workload

__all__ = ["clock", "forwarded", "workload"]
Columns = dict[str, list[Any]]
Make = Callable[[Columns], Any]


def columns(executions: int = 2, iterations: int = 3) -> Columns:
    rows = [(execution, iteration) for execution in range(executions) for iteration in range(iterations)]
    return {
        "execution": [f"run-{execution}" for execution, _ in rows],
        "iteration": [iteration for _, iteration in rows],
        "allocation.gpus": [4.0] * len(rows),
        "metric.iteration_seconds": [20.0 + iteration for _, iteration in rows],
        "feature.batch": [128] * len(rows),
    }


def of_polars(columns: Columns) -> Any:
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


@pytest.fixture(params=[pd.DataFrame, of_polars], ids=["pandas", "polars"])
def make(request: pytest.FixtureRequest) -> Make:
    param: Make = request.param
    return param


def test_a_frame_is_sent_in_pieces_and_counted(
    workload: str, forwarded: Handler, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "PIECE_ROWS", 4)
    pieces: list[bytes] = []
    whole = frames._pieces

    def ndjson(*values: Any) -> Iterator[bytes]:
        for piece in whole(*values):
            pieces.append(piece)
            yield piece

    monkeypatch.setattr(frames, "_pieces", ndjson)
    upload = steward.upload(workload, make(columns(3)), through(forwarded))
    assert upload == steward.Uploaded(3, 0, 0, 9, [])
    assert [piece.count(b"\n") for piece in pieces] == [1 + 4, 4, 1]
    assert steward.upload(workload, make(columns(3)), through(forwarded)).duplicate == 3


def test_a_frame_may_be_awaited_while_the_loop_goes_on(workload: str, forwarded: Handler, make: Make) -> None:
    answered = asyncio.Event()

    async def sent() -> tuple[steward.Uploaded, bool]:
        loop = asyncio.get_running_loop()

        def slowly(request: httpx.Request) -> httpx.Response:
            asyncio.run_coroutine_threadsafe(_set(answered), loop).result(60)  # the loop must be free for it
            return forwarded(request)

        return await steward.upload_async(workload, make(columns(3)), through(slowly)), answered.is_set()

    assert asyncio.run(sent()) == (steward.Uploaded(3, 0, 0, 9, []), True)


async def _set(event: asyncio.Event) -> None:
    event.set()


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("metric.iteration_seconds", None, "row 4, column 'metric.iteration_seconds': must be a number (got '')"),
        ("allocation.gpus", 99, "row 4, column 'allocation.gpus'"),
        ("feature.batch", "many", "row 4, column 'feature.batch': must be a number (got 'many')"),
        ("iteration", 7, "row 4, column 'iteration': must be 1"),
    ],
)
def test_what_is_wrong_is_named_by_row_and_column(
    workload: str, forwarded: Handler, make: Make, column: str, value: Any, text: str
) -> None:
    table = columns()
    table[column][4] = value
    if isinstance(value, str):
        table[column] = [str(one) for one in table[column]]
    with pytest.raises(steward.RejectedRows) as raised:
        steward.upload(workload, make(table), through(forwarded))
    assert text in str(raised.value)
    assert (raised.value.uploaded.accepted, raised.value.uploaded.rejected) == (1, 1)


def test_a_frame_of_which_nothing_is_right_is_told_so_too(workload: str, forwarded: Handler, make: Make) -> None:
    with pytest.raises(steward.RejectedRows, match=r"row 0, column 'allocation\.gpus'"):
        steward.upload(workload, make({**columns(), "allocation.gpus": [99] * 6}), through(forwarded))


def test_a_column_that_is_missing_is_named(workload: str, forwarded: Handler, make: Make) -> None:
    table = columns()
    del table["feature.batch"]
    with pytest.raises(steward.StewardError, match=r"feature\.batch: column is missing"):
        steward.upload(workload, make({**table, "colour": [1] * 6}), through(forwarded))


def test_an_empty_frame_is_refused(workload: str, forwarded: Handler, make: Make) -> None:
    with pytest.raises(steward.StewardError, match="holds no execution"):
        steward.upload(workload, make({name: [] for name in columns()}), through(forwarded))


def test_anything_else_is_no_frame(workload: str, forwarded: Handler) -> None:
    with pytest.raises(TypeError, match="DataFrame of pandas or polars, not dict"):
        steward.upload(workload, {}, through(forwarded))


@pytest.fixture
def job(workload: str, forwarded: Handler, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> steward.Job:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)
    steward.upload(workload, pd.DataFrame(columns()), through(forwarded))
    return steward.fit(workload, through(forwarded), retry=clock.retry(), seed=3)


@pytest.fixture
def worked(job: steward.Job, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the client sleeps, the job is a step further: taken up, half done, done."""
    slept = clock.sleep

    def work() -> Any:
        current = lease.claim(database, job.id, "worker", Settings())
        assert current is not None
        yield
        lease.progress(database, current, 0.5, 3.0, {}, None)
        yield
        with database.session() as session:
            lease.finish(session, current, {"model": 1})
        yield

    steps = work()

    def sleep(seconds: float) -> None:
        slept(seconds)
        next(steps)

    job._retry = steward.Retry(sleep=sleep, clock=lambda: clock.now)


@pytest.mark.usefixtures("worked")
def test_a_job_is_waited_for_with_lines_on_a_pipe(job: steward.Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.wait(progress=True) == {"model": 1}
    assert [line.removeprefix(f"job {job.id}: ") for line in capsys.readouterr().err.splitlines()] == [
        "queued, 0%",
        "running, 0%",
        "running, 50%, 3 s left",
        "succeeded, 100%",
    ]


@pytest.mark.usefixtures("worked")
@pytest.mark.parametrize("rich", [True, False])
def test_a_bar_is_drawn_on_a_terminal_where_rich_is_there(
    job: steward.Job, monkeypatch: pytest.MonkeyPatch, rich: bool
) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    job.wait(progress=True)
    assert ("━" in terminal.getvalue()) is rich
    assert "100%" in terminal.getvalue()


@pytest.mark.usefixtures("worked")
def test_a_job_may_be_awaited_and_says_nothing_unasked(job: steward.Job, capsys: pytest.CaptureFixture[str]) -> None:
    async def awaited() -> dict[str, Any]:
        return await job

    assert asyncio.run(awaited()) == {"model": 1}
    assert capsys.readouterr().err == ""


def test_a_job_that_is_cancelled_raises(job: steward.Job) -> None:
    job.cancel()
    with pytest.raises(steward.JobFailed, match="cancelled") as raised:
        job.wait()
    assert raised.value.job is job


def test_waiting_ends_in_time(job: steward.Job, clock: Clock) -> None:
    with pytest.raises(TimeoutError, match="goes on after 9 s: queued"):
        job.wait(timeout_seconds=9)
    assert clock.now <= 9


@pytest.mark.parametrize("ask", [steward.train, steward.evaluate])
def test_a_job_that_is_refused_says_why(workload: str, forwarded: Handler, ask: Callable[..., steward.Job]) -> None:
    with pytest.raises(steward.StewardError, match="409"):
        ask(workload, through(forwarded))
