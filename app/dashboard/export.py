"""Export of lists as filtered, and of a run's iterations, as CSV: streamed page by page, with a bound on rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse
from typing_extensions import TypeVar

from app.charts.text import currency
from app.dashboard.lists import RunLine, run_lines
from app.dashboard.tables import FromEvaluationQuery, FromJobQuery, FromRunQuery
from app.evaluations import service as evaluations
from app.http.dependencies import FromDatabase, FromStaleness, Tenant
from app.http.pagination import NEWEST, PageRequest, Slice, join_pieces
from app.http.streams import PiecewiseResponse
from app.jobs import service as jobs
from app.kinds.columns import csv_writer
from app.runs import service as runs
from app.runs.repository import SORTED, STARTED

Item = TypeVar("Item")
Cells = Sequence[object]
PAGE = 100
MOST_ROWS = 50_000
RUN_COLUMNS = (
    *("id", "workload", "outcome", "outcome_reason", "iterations", "of_iterations", "elapsed_seconds"),
    *("deadline_seconds", "probability", "cost", "currency", "duration_seconds", "started", "ended"),
)
JOB_COLUMNS = (
    "id",
    "type",
    "workload",
    "state",
    "progress",
    "attempts",
    "created",
    "started",
    "ended",
    "result",
    "error",
)
EVALUATION_COLUMNS = ("id", "workload", "agent", "level", "reason", "created")

router = APIRouter(include_in_schema=False)


def paged(fetch: Callable[[PageRequest], Slice[Item]], size: int) -> Iterator[list[Item]]:
    """Pages of ``size`` items, at most ``MOST_ROWS`` items. Fetches the first page at once, and raises its errors."""
    first = fetch(PageRequest(size))

    def pages() -> Iterator[list[Item]]:
        result, count = first, 0
        while count + len(result.rows) < MOST_ROWS and result.cursor is not None:
            yield result.rows
            count += len(result.rows)
            result = fetch(PageRequest(size, result.cursor))
        yield result.rows[: MOST_ROWS - count]

    return pages()


def csv_response(name: str, columns: Sequence[str], rows: Iterable[Cells]) -> StreamingResponse:
    """A file ``name`` of CSV; cells that a spreadsheet would run as formulas are escaped, times are ISO 8601 in UTC."""
    write = csv_writer()

    def lines() -> Iterator[str]:
        yield write(columns)
        for row in rows:
            yield write([one.isoformat() if isinstance(one, datetime) else one for one in row])

    answer = PiecewiseResponse(join_pieces(lines()), "text/csv; charset=utf-8", stored=False)
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


@router.get("/ui/runs.csv")
def run_csv(database: FromDatabase, tenant: Tenant, rule: FromStaleness, query: FromRunQuery) -> StreamingResponse:
    """The list of runs as CSV, filtered and sorted as its page; raises NotFound if there is no such workload."""
    size = PAGE if query.sort in STARTED else SORTED  # each page of other orders ranks all of them
    pages = paged(lambda request: runs.list_runs(database, tenant, request, rule, *query), size)
    lines = (line for page in pages for line in run_lines(database, page, rule))
    return csv_response("runs.csv", RUN_COLUMNS, map(_run_cells, lines))


def _run_cells(one: RunLine) -> Cells:
    stands = one.stands
    return [
        *(one.id, one.workload, one.outcome, one.outcome_reason, one.iterations, stands.of, stands.elapsed),
        *(stands.deadline, one.chance, one.cost, None if one.cost is None else currency(), round(one.seconds, 3)),
        *(one.created_at, one.finished_at),
    ]


@router.get("/ui/jobs.csv")
def job_csv(database: FromDatabase, tenant: Tenant, query: FromJobQuery) -> StreamingResponse:
    """The list of jobs as CSV, filtered and sorted as its page; raises NotFound if there is no such workload."""
    *which, sort = query

    def fetch(request: PageRequest) -> Slice[jobs.JobRead]:
        result, names = jobs.list_jobs(database, tenant, request, *which, descending=sort == NEWEST)
        return Slice([jobs.to_response(job, names[job.workload_id]) for job in result.rows], result.cursor)

    rows = (
        [
            *(one.id, one.type, one.workload, one.state, one.progress, one.attempts, one.created_at, one.started_at),
            *(one.finished_at, text(one.result), (one.error or {}).get("detail")),
        ]
        for page in paged(fetch, PAGE)
        for one in page
    )
    return csv_response("jobs.csv", JOB_COLUMNS, rows)


@router.get("/ui/evaluations.csv")
def evaluation_csv(database: FromDatabase, tenant: Tenant, query: FromEvaluationQuery) -> StreamingResponse:
    """The list of evaluations as CSV, a row per agent; raises NotFound if there is no such workload."""
    workload, search, sort = query

    def fetch(request: PageRequest) -> Slice[Any]:
        result, names = evaluations.list_evaluations(
            database, tenant, request, workload, search, descending=sort == NEWEST
        )
        return Slice([evaluations.to_response(one, names[one.workload_id]) for one in result.rows], result.cursor)

    rows = (
        [one.id, one.workload, verdict.agent, verdict.level, verdict.reason, one.created_at]
        for page in paged(fetch, PAGE)
        for one in page
        for verdict in one.verdicts
    )
    return csv_response("evaluations.csv", EVALUATION_COLUMNS, rows)


# Iterations: reports and decisions differ by kind, so that columns are those of the first page.


REST = "more"
"""Column of members that the first page doesn't have, as JSON."""


@router.get("/ui/runs/{run}/iterations.csv")
def iteration_csv(
    run: Annotated[str, Path(max_length=64)], database: FromDatabase, tenant: Tenant
) -> StreamingResponse:
    """A run's iterations as CSV: reports and decisions by dotted names; raises NotFound if there is no such run."""

    def fetch(request: PageRequest) -> Slice[dict[str, object]]:
        result, _ = runs.iterations(database, tenant, run, request)
        rows = [
            {"iteration": one.iteration, "reported": one.reported_at}
            | flat({"report": one.report, "decision": one.decision})
            for one in result.rows
        ]
        return Slice(rows, result.cursor)

    pages = paged(fetch, PAGE)
    first = next(pages)
    columns = list(dict.fromkeys(["iteration", "reported", *(name for row in first for name in row)]))
    rows = (_iteration_cells(row, columns) for page in chain([first], pages) for row in page)
    return csv_response(f"run-{run[:8]}.csv", [*columns, REST], rows)


def _iteration_cells(row: Mapping[str, object], columns: Sequence[str]) -> Cells:
    rest = {name: value for name, value in row.items() if name not in columns}
    return [*(row.get(name) for name in columns), text(rest)]


def flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """A JSON object as cells by dotted name: numbers and texts as they are, lists as JSON."""
    result: dict[str, object] = {}
    for name, part in value.items():
        if isinstance(part, Mapping):
            result |= flat(part, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = text(part) if isinstance(part, list) else part
    return result


def text(value: object) -> str | None:
    """A value as JSON; None if it is empty."""
    return json.dumps(value, ensure_ascii=False) if value else None
