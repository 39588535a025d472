"""Conversion of database rows to plain inputs, which tasks read before they close their session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from app.agents.service import NO_MODEL
from app.database import tables
from app.domain_models import repository as domain_models
from app.drift import repository as drift_rows
from app.evaluations import service as evaluations
from app.evaluations.schemas import HeldOut
from app.exogenous.rows import rows_in_force
from app.kinds.registry import KINDS, read_spec
from app.runs.logs import logged_runs, reported_runs
from app.samples import service as samples
from app.workloads import members
from workers.inputs import STEADY, Drifts, ExogenousSeries, HoldOut, LoggedRun, Samples, Workload


class Model(NamedTuple):
    """Version and serialised data of a stored domain model; without a model, ``NO_MODEL`` and empty data."""

    version: int = NO_MODEL
    data: bytes = b""


NONE = Model()


def workload(
    session: Session,
    row: tables.Workload,
    model: Model = NONE,
    *,
    with_samples: bool,
    until: datetime | None = None,
) -> Workload:
    """Return a workload; with samples, exogenous series and drifts up to ``until`` (None: all) if ``with_samples``."""
    spec = read_spec(row.spec)
    described = members.describe_members(session, row.tenant, spec)
    if not with_samples:
        return Workload(spec, model.data, members=described)
    samples = _samples(session, row, until)
    drifts = _drifts(session, row, until)
    return Workload(spec, model.data, samples, exogenous(session, row, until), drifts, described)


def _drifts(session: Session, row: tables.Workload, until: datetime | None) -> Drifts:
    """Return the drifts up to ``until`` (None: now), and those at the time when each execution was stored."""
    history = drift_rows.history(session, row.id)
    if not history:
        return STEADY
    stored = evaluations.stored_executions(session, row.id)
    then = {one.name: drift_rows.in_force(history, one.created_at) for one in stored}
    return Drifts(drift_rows.in_force(history, until), then)


def exogenous(session: Session, row: tables.Workload, until: datetime | None = None) -> dict[str, ExogenousSeries]:
    """Return the workload's exogenous series by name, without values issued after ``until`` (None: all values)."""
    by_series = groupby(rows_in_force(session, row.id, until), key=attrgetter("series"))
    return {name: _series(list(rows)) for name, rows in by_series}


def _series(rows: Sequence[tables.ExogenousRow]) -> ExogenousSeries:
    columns = np.array([(one.time.timestamp(), one.mean, one.low, one.high) for one in rows], dtype=np.float64)
    return ExogenousSeries(*columns.T)


def _samples(session: Session, row: tables.Workload, until: datetime | None) -> Samples:
    executions = samples.executions(session, row)
    if until is None:
        return executions
    data = dict(executions)
    return [
        (one.name, data[one.name]) for one in evaluations.stored_executions(session, row.id) if one.created_at <= until
    ]


def from_samples(row: tables.Workload) -> bool:
    """Return whether agents of this workload's kind learn from, and are judged on, its samples alone."""
    return not KINDS[row.kind].simulated


def model(session: Session, row: tables.Workload, version: int | None) -> Model:
    """Return the domain model of that version, or the newest (None).

    Where agents learn from samples alone, a domain model only serves planning: without a version it is empty.

    Raises:
        LookupError: there is no such domain model any more.
    """
    if version is None and from_samples(row):
        return NONE
    stored = domain_models.table(session, row.id, version)
    if stored is None:
        raise LookupError(f"domain model {version} was deleted")
    return Model(stored.version, stored.table)


def held_out(
    session: Session, row: tables.Workload, request: HeldOut, models: Sequence[int], trained: Sequence[datetime]
) -> HoldOut:
    """Return which samples to hold out, with the names of those that no agent has learned from.

    Args:
        request: the request as the API received it.
        models: versions of the domain models that the agents were trained on.
        trained: times of the agents' trainings; later samples are unseen, where agents learn from samples alone.
    """
    moments = trained
    if not from_samples(row):
        known = [evaluations.model_time(session, row.id, version) for version in models]
        moments = [moment for moment in known if moment is not None]
    seen_until = max(moments, default=None)
    stored = evaluations.stored_executions(session, row.id)
    unseen = frozenset(one.name for one in stored if seen_until is None or one.created_at > seen_until)
    return HoldOut(request.executions, request.share, unseen, request.of)


def runs(session: Session, row: tables.Workload) -> list[LoggedRun]:
    """Return the workload's most recent finished runs, newest first."""
    return [LoggedRun(run.reports, run.start) for run in logged_runs(session, row.id)]


def window(session: Session, row: tables.Workload, since: datetime, until: datetime) -> list[LoggedRun]:
    """Return the workload's runs, newest first, with their reports after ``since`` and up to ``until``."""
    return [LoggedRun(run.reports, run.start) for run in reported_runs(session, row.id, since, until)]
