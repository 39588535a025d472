"""What a service has stored: workloads, runs, agents and jobs as objects, and lists of them as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from html import escape
from importlib import import_module
from itertools import islice
from typing import Any, Self
from urllib.parse import quote, urlencode

from typing_extensions import override

from .answers import document
from .display import Service, Shown, Summary, address, choose_service
from .errors import ClientError, StewardError
from .jobs import Job
from .live import open_http
from .retry import Retry

PAGE_ROWS, MOST_ROWS, ROWS_SHOWN = 500, 1_000, 30
COMPLETION_SECONDS = 2.0
"""Patience of a completion: an unreachable service must not block a prompt."""
NOT_FOUND = 404
TIMES = ("created_at", "started_at", "finished_at", "reported_at", "decided_at")
RUN_COLUMNS = (
    "id",
    "workload",
    "state",
    "outcome",
    "outcome_reason",
    "agent",
    "iterations",
    "created_at",
    "finished_at",
)
JOB_COLUMNS = ("id", "type", "workload", "state", "progress", "created_at", "started_at", "finished_at")
OF_THE_RUN = ("kind", "run", "workload", "iteration", "reported")
"""Members of a decision that are the run's, or its iteration's."""
SINGULAR = {"metrics": "metric", "features": "feature"}
"""Prefixes of columns, as in the service's CSV of samples."""


class Rows(list[dict[str, Any]]):
    """A table as a list of dictionaries with the same keys; ``to_pandas`` and ``to_polars`` make a data frame of it.

    ::

        rows = steward.runs("resnet18")
        rows.to_pandas().groupby("outcome").size()
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        items = list(rows)
        columns = dict.fromkeys(name for row in items for name in row)
        super().__init__({name: row.get(name) for name in columns} for row in items)

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order; empty without rows."""
        return list(self[0]) if self else []

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``; raises ImportError if pandas isn't installed."""
        return _library("pandas").DataFrame(list(self))

    def to_polars(self) -> Any:
        """The rows as a ``polars.DataFrame``; raises ImportError if polars isn't installed."""
        return _library("polars").DataFrame(list(self), infer_schema_length=None, strict=False)

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        cells = ["".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) for row in self[:ROWS_SHOWN]]
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = f"<p>{len(self) - ROWS_SHOWN} more rows</p>" if len(self) > ROWS_SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed: pip install {name}; the rows are a list of dicts") from error


class Reader:
    """Reads from one service; a new connection for each call or list.

    Args:
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        retry: how calls are repeated while the service is unreachable.
    """

    def __init__(self, client: Service, retry: Retry | None) -> None:
        self.client, self.retry = client, retry or Retry()

    def get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path of the API; raises StewardError if it is refused, Unreachable if none comes."""
        with open_http(self.client) as http:
            return self.retry.call(http, "GET", path, document)

    def items(self, path: str, limit: int | None = None, **query: object) -> Iterator[dict[str, Any]]:
        """Yield the items of a list, at most ``limit`` (None: all), page by page.

        Raises:
            ValueError: ``limit`` is below 1.
            StewardError, Unreachable: the service refused the call, or didn't respond in time.
        """
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, or None for all, not {limit!r}")
        rows = PAGE_ROWS if limit is None else min(limit, PAGE_ROWS)
        values = {name: value for name, value in query.items() if value is not None}
        page: str | None = f"{path}?{urlencode({**values, 'limit': rows})}"
        with open_http(self.client) as http:
            while page is not None:
                result = self.retry.call(http, "GET", page, document)
                yield from result["items"] if limit is None else result["items"][:limit]
                limit = None if limit is None else limit - len(result["items"])
                page = None if limit is not None and limit <= 0 else result["next"]


def history(client: Service, run: str, retry: Retry | None = None) -> Rows:
    """The reported iterations of a run with their decisions, in order, a row each; raises StewardError, Unreachable.

    Columns: ``iteration``, ``reported_at``, ``allocation.<resource>``, ``metric.<name>``, ``feature.<name>`` as
    reported; then the answer: ``decision.source``, ``decision.reason``, ``decision.allocation.<resource>``, …
    """
    return Rows(map(_iteration_row, Reader(client, retry).items(f"/runs/{quote(run, safe='')}/iterations")))


def _iteration_row(item: Mapping[str, Any]) -> dict[str, Any]:
    report = {name: value for name, value in item["report"].items() if name != "kind"}
    decision = {name: value for name, value in item["decision"].items() if name not in OF_THE_RUN}
    reason = decision.get("reason")
    if isinstance(reason, Mapping):
        decision["reason"] = reason.get("text")
    row = {"iteration": item["iteration"], "reported_at": _parsed("reported_at", item["reported_at"])}
    return row | dict(_flat("", report)) | dict(_flat("decision.", decision))


def _flat(prefix: str, result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of nested objects, with names joined by dots; empty lists and objects are left out."""
    for name, value in result.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{SINGULAR.get(name, name)}.", value)
        elif value != []:
            yield f"{prefix}{name}", _parsed(name, value)


def _parsed(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in TIMES and isinstance(value, str) else value


def _row(item: Mapping[str, Any], columns: Iterable[str], url: str) -> dict[str, Any]:
    return {name: _parsed(name, item.get(name)) for name in columns} | {"url": url}


def runs(
    workload: str | None = None,
    client: Service = None,
    *,
    url: str | None = None,
    state: str | None = None,
    outcome: str | None = None,
    limit: int | None = MOST_ROWS,
    retry: Retry | None = None,
) -> Rows:
    """The service's runs, newest first, a row each.

    ::

        print(steward.runs("resnet18", outcome="missed").to_pandas())

    Args:
        workload: name of a workload; None: the runs of all.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        url: the service's address, instead of ``client``.
        state: ``running``, ``finished``, ``failed`` or ``cancelled``; None: any.
        outcome: ``on_track``, ``at_risk``, ``stale``, ``met``, ``missed``, ``failed``, ``cancelled``,
            ``cap_reached`` or ``completed``; None: any.
        limit: most rows; None: all.
        retry: how calls are repeated while the service is unreachable.

    Raises:
        StewardError: there is no such workload, or another value is accepted.
        Unreachable: the service didn't respond in time.
    """
    return Steward(client, url=url, retry=retry).runs(workload, state=state, outcome=outcome, limit=limit)


class Stored(Shown):
    """Something that the service has stored; the members of the API's document on it are attributes.

    Args:
        service: the service.
        path: its path in the API.
        result: the document on it.
    """

    def __init__(self, service: Steward, path: str, result: Mapping[str, Any]) -> None:
        self._service, self._path, self._found = service, path, dict(result)

    @property
    def url(self) -> str:
        """The URL of the object's page on the dashboard."""
        return f"{self._service.url}/ui{self._path}"

    @property
    def members(self) -> dict[str, Any]:
        """All members of the API's document on the object, by name, as read last."""
        return dict(self._found)

    def refresh(self) -> Self:
        """Read the object again, and return it; raises StewardError if it is gone, Unreachable without a response."""
        self._found = self._service.reader.get(self._path)
        return self

    def __getattr__(self, name: str) -> Any:
        result = self.__dict__.get("_found", {})
        if name not in result:
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}; it has {', '.join(result)}", name=name, obj=self
            )
        return _parsed(name, result[name])

    def __dir__(self) -> list[str]:
        return sorted({*(name for name in super().__dir__() if not name.startswith("_")), *self._found})


class StoredRun(Stored):
    """A run, live or ended: ``outcome``, ``iterations``, ``decision``, …

    ::

        run = steward.Steward().run("5f…")
        run.history().to_pandas().plot(x="iteration", y="metric.iteration_seconds")
    """

    def history(self) -> Rows:
        """A row per iteration: ``iteration``, ``reported_at``, ``metric.<name>``, ``allocation.<resource>``,
        ``decision.reason``, …; raises StewardError if the run is gone, and Unreachable if nothing responds in time."""
        return history(self._service.reader.client, self._found["id"], self._service.reader.retry)

    @override
    def _summary(self) -> Summary:
        result = self._found
        return Summary(
            result["id"], {name: result.get(name) for name in ("workload", "outcome", "iterations")}, self.url
        )


class Agent(Stored):
    """A trained agent: ``algorithm``, ``champion``, ``status``, ``report``, …

    ::

        for agent in steward.Steward().workloads["resnet18"].agents():
            print(agent.version, agent.report["reason"])
    """

    @override
    def _summary(self) -> Summary:
        result = self._found
        members = {name: result.get(name) for name in ("workload", "algorithm", "champion")}
        return Summary(str(result["version"]), members, self.url)


class Workload(Stored):
    """A registered workload: ``kind``, ``spec``, ``champion``, …

    ::

        workload = steward.Steward().workloads.resnet18
        print(workload.champion, workload.runs(outcome="missed"))
    """

    def runs(self, **query: Any) -> Rows:
        """The workload's runs as rows, newest first; ``state``, ``outcome`` and ``limit`` (most rows) restrict them.
        Raises ValueError if ``limit`` is below 1, StewardError for an unknown value, Unreachable without a response."""
        return self._service.runs(self._found["name"], **query)

    def agents(self) -> list[Agent]:
        """The workload's agents, newest first; raises StewardError if the service refuses (as if the workload is gone),
        and Unreachable if it doesn't respond in time."""
        result = self._service.reader.items(f"{self._path}/agents")
        return [Agent(self._service, f"{self._path}/agents/{one['version']}", one) for one in result]

    @override
    def _summary(self) -> Summary:
        return Summary(self._found["name"], {name: self._found.get(name) for name in ("kind", "champion")}, self.url)


class Workloads(Mapping[str, Workload]):
    """A service's workloads by name, as items and, where the name allows it, as attributes; read when accessed.

    Raises KeyError or AttributeError for an unknown name, StewardError if the service refuses a call, and Unreachable
    if it doesn't respond in time."""

    def __init__(self, service: Steward) -> None:
        self._service = service

    def __getitem__(self, name: str) -> Workload:
        return self._read(name, self._service.reader)

    def _read(self, name: str, reader: Reader) -> Workload:
        path = f"/workloads/{quote(name, safe='')}"
        try:
            return Workload(self._service, path, reader.get(path))
        except StewardError as error:
            if error.status != NOT_FOUND:
                raise
            known = ", ".join(islice(self, 20)) or "none"
            raise KeyError(f"no workload {name!r} at {self._service.url}; registered: {known}") from error

    def __iter__(self) -> Iterator[str]:
        return (workload["name"] for workload in self._service.reader.items("/workloads"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> Workload:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._read(name, self._quick)
        except (KeyError, ClientError) as error:
            raise AttributeError(str(error.args[0] if error.args else error), name=name, obj=self) from error

    def __dir__(self) -> list[str]:
        own = (name for name in super().__dir__() if not name.startswith("_"))
        return [*own, *(name for name in self._names() if name.isidentifier())]

    def _ipython_key_completions_(self) -> list[str]:
        return self._names()

    def _names(self) -> list[str]:
        """Names for a completion, as far as the service responds quickly."""
        with suppress(ClientError):
            return [workload["name"] for workload in self._quick.items("/workloads", MOST_ROWS)]
        return []

    @property
    def _quick(self) -> Reader:
        """A reader that makes each call once and gives up soon, for a shell's completions."""
        return Reader(self._service.reader.client, Retry(patience_seconds=COMPLETION_SECONDS, attempts=1))

    def __repr__(self) -> str:
        return f"Workloads({', '.join(map(repr, self._names()))}; url={self._service.url!r})"


class Steward(Shown):
    """A service, to look at what it has stored.

    ::

        service = steward.Steward(url="http://127.0.0.1:8080")
        print(service.workloads.resnet18, service.runs(state="running"))

    Args:
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        url: the service's address, instead of ``client``.
        retry: how calls are repeated while the service is unreachable.

    Attributes:
        reader: reads from the service.
        url: the service's address, which is also that of its dashboard.
    """

    def __init__(self, client: Service = None, *, url: str | None = None, retry: Retry | None = None) -> None:
        self.reader = Reader(choose_service(client, url), retry)
        self.url = address(self.reader.client)

    @property
    def workloads(self) -> Workloads:
        """The service's workloads, by name; they are read from the service when accessed."""
        return Workloads(self)

    def runs(
        self,
        workload: str | None = None,
        *,
        state: str | None = None,
        outcome: str | None = None,
        limit: int | None = MOST_ROWS,
    ) -> Rows:
        """The service's runs as rows, newest first, at most ``limit`` (None: all), of a workload, state and outcome
        (None: any). Raises ValueError if ``limit`` is below 1, StewardError and Unreachable."""
        result = self.reader.items("/runs", limit, workload=workload, state=state, outcome=outcome)
        return Rows(_row(one, RUN_COLUMNS, f"{self.url}/ui/runs/{one['id']}") for one in result)

    def run(self, run: str) -> StoredRun:
        """A run by its id; raises StewardError if there is none, Unreachable if the service doesn't respond in time."""
        path = f"/runs/{quote(run, safe='')}"
        return StoredRun(self, path, self.reader.get(path))

    def jobs(self, workload: str | None = None, *, state: str | None = None, limit: int | None = MOST_ROWS) -> Rows:
        """The service's jobs as rows, newest first, at most ``limit`` (None: all). Raises ValueError if ``limit`` is
        below 1, StewardError and Unreachable."""
        result = self.reader.items("/jobs", limit, workload=workload, state=state)
        return Rows(_row(one, JOB_COLUMNS, f"{self.url}/ui/jobs/{one['id']}") for one in result)

    def job(self, job: str) -> Job:
        """A job by its id; raises StewardError if there is none, Unreachable if the service doesn't respond in time."""
        result = Job(job, self.reader.client, retry=self.reader.retry)
        result.read()
        return result

    @override
    def _summary(self) -> Summary:
        return Summary("", {}, self.url)
