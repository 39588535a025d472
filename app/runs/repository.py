"""SQL queries on runs and their iterations.

``append`` is on the hot path: it writes a batch of reports in one or two calls of the driver. Each report is written
only if the conditional update of its run finds the run where it was decided.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, delete, or_, select
from sqlalchemy.orm import Session, defer, load_only

from app.database.tables import Iteration, Run, Workload
from app.http.pagination import (
    AT_ONCE,
    HEAVIEST_PAGE,
    ROW,
    PageRequest,
    Slice,
    decode_cursor,
    encode_cursor,
    json_size,
    paginate,
)
from app.kinds.contract.run_outcome import RunOutcome
from app.runs import standing
from app.runs.outcomes import ATTENTION, Staleness, having, silence
from app.workloads.search import few_workloads, found_by, id_prefix, is_id_prefix

if TYPE_CHECKING:
    import psycopg

RUNNING = "running"


class Entry(msgspec.Struct, frozen=True):
    """The row of one report and its decision; JSON parts are already encoded.

    Attributes:
        run, iteration, tenant: run and number of the report, and the run's tenant.
        digest: hash of the report, which tells repetitions from other reports.
        state: the run's next state (JSON).
        packed: report and decision, compressed.
        drift: state of the drift test (JSON) and number of notices; None: unchanged.
        outcome: the run's outcome, its reason, and whether it is quiet; None: unchanged.
        spent: the run's cost and seconds, and what its next iteration is expected to add to each; None: unchanged.
        changes: number of changes of the start parameters by which it was decided.
    """

    run: str
    iteration: int
    tenant: str
    digest: str
    state: msgspec.Raw
    packed: bytes
    drift: tuple[msgspec.Raw, int] | None = None
    outcome: tuple[str, str | None, bool] | None = None
    spent: tuple[float, float, float, float] | None = None
    changes: int = 0


# PostgreSQL takes the whole batch as an array of each column in one statement, a transaction of its own, in one round
# trip; of a shorter array the rest is null. The limit leaves none out: it has the planner expect few rows, and find
# each run by its key. Plans are cached: one made for a small table would scan the table after it has grown.
# SQLite has no round trips, and is fastest row by row.
_APPEND_ALL = """
WITH moved AS (
  UPDATE runs SET next_iteration = next_iteration + 1, state_vector = input.state,
    drift = COALESCE(input.drift, runs.drift), drifts = COALESCE(input.drifts, runs.drifts),
    outcome = COALESCE(input.outcome, runs.outcome), quiet = COALESCE(input.quiet, runs.quiet),
    outcome_reason = CASE WHEN input.outcome IS NULL THEN runs.outcome_reason ELSE input.reason END,
    cost = COALESCE(input.cost, runs.cost), seconds = COALESCE(input.seconds, runs.seconds),
    next_cost = COALESCE(input.next_cost, runs.next_cost),
    next_seconds = COALESCE(input.next_seconds, runs.next_seconds)
  FROM (
    SELECT * FROM unnest(CAST(%(run)s AS text[]), CAST(%(iteration)s AS integer[]), CAST(%(digest)s AS text[]),
      CAST(%(state)s AS jsonb[]), CAST(%(packed)s AS bytea[]),
      CAST(%(drift)s AS jsonb[]), CAST(%(drifts)s AS integer[]),
      CAST(%(outcome)s AS text[]), CAST(%(reason)s AS text[]), CAST(%(quiet)s AS boolean[]),
      CAST(%(cost)s AS double precision[]), CAST(%(seconds)s AS double precision[]),
      CAST(%(next_cost)s AS double precision[]), CAST(%(next_seconds)s AS double precision[]),
      CAST(%(changes)s AS integer[]))
    AS entry(run, iteration, digest, state, packed, drift, drifts, outcome, reason, quiet,
      cost, seconds, next_cost, next_seconds, changes)
    LIMIT CAST(%(rows)s AS bigint)
  ) AS input
  WHERE runs.id = input.run AND runs.next_iteration = input.iteration AND runs.state = 'running'
    AND runs.changes = input.changes
  RETURNING runs.tenant, input.run, input.iteration, input.digest, input.packed
)
INSERT INTO iterations (run_id, iteration, tenant, digest, packed, reported_at)
SELECT run, iteration, tenant, digest, packed, %(now)s FROM moved
RETURNING run_id
"""
_ADVANCE_EACH = """
UPDATE runs SET next_iteration = next_iteration + 1, state_vector = ?{drift}{outcome}{spent}
WHERE id = ? AND next_iteration = ? AND state = 'running' AND changes = ?
"""
_DRIFT, _OUTCOME = ", drift = ?, drifts = ?", ", outcome = ?, outcome_reason = ?, quiet = ?"
_SPENT = ", cost = ?, seconds = ?, next_cost = ?, next_seconds = ?"
_INSERT_EACH = """
INSERT INTO iterations (run_id, iteration, tenant, digest, packed, reported_at) VALUES (?, ?, ?, ?, ?, ?)
"""


class OutrunError(Exception):
    """A run was advanced, changed, ended or deleted since its state was read; the transaction must be rolled back."""


def append(connection: psycopg.Connection | sqlite3.Connection, entries: Sequence[Entry], now: datetime) -> set[str]:
    """Write reports, at most one per run, and advance their runs; returns the ids of the runs written.

    On PostgreSQL, runs that have been advanced meanwhile are left out of the result.
    On SQLite, raises OutrunError if any run has been advanced meanwhile.
    """
    if isinstance(connection, sqlite3.Connection):
        return _append_each(connection.executemany, entries, now)
    # In one statement of PostgreSQL
    drifts = [entry.drift for entry in entries] if any(entry.drift is not None for entry in entries) else []
    outcomes = [entry.outcome for entry in entries] if any(entry.outcome is not None for entry in entries) else []
    columns: dict[str, Iterable[str | None]] = {
        "run": (entry.run for entry in entries),
        "iteration": (str(entry.iteration) for entry in entries),
        "digest": (entry.digest for entry in entries),
        "state": (str(entry.state, "utf-8") for entry in entries),
        "packed": (f"\\x{entry.packed.hex()}" for entry in entries),
        "drift": (None if drift is None else str(drift[0], "utf-8") for drift in drifts),
        "drifts": (None if drift is None else str(drift[1]) for drift in drifts),
        "outcome": (None if outcome is None else outcome[0] for outcome in outcomes),
        "reason": (None if outcome is None else outcome[1] for outcome in outcomes),
        "quiet": (None if outcome is None else str(outcome[2]) for outcome in outcomes),
        "changes": (str(entry.changes) for entry in entries),
    }
    for at, name in enumerate(("cost", "seconds", "next_cost", "next_seconds")):
        columns[name] = [None if entry.spent is None else repr(entry.spent[at]) for entry in entries]
    arrays = {name: _array(values) for name, values in columns.items()}
    written = connection.execute(_APPEND_ALL, {**arrays, "rows": len(entries), "now": now})
    return {run for (run,) in written}


def _array(values: Iterable[str | None]) -> str:
    """PostgreSQL's array literal of the values; three times as fast as its driver's adaptation of lists."""
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _append_each(executed: Callable[..., Any], entries: Sequence[Entry], now: datetime) -> set[str]:
    """Write reports and advance their runs, row by row in SQLite, by ``executed`` (runs a statement for many rows);
    returns the runs' ids. Raises OutrunError if any run has been advanced meanwhile."""
    moves: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}  # by the other columns that are set
    for e in entries:
        drift = () if e.drift is None else (str(e.drift[0], "utf-8"), e.drift[1])
        outcome = () if e.outcome is None else e.outcome
        sets = (_DRIFT if drift else "", _OUTCOME if outcome else "", _SPENT if e.spent else "")
        row = (str(e.state, "utf-8"), *drift, *outcome, *(e.spent or ()), e.run, e.iteration, e.changes)
        moves.setdefault(sets, []).append(row)
    for (drift_set, outcome_set, spent_set), rows in moves.items():
        statement = _ADVANCE_EACH.format(drift=drift_set, outcome=outcome_set, spent=spent_set)
        if executed(statement, rows).rowcount != len(rows):
            raise OutrunError
    moment = now.strftime("%Y-%m-%d %H:%M:%S.%f")
    executed(_INSERT_EACH, [(e.run, e.iteration, e.tenant, e.digest, e.packed, moment) for e in entries])
    return {entry.run for entry in entries}


def append_current(connection: Connection, entries: Sequence[Entry], now: datetime) -> set[str]:
    """Write only reports of runs not advanced meanwhile, under SQLite's write lock; returns ids of runs written."""
    expected = {entry.run: (entry.iteration, entry.changes) for entry in entries}
    query = select(Run.id, Run.next_iteration, Run.changes).where(Run.id.in_(expected), Run.state == RUNNING)
    current = {run for run, *columns in connection.execute(query) if expected[run] == tuple(columns)}
    if current:
        _append_each(connection.exec_driver_sql, [entry for entry in entries if entry.run in current], now)
    return current


_WITHOUT_STATE = defer(Run.state_vector)  # which is large for a run with a long queue
_AT_END = (Iteration.run_id == Run.id) & (Iteration.iteration == Run.next_iteration - 1)


_STANDING = (
    select(
        *(Run.id, Run.tenant, Run.workload_id, Run.state, Run.next_iteration, Run.start, Run.state_vector, Run.drift),
        *(Run.outcome, Run.outcome_reason, Run.quiet, Run.shadow_version, Run.changes, Workload.name, Workload.kind),
        *(Iteration.digest, Iteration.packed),
    )
    .join(Workload, Workload.id == Run.workload_id)
    .outerjoin(Iteration, _AT_END)
    .where(Run.id == bindparam("run"), Run.tenant == bindparam("tenant"))
)


def deciding_row(session: Session, tenant: str, run: str) -> Row[Any] | None:
    """Columns of a run needed for deciding, with its last iteration's (None before the first); None without a run."""
    return session.execute(_STANDING, {"run": run, "tenant": tenant}).one_or_none()


class LoadedRun(NamedTuple):
    """A run with its last iteration (None before the first) and its present outcome.

    Attributes:
        outcome: its outcome, as stored or derived.
        silent_seconds: seconds since its last report, or since its start.
        expected: expected seconds per iteration; None: unknown.
    """

    run: Run
    workload: str
    kind: str
    last: Iteration | None
    outcome: str
    silent_seconds: float
    expected: float | None


def _loaded_query(rule: Staleness) -> Select[*tuple[Any, ...]]:
    live = silence(rule)
    columns = (Run, Workload.name, Workload.kind, Iteration, live.outcome, live.silent_seconds, live.expected)
    return select(*columns).join(Workload, Workload.id == Run.workload_id).outerjoin(Iteration, _AT_END)


def load(session: Session, tenant: str, run: str, rule: Staleness) -> LoadedRun | None:
    """A run with its last iteration and present outcome (stale by ``rule``); None if there is no such run."""
    row = session.execute(_loaded_query(rule).where(Run.id == run, Run.tenant == tenant)).one_or_none()
    return LoadedRun(*row) if row is not None else None


def kind(session: Session, tenant: str, run: str) -> str | None:
    """The kind of a run's workload; None if there is no such run."""
    result = select(Workload.kind).join(Run, Workload.id == Run.workload_id).where(Run.id == run, Run.tenant == tenant)
    return session.scalar(result)


class Filter(NamedTuple):
    """Filter of a list of runs; None or empty: any.

    Attributes:
        search: first characters of a run's id (at least ``SHORTEST_ID``) or of its workload's name.
        until: latest start.
    """

    workload_id: str | None = None
    state: str | None = None
    outcomes: Sequence[RunOutcome] = ()
    search: str | None = None
    until: datetime | None = None


ALL = Filter()
Sort = Literal["-started", "started", "-duration", "duration", "-cost", "cost", "-outcome", "outcome"]
"""Order of a list of runs; “-”: the latest, longest, dearest or gravest first."""
STARTED: tuple[Sort, Sort] = ("-started", "started")
"""Orders that an index has; the others are made of the newest ``SORTED`` runs that match."""
SORTED = 500
GRAVEST_FIRST: tuple[RunOutcome, ...] = (*ATTENTION, "on_track", "cancelled", "completed", "met")


def list_runs(
    session: Session,
    tenant: str,
    request: PageRequest,
    rule: Staleness,
    chosen: Filter = ALL,
    sort: Sort = "-started",
) -> Slice[LoadedRun]:
    """One page of a tenant's runs that match ``chosen``, with last iterations; ``rule``: when a live run is stale.

    An order other than by start ranks the newest ``SORTED`` matching runs; runs without a cost come last. Its cursor is
    a place in the ranking and the moment of the first page: later pages rank the same runs, as of that moment, so that
    runs that start meanwhile, and time that passes, move none. A run whose outcome or cost changes can move. Raises
    Invalid for a foreign cursor.
    """
    wanted = _loaded_query(rule).options(_WITHOUT_STATE)

    def load(ids: Sequence[str]) -> dict[str, LoadedRun]:
        return {row[0].id: LoadedRun(*row) for row in session.execute(wanted.where(Run.id.in_(ids)))}

    if sort in STARTED:
        result = _matching(session, tenant, request, rule, chosen, descending=sort == "-started")
        return _light(result, load, lambda _, run: encode_cursor([run.created_at, run.id]))
    position: Sequence[Any] = (0, None) if request.cursor is None else decode_cursor(request.cursor, [int, datetime])
    first, until = max(0, position[0]), position[1]
    if until is not None:
        rule, chosen = rule._replace(now=lambda: until), chosen._replace(until=until)
    newest = _matching(session, tenant, PageRequest(SORTED), rule, chosen, descending=True).rows
    moment = until or max([rule.now(), *(run.created_at for run in newest[:1])])  # clocks differ
    ranked = _ranked(session, newest, sort, rule)
    rows, end = ranked[first : first + request.limit], first + request.limit
    following = encode_cursor([end, moment]) if end < len(ranked) else None
    return _light(Slice(rows, following), load, lambda place, _: encode_cursor([first + place + 1, moment]))


def _matching(
    session: Session, tenant: str, request: PageRequest, rule: Staleness, chosen: Filter, *, descending: bool
) -> Slice[Run]:
    """One page of runs by their start, with few columns. Several outcomes, or few workloads found by a search, are read
    one by one from their indexes and merged, because a database would sort all of their runs."""
    query = select(Run).options(load_only(Run.created_at)).where(Run.tenant == tenant)
    if chosen.until is not None:
        query = query.where(Run.created_at <= chosen.until)
    if chosen.workload_id is not None:
        query = query.where(Run.workload_id == chosen.workload_id)
    if chosen.state is not None:
        query = query.where(Run.state == chosen.state)
    some = [having(outcome, rule) for outcome in dict.fromkeys(chosen.outcomes)]
    parts: list[ColumnElement[bool]] = some if len(some) > 1 else []
    if chosen.search is not None:
        few = few_workloads(session, tenant, chosen.search)
        parts = [found_by(tenant, Run, chosen.search)] if few is None else [Run.workload_id == one for one in few]
        parts += [id_prefix(Run.id, chosen.search)] if few is not None and is_id_prefix(chosen.search) else []
    if some and (chosen.search is not None or len(some) == 1):
        query = query.where(or_(*some))
    if chosen.search is None and not parts:
        return paginate(session, query, [Run.created_at, Run.id], request, descending=descending)
    pages = [
        paginate(session, query.where(part), [Run.created_at, Run.id], request, descending=descending) for part in parts
    ]
    merged = {run.id: run for page in pages for run in page.rows}
    ordered = sorted(merged.values(), key=lambda run: (run.created_at, run.id), reverse=descending)
    if len(ordered) <= request.limit and all(page.cursor is None for page in pages):
        return Slice(ordered, None)
    rows = ordered[: request.limit]
    return Slice(rows, encode_cursor([rows[-1].created_at, rows[-1].id]))


def _ranked(session: Session, runs: Sequence[Run], sort: Sort, rule: Staleness) -> list[Run]:
    """The runs in the order ``sort``; those of equal rank, and those without a cost at the end, as they were."""
    by, ids, now = sort.removeprefix("-"), [run.id for run in runs], rule.now()
    ranks: Mapping[str, float | None]
    if by == "duration":
        ended = session.execute(select(Run.id, Run.created_at, Run.finished_at).where(Run.id.in_(ids)))
        ranks = {run: ((end or now) - start).total_seconds() for run, start, end in ended}
    elif by == "cost":
        spent = standing.of_runs(session, ids)
        stored = session.execute(select(Run.id, Run.savings).where(Run.id.in_(set(ids) - set(spent)))).all()
        ranks = {run: one.cost for run, one in spent.items()} | {run: standing.stored_cost(one) for run, one in stored}
    else:
        rows = session.execute(select(Run.id, silence(rule).outcome).where(Run.id.in_(ids))).all()
        ranks = {run: -GRAVEST_FIRST.index(outcome) for run, outcome in rows}
    sign = -1 if sort.startswith("-") else 1
    known = {run: sign * rank for run, rank in ranks.items() if rank is not None}
    return sorted(runs, key=lambda run: known.get(run.id, math.inf))


def _light(
    result: Slice[Run], load: Callable[[Sequence[str]], dict[str, LoadedRun]], cursor: Callable[[int, Run], str]
) -> Slice[LoadedRun]:
    """The first of the runs ``result``, up to ``HEAVIEST_PAGE`` bytes of JSON but at least one, with their last
    iterations, and the cursor of the next page: that after a run at a place, by ``cursor``. Runs that ``load`` (ids to
    runs by id) doesn't return are left out."""
    rows, weight = list[LoadedRun](), 0
    for first in range(0, len(result.rows), AT_ONCE):
        some = [run.id for run in result.rows[first : first + AT_ONCE]]
        known = load(some)
        for place, run in enumerate(some, first):
            if run not in known:
                continue  # deleted a moment ago
            loaded = known[run]
            weight += ROW + json_size([_decision(loaded), loaded.run.start, loaded.run.drift, loaded.run.savings])
            if rows and weight > HEAVIEST_PAGE:
                return Slice(rows, cursor(place - 1, result.rows[place - 1]))
            rows.append(loaded)
    return Slice(rows, result.cursor)


def _decision(loaded: LoadedRun) -> dict[str, Any]:
    return loaded.last.decision if loaded.last else loaded.run.decision


def iteration(session: Session, run: str, number: int) -> Iteration | None:
    """A run's reported iteration by its number; None if it was not reported."""
    return session.get(Iteration, (run, number))


def iterations(session: Session, run: str, request: PageRequest) -> Slice[Iteration]:
    """One page of a run's reported iterations, in order; raises Invalid for a foreign cursor."""
    statement = select(Iteration).where(Iteration.run_id == run)
    return paginate(session, statement, [Iteration.iteration], request, weigh=lambda row: row.size)


def add(session: Session, run: Run) -> None:
    """Insert a run and flush; raises IntegrityError if the database rejects the row."""
    session.add(run)
    session.flush()


def output(session: Session, run: str) -> str | None:
    """The stored last lines of a run's output; None: there are none."""
    row = session.scalar(select(Run.output).where(Run.id == run))
    return None if row is None else row.decode()


def remove(session: Session, run: str) -> None:
    """Delete a run in the caller's transaction; foreign keys delete its iterations. No effect without such a run."""
    session.execute(delete(Run).where(Run.id == run).execution_options(synchronize_session=False))


def present(session: Session, tenant: str, run: str) -> bool:
    """Whether the tenant has this run."""
    return session.scalar(select(Run.id).where(Run.id == run, Run.tenant == tenant)) is not None
