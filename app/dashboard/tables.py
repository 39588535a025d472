"""Lists of runs, jobs and evaluations: filters, search and order, all in the URL; pages by cursor; live tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from app.dashboard.lists import RunLine, run_lines
from app.dashboard.rendering import page
from app.database.engine import Database
from app.evaluations import service as evaluations
from app.http.dependencies import SLUG, FromDatabase, FromStaleness, Tenant
from app.http.pagination import NEWEST, Age, PageRequest
from app.jobs import service as jobs
from app.jobs.service import FINAL_STATES, JobRead, JobState
from app.kinds.contract.run_outcome import RunOutcome
from app.runs import service as runs
from app.runs.outcomes import Staleness
from app.runs.repository import Sort
from app.runs.service import RunState
from app.workloads.search import SEARCH

# What was chosen of a list.


LISTS_ROWS = 50
JobType = Literal["fit", "train", "evaluate"]


class Choice(NamedTuple):
    """A filter with a few values; ``several``: more than one can be chosen."""

    name: str
    values: Sequence[str]
    several: bool = False


class Chosen(NamedTuple):
    """Filters and order of a list; all of them are in the list's URL.

    Attributes:
        path: URL path of the list.
        query: query parameters by name; None or empty: not given.
        choices: filters with a few values.
        sorts: columns that the list can be ordered by.
    """

    path: str
    query: Mapping[str, str | Sequence[str] | None]
    choices: Sequence[Choice] = ()
    sorts: Sequence[str] = ("started",)

    @property
    def sort(self) -> str:
        """The order: a column, with “-” for descending."""
        return str(self.query["sort"])

    @property
    def filtered(self) -> bool:
        """Whether anything but the order is chosen."""
        return any(value for name, value in self.query.items() if name != "sort")

    def values(self, name: str) -> list[str]:
        """The chosen values of a filter."""
        entries = self.query.get(name) or ()
        return [entries] if isinstance(entries, str) else list(entries)

    def address(self, *, path: str | None = None, **other: Any) -> str:
        """URL of the list with some query parameters changed, None removes one; ``path``: of another path."""
        parameters = {name: value for name, value in {**self.query, **other}.items() if value}
        if parameters.get("sort") == NEWEST:
            del parameters["sort"]
        query_string = urlencode(parameters, doseq=True)
        return f"{path or self.path}?{query_string}" if query_string else path or self.path

    def toggled(self, choice: Choice, value: str | None) -> str:
        """URL of the list with a value of a filter added, or removed if it is chosen; None: with all values."""
        had = self.values(choice.name)
        others = [one for one in had if one != value] if choice.several else []
        chosen = others if value in had else [*others, value]
        other: dict[str, Any] = {choice.name: None if value is None else chosen}
        return self.address(**other)

    def sorted_by(self, column: str) -> str:
        """URL of the list in descending order of a column, or in ascending order if it is descending now."""
        order = column if self.sort == f"-{column}" else f"-{column}"
        return self.address(sort=order)

    def direction(self, column: str) -> str:
        """Value of ``aria-sort`` of a column's head."""
        return {column: "ascending", f"-{column}": "descending"}.get(self.sort, "none")

    def older(self, cursor: str | None) -> str | None:
        """URL of the next page; None after the last."""
        return None if cursor is None else self.address(cursor=cursor)

    def hidden(self) -> list[tuple[str, str]]:
        """Names and values that a form of the search and the order sends along."""
        return [(name, value) for name in self.query if name not in ("search", "sort") for value in self.values(name)]


Text = Annotated[str | None, Query(pattern=SEARCH)]
Workload = Annotated[str | None, Query(pattern=SLUG)]
Cursor = Annotated[str | None, Query(max_length=1024)]
Rows = Annotated[int | None, Query(ge=1, le=LISTS_ROWS)]


class RunQuery(NamedTuple):
    """Filter and order of a list of runs: by workload, state, outcomes and first characters (None or empty: any)."""

    workload: str | None = None
    state: RunState | None = None
    outcome: Sequence[RunOutcome] = ()
    search: str | None = None
    sort: Sort = "-started"

    @classmethod
    def from_query(
        cls,
        workload: Workload = None,
        state: RunState | None = None,
        outcome: Annotated[list[RunOutcome] | None, Query(max_length=len(get_args(RunOutcome)))] = None,
        search: Text = None,
        sort: Sort = "-started",
    ) -> RunQuery:
        """Dependency: the query parameters of the list."""
        return cls(workload, state, outcome or (), search, sort)

    @property
    def chosen(self) -> Chosen:
        """The list's URL and filters."""
        columns = tuple(one for one in get_args(Sort) if not one.startswith("-"))
        # Outcomes tell more than states, whose words partly are the same: a state is shown only once chosen
        states = [Choice("state", [self.state])] if self.state else []
        choices = [*states, Choice("outcome", get_args(RunOutcome), several=True)]
        return Chosen("/ui/runs", self._asdict(), choices, columns)


class JobQuery(NamedTuple):
    """Filter and order of a list of jobs: by workload, state, type and first characters (None or empty: any)."""

    workload: str | None = None
    state: JobState | None = None
    type: JobType | None = None
    search: str | None = None
    sort: Age = "-started"

    @classmethod
    def from_query(
        cls,
        workload: Workload = None,
        state: JobState | None = None,
        job_type: Annotated[JobType | None, Query(alias="type")] = None,
        search: Text = None,
        sort: Age = "-started",
    ) -> JobQuery:
        """Dependency: the query parameters of the list."""
        return cls(workload, state, job_type, search, sort)

    @property
    def chosen(self) -> Chosen:
        """The list's URL and filters."""
        choices = [Choice("state", get_args(JobState)), Choice("type", get_args(JobType))]
        return Chosen("/ui/jobs", self._asdict(), choices)


class EvaluationQuery(NamedTuple):
    """Filter and order of a list of evaluations: by workload and first characters (None or empty: any)."""

    workload: str | None = None
    search: str | None = None
    sort: Age = "-started"

    @classmethod
    def from_query(cls, workload: Workload = None, search: Text = None, sort: Age = "-started") -> EvaluationQuery:
        """Dependency: the query parameters of the list."""
        return cls(workload, search, sort)

    @property
    def chosen(self) -> Chosen:
        """The list's URL and filters."""
        return Chosen("/ui/evaluations", self._asdict())


FromRunQuery = Annotated[RunQuery, Depends(RunQuery.from_query)]
FromJobQuery = Annotated[JobQuery, Depends(JobQuery.from_query)]
FromEvaluationQuery = Annotated[EvaluationQuery, Depends(EvaluationQuery.from_query)]


# Tables of a page each, which are fetched again while something in them moves.


class RunTable(NamedTuple):
    """A table of runs.

    Attributes:
        older: URL of the next page; None: there is none.
        again: URL for updating the table; None once all runs have ended.
    """

    runs: Sequence[RunLine]
    chosen: Chosen
    older: str | None
    again: str | None


def run_table(database: Database, tenant: str, query: RunQuery, request: PageRequest, rule: Staleness) -> RunTable:
    """The runs of a query; ``rule``: when a live run is stale. Raises NotFound if there is no such workload, Invalid
    for a foreign cursor."""
    result, chosen = runs.list_runs(database, tenant, request, rule, *query), query.chosen
    lines = run_lines(database, result.rows, rule)
    again = chosen.address(part="true", cursor=request.cursor, rows=request.limit)
    return RunTable(lines, chosen, chosen.older(result.cursor), again if any(one.live for one in lines) else None)


class JobTable(NamedTuple):
    """A table of jobs: ``older`` is the URL of the next page, None: there is none; ``again`` that for updating the
    table, None once all jobs have ended."""

    jobs: Sequence[JobRead]
    chosen: Chosen
    older: str | None
    again: str | None


def job_table(database: Database, tenant: str, query: JobQuery, request: PageRequest) -> JobTable:
    """The jobs of a query; raises NotFound if there is no such workload, Invalid for a foreign cursor."""
    *which, sort = query
    result, names = jobs.list_jobs(database, tenant, request, *which, descending=sort == NEWEST)
    chosen, lines = query.chosen, [jobs.to_response(job, names[job.workload_id]) for job in result.rows]
    moving = any(job.state not in FINAL_STATES for job in lines)
    again = chosen.address(part="true", cursor=request.cursor, rows=request.limit) if moving else None
    return JobTable(lines, chosen, chosen.older(result.cursor), again)


router = APIRouter(include_in_schema=False)


@router.get("/ui/runs")
def run_list(
    database: FromDatabase,
    tenant: Tenant,
    rule: FromStaleness,
    query: FromRunQuery,
    cursor: Cursor = None,
    rows: Rows = None,
    part: bool = False,
) -> HTMLResponse:
    """One page of runs as HTML; with ``part`` only the table; raises NotFound for the workload, Invalid for the
    cursor."""
    table = run_table(database, tenant, query, PageRequest(rows or LISTS_ROWS, cursor), rule)
    return page("run_table.html" if part else "runs.html", section="runs", table=table, chosen=table.chosen)


@router.get("/ui/jobs")
def job_list(
    database: FromDatabase,
    tenant: Tenant,
    query: FromJobQuery,
    cursor: Cursor = None,
    rows: Rows = None,
    part: bool = False,
) -> HTMLResponse:
    """One page of jobs as HTML; with ``part`` only the table; raises NotFound for the workload, Invalid for the
    cursor."""
    table = job_table(database, tenant, query, PageRequest(rows or LISTS_ROWS, cursor))
    return page("job_table.html" if part else "jobs.html", section="jobs", table=table, chosen=table.chosen)


@router.get("/ui/evaluations")
def evaluation_list(
    database: FromDatabase, tenant: Tenant, query: FromEvaluationQuery, cursor: Cursor = None
) -> HTMLResponse:
    """One page of evaluations as HTML, with links to their reports; raises NotFound for the workload, Invalid for the
    cursor."""
    request, newest = PageRequest(LISTS_ROWS, cursor), query.sort == NEWEST
    result, names = evaluations.list_evaluations(
        database, tenant, request, query.workload, query.search, descending=newest
    )
    lines = [evaluations.to_response(one, names[one.workload_id]) for one in result.rows]
    older = query.chosen.older(result.cursor)
    return page("evaluations.html", section="evaluations", evaluations=lines, older=older, chosen=query.chosen)
