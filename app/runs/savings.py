"""Cost that finished runs saved against other allocations: computed once when a run ends, summed by month."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, Field
from sqlalchemy import RowMapping, Select, case, func, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.database.engine import Database
from app.database.tables import ADVISED, SAVED, Run, Workload
from app.decisions.service import by_rule
from app.kinds.contract.kind import no_savings
from app.kinds.contract.savings import Estimate, Savings
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.samples.service import reports_of_run

logger = logging.getLogger(__name__)

ADVISE = "advise"
MONTHS = 24
"""Months in an answer, the newest first."""
FIXED = ("largest", "best_fixed")
AGAINST = (*FIXED, "advised")
"""What a run is compared with: fields of ``Savings``."""


class MonthlySavings(BaseModel):
    """Finished runs of one month and mode, summed; bounds are sums of bounds, as the runs share a model's errors."""

    month: str = Field(description="Month in which they ended, UTC.", examples=["2026-11"])
    mode: Literal["control", "advise"] = Field(description="`advise`: recommendations were not applied.")
    runs: int = Field(description="Number of finished runs with savings.")
    met: int = Field(description="Number of them that met their targets.")
    cost: float = Field(description="Cost of the runs.")
    largest: Estimate | None = Field(
        description="Cost that they saved against the largest allocation, held throughout; null: of no run is it known."
    )
    largest_runs: int = Field(description="Number of runs that `largest` sums: those with measurements there.")
    best_fixed: Estimate | None = Field(
        description="Cost that they saved against the best allocation to hold; null: of no run is it known."
    )
    best_fixed_runs: int = Field(description="Number of runs that `best_fixed` sums.")
    advised: Estimate | None = Field(
        description="Cost of the recommendations, had they been applied, minus the runs' own: below 0 where they would "
        "have saved; null in mode `control`."
    )
    advised_runs: int = Field(description="Number of runs that `advised` sums: long ones are not replayed.")


class StoppedRuns(BaseModel):
    """Runs of one month that were stopped at a cap; they have no savings."""

    month: str = Field(description="Month in which they ended, UTC.", examples=["2026-11"])
    runs: int
    cost: float


class WorkloadSavings(BaseModel):
    """Savings of a workload's finished runs, by month."""

    workload: str
    stopped: list[StoppedRuns] = Field(description="Runs stopped at a cap, newest first, at most 24 months.")
    months: list[MonthlySavings] = Field(description="Newest first, at most 24 months.")


class month_of(FunctionElement[str]):  # noqa: N801 - named as a function of SQL
    """SQL function: the month of a time, in UTC, as ``YYYY-MM``."""

    inherit_cache = True


@compiles(month_of, "sqlite")
def _on_sqlite(element: month_of, compiler: SQLCompiler, **options: Any) -> str:
    (moment,) = (compiler.process(part, **options) for part in element.clauses)
    return f"strftime('%Y-%m', {moment})"


@compiles(month_of, "postgresql")
def _on_postgresql(element: month_of, compiler: SQLCompiler, **options: Any) -> str:
    (moment,) = (compiler.process(part, **options) for part in element.clauses)
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM')"


def settle(database: Database, run: str, compiled: Compiled | str, now: datetime) -> Savings | None:
    """Compute and store what a finished run saved; None if that can't be computed. Never raises: the run has ended.

    Stored savings are left unchanged. ``compiled``: the compiled workload, or why it can't be read; ``now``: time at
    which a run of mode ``advise`` is replayed.
    """
    if isinstance(compiled, str) or (kind := KINDS[compiled.snapshot.spec.kind]).savings is no_savings:
        return None
    try:
        with database.reading() as session:
            row = session.get(Run, run)
            if row is None or (row.kept_from or 0) != row.decision["iteration"]:
                return None  # deleted a moment ago, or without its first reports
            start, reports = row.start, [report for _, report in reports_of_run(session, run)]
        if rule := start.get("policy"):
            compiled = by_rule(compiled, rule)
        savings = kind.savings(compiled, start, reports, now if start.get("mode") == ADVISE else None)
        if savings is not None:
            values = {"savings": Savings.model_validate(savings).model_dump(mode="json")}
            with database.session() as session:
                session.execute(update(Run).where(Run.id == run, Run.savings.is_(None)).values(values))
    except Exception:  # whatever a kind from outside, or the database, may raise
        logger.exception("what run %s saved can't be computed", run)
        return None
    return savings


def by_month(session: Session, workload_id: str, workload: str, now: datetime) -> WorkloadSavings:
    """Savings of a workload's finished runs, by mode and month: that of ``now`` and the ``MONTHS`` - 1 before it."""
    first = now.year * 12 + now.month - MONTHS
    since = datetime(first // 12, first % 12 + 1, 1, tzinfo=UTC)
    month, mode = month_of(Run.finished_at), case((ADVISED, ADVISE), else_="control")
    columns = [
        month.label("month"),
        mode.label("mode"),
        func.count().label("runs"),
        func.sum(case((Run.outcome == "met", 1), else_=0)).label("met"),
        func.sum(_number("cost")).label("cost"),
        *(func.count(_number(course, "saved", "value")).label(f"{course}_runs") for course in AGAINST),
    ]
    for course in AGAINST:
        for part in ("value", "low", "high"):
            number = _number(course, "saved", part)
            bounded = func.count(number) == func.count(_number(course, "saved", "value"))
            columns.append(case((bounded, func.sum(number)), else_=None).label(f"{course}_{part}"))
    query: Select[Any] = (
        select(*columns)
        .where(Run.workload_id == workload_id, SAVED, Run.finished_at >= since)
        .group_by(month, mode)
        .order_by(month.desc(), mode)
    )
    capped = (
        select(month.label("month"), func.count().label("runs"), func.sum(Run.cost).label("cost"))
        .where(Run.workload_id == workload_id, Run.outcome == "cap_reached", Run.finished_at >= since)
        .group_by(month)
        .order_by(month.desc())
    )
    return WorkloadSavings(
        workload=workload,
        stopped=[StoppedRuns.model_validate(dict(row)) for row in session.execute(capped).mappings()],
        months=[_read(row) for row in session.execute(query).mappings()],
    )


class Saved(NamedTuple):
    """Cost that runs saved against an allocation, their number, and that of runs without a measurement there."""

    cost: float
    runs: int
    unmeasured: int


def saved_since(session: Session, tenant: str, since: datetime) -> dict[str, dict[str, Saved]]:
    """Cost saved by a tenant's runs that finished since ``since`` and applied their decisions: by workload id, against
    the `largest` and the best fixed allocation (`best_fixed`). Workloads without such runs are missing."""
    sums = list[Any]()
    for name in FIXED:
        known = _number(name, "saved", "value")
        sums += [func.coalesce(func.sum(known), 0.0), func.count(known), func.count() - func.count(known)]
    owned = Run.workload_id.in_(select(Workload.id).where(Workload.tenant == tenant))  # as the index needs
    query = select(Run.workload_id, *sums).where(owned, SAVED, Run.finished_at >= since, ~ADVISED)
    rows = session.execute(query.group_by(Run.workload_id))
    return {
        workload: {name: Saved(*values[3 * at : 3 * at + 3]) for at, name in enumerate(FIXED)}
        for workload, *values in rows
    }


def total(saved: Mapping[str, Mapping[str, Saved]]) -> dict[str, Saved]:
    """Sums of ``saved`` over all workloads, against the allocations `largest` and `best_fixed`; 0 without workloads."""
    nothing = Saved(0.0, 0, 0)
    return {name: Saved(*map(sum, zip(nothing, *(one[name] for one in saved.values()), strict=True))) for name in FIXED}


def _number(*path: str) -> Any:
    return Run.savings[path].as_float()


def _read(row: RowMapping) -> MonthlySavings:
    result = {
        course: None
        if row[f"{course}_value"] is None
        else Estimate.model_validate({part: row[f"{course}_{part}"] for part in ("value", "low", "high")})
        for course in AGAINST
    }
    own = {name: row[name] for name in ("month", "mode", "runs", "met", "cost", *(f"{one}_runs" for one in AGAINST))}
    return MonthlySavings.model_validate(own | result)
