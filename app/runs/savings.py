"""What finished runs saved beside other allocations: computed once when a run ends, summed by month."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field
from sqlalchemy import RowMapping, Select, case, func, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.database.tables import Run
from app.kinds.contract.savings import Estimate, Savings
from app.kinds.engine import Compiled
from app.kinds.registry import KINDS
from app.samples.intake import reports_of_run

logger = logging.getLogger(__name__)

ADVISE = "advise"
MONTHS = 24
"""Months in an answer, the newest first."""
AGAINST = ("largest", "best_fixed", "advised")
"""What a run is compared with: fields of ``Savings``."""


class MonthlySavings(BaseModel):
    """Finished runs of one month and mode, summed; bounds are sums of bounds, as the runs share a model's errors."""

    month: str = Field(description="Month in which they ended, UTC.", examples=["2026-11"])
    mode: Literal["control", "advise"] = Field(description="`advise`: recommendations were not applied.")
    runs: int = Field(description="Number of finished runs with savings.")
    met: int = Field(description="Number of them that met their targets.")
    cost: float = Field(description="What they cost.")
    largest: Estimate = Field(description="Cost that they saved against the largest allocation, held throughout.")
    best_fixed: Estimate = Field(description="Cost that they saved against the best allocation to hold.")
    advised: Estimate | None = Field(
        description="Cost of the recommendations, had they been applied, minus the runs' own: below 0 where they would "
        "have saved; null in mode `control`."
    )


class WorkloadSavings(BaseModel):
    """What a workload's finished runs saved, by month."""

    workload: str
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


def of_run(session: Session, run: Run, compiled: Compiled | str, now: datetime) -> Savings | None:
    """What a finished run saved, by its kind; None if the kind or the data can't tell. Never raises.

    ``compiled``: the compiled workload, or why it can't be read; ``now``: when a run of mode ``advise`` is replayed.
    """
    if isinstance(compiled, str) or (run.kept_from or 0) != run.decision["iteration"]:
        return None  # without a model, or without the first reports
    reports = [report for _, report in reports_of_run(session, run.id)]
    try:
        kind = KINDS[compiled.snapshot.spec.kind]
        return kind.savings(compiled, run.start, reports, now if run.start.get("mode") == ADVISE else None)
    except Exception:  # whatever a kind from outside may raise
        logger.exception("what run %s saved can't be computed", run.id)
        return None


def store(session: Session, run: str, found: Savings) -> None:
    """Store what a run saved."""
    session.execute(
        update(Run)
        .where(Run.id == run)
        .values(savings=found.model_dump(mode="json"))
        .execution_options(synchronize_session=False)
    )


def by_month(session: Session, workload_id: str, workload: str) -> WorkloadSavings:
    """What a workload's finished runs saved, by month and mode."""
    month, mode = month_of(Run.finished_at), func.coalesce(Run.start["mode"].as_string(), "control")
    columns = [
        month.label("month"),
        mode.label("mode"),
        func.count().label("runs"),
        func.sum(case((Run.outcome == "met", 1), else_=0)).label("met"),
        func.sum(_number("cost")).label("cost"),
    ]
    for course in AGAINST:
        for part in ("value", "low", "high"):
            number = _number(course, "saved", part)
            bounded = func.count(number) == func.count(_number(course, "saved", "value"))
            columns.append(case((bounded, func.sum(number)), else_=None).label(f"{course}_{part}"))
    query: Select[Any] = (
        select(*columns)
        .where(Run.workload_id == workload_id, Run.finished_at.is_not(None), _number("cost").is_not(None))
        .group_by(month, mode)
        .order_by(month.desc(), mode)
        .limit(2 * MONTHS)
    )
    return WorkloadSavings(workload=workload, months=[_read(row) for row in session.execute(query).mappings()])


def saved(session: Session) -> dict[str, float]:
    """Cost saved by all tenants' stored runs in which decisions were applied, by what they are compared with."""
    names = AGAINST[:2]
    applied = func.coalesce(Run.start["mode"].as_string(), "control") != ADVISE
    query = select(*(func.coalesce(func.sum(_number(name, "saved", "value")), 0.0) for name in names)).where(applied)
    return dict(zip(names, session.execute(query).one(), strict=True))


def _number(*path: str) -> Any:
    return Run.savings[path].as_float()


def _read(row: RowMapping) -> MonthlySavings:
    found = {
        course: None
        if row[f"{course}_value"] is None
        else Estimate.model_validate({part: row[f"{course}_{part}"] for part in ("value", "low", "high")})
        for course in AGAINST
    }
    own = {name: row[name] for name in ("month", "mode", "runs", "met", "cost")}
    return MonthlySavings.model_validate(own | found)
