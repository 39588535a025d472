"""Priors: what a workload's first decisions, before its first domain model, have from the tenant's earlier workloads.

A prior is made when a workload is registered, and made anew when a run starts, unless another one is running: runs keep
the prior that they began with, whichever workloads are fitted or deleted meanwhile. A stale run counts as abandoned. It
is stored with the workload, so that all processes decide alike, until the workload has a domain model.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import DomainModel, Run, Workload
from app.kinds.contract.inputs import BrokenRow, IncompatibleModel
from app.kinds.contract.kind import Earlier, Prior, no_prior
from app.kinds.registry import KINDS, MissingKind, layout_of, read_spec
from app.runs.outcomes import Staleness, silence
from app.workloads import members

ALGORITHM = 2
"""Raised when a kind makes priors otherwise, so that stored ones are made anew."""
CONSIDERED = 256
"""Most earlier workloads that are looked at, the newest."""
LARGEST_TABLE, LARGEST_TABLES = 4 << 20, 16 << 20
"""Most bytes of the domain model of one earlier workload, and of all that are read for a prior."""

Version = tuple[str, int, int]
"""A workload's id, and the versions of its spec and of its newest domain model."""
logger = logging.getLogger(__name__)


def prior_of(workload: Workload) -> Prior | None:
    """The prior stored with a workload (a prediction from similar workloads, until it has a model); None: there is
    none."""
    return (workload.prior or {}).get("made")


def takes(spec: Any) -> bool:
    """Whether a prior (a prediction from similar workloads) is made for a spec: its kind makes them, and it doesn't opt
    out."""
    return KINDS[spec.kind].prior is not no_prior and bool(spec.use_earlier_workloads)


def make(
    database: Database, tenant: str, spec: Any, known: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    """Make the prior of a spec, a prediction from the tenant's other workloads with a domain model, for
    ``Workload.prior``.

    It has ``made``, the kind's prior (None: nothing is similar), and ``of``, a hash of the spec and the workloads that
    were considered: if it is still the one in ``known``, or making fails, ``known`` is returned. None: no prior.
    """
    if not takes(spec):
        return None
    with database.reading() as session:
        versions = _fitted(session, tenant, spec)
    considered = msgspec.json.encode([ALGORITHM, spec.model_dump(mode="json"), versions], order="sorted")
    digest = hashlib.blake2b(considered, digest_size=16).hexdigest()
    if known is not None and known["of"] == digest:
        return known
    try:
        prior = KINDS[spec.kind].prior(layout_of(spec), _earlier(database, versions))
    except Exception:  # without one decisions are as good as in a tenant's first workload
        logger.exception("workload %s: no prior can be made of earlier workloads", spec.name)
        return known
    return {"of": digest, "made": prior}


def _fitted(session: Session, tenant: str, spec: Any) -> list[Version]:
    """The tenant's newest other workloads of the spec's kind that have a domain model, newest first."""
    model = select(func.max(DomainModel.version)).where(DomainModel.workload_id == Workload.id).scalar_subquery()
    statement = (
        select(Workload.id, Workload.spec_version, model)
        .where(Workload.tenant == tenant, Workload.kind == spec.kind, Workload.name != spec.name, model.is_not(None))
        .order_by(Workload.created_at.desc(), Workload.id)
        .limit(CONSIDERED)
    )
    return [(name, version, newest) for name, version, newest in session.execute(statement)]


def _earlier(database: Database, versions: Sequence[Version]) -> Iterator[Earlier]:
    """Earlier workloads of which each domain model is read when it is used; unreadable specs are left out."""
    left = LARGEST_TABLES
    with database.reading() as session:
        rows = session.execute(select(Workload.id, Workload.spec).where(Workload.id.in_([one[0] for one in versions])))
        specs = {row.id: row.spec for row in rows}
    for workload, _, version in versions:
        try:
            spec = read_spec(specs[workload])
        except (BrokenRow, KeyError, MissingKind):
            continue

        def model(workload: str = workload, version: int = version, kind: str = spec.kind) -> Any:
            nonlocal left
            this = (DomainModel.workload_id == workload, DomainModel.version == version)
            with database.reading() as session:
                small = func.length(DomainModel.table) <= min(LARGEST_TABLE, left)
                table = session.scalar(select(DomainModel.table).where(*this, small))
            if table is None:
                raise IncompatibleModel("it was deleted, or is too large for priors")
            left -= len(table)
            return KINDS[kind].model(table)

        yield Earlier(spec, model)


def renew(database: Database, tenant: str, name: str, rule: Staleness) -> bool:
    """Make a workload's prior anew if it has no domain model and no run is running; return whether it changed.

    ``rule``: when a run is stale, and doesn't count. Raises MissingKind or BrokenRow if the spec can't be read.
    """
    with database.reading() as session:
        workload = members.find(session, tenant, name)
        if workload is None or _is_in_use(session, workload, rule):
            return False
        spec, known = read_spec(workload.spec), workload.prior
    result = make(database, tenant, spec, known)
    if result == known:
        return False
    with database.session() as session:
        workload = members.find(session, tenant, name, lock=True)
        if workload is None or _is_in_use(session, workload, rule):
            return False
        if prior_of(workload) != (result or {}).get("made"):
            workload.revision += 1
        workload.prior = None if result is None else dict(result)
        return True


def _is_in_use(session: Session, workload: Workload, rule: Staleness) -> bool:
    """Whether the workload's prior (a prediction from similar workloads) must not be replaced: it has a domain model,
    which is used instead, or a running run that isn't stale by ``rule``, which keeps the prior it began with."""
    fitted = exists().where(DomainModel.workload_id == workload.id)
    running = exists().where(
        Run.tenant == workload.tenant,
        Run.state == "running",
        Run.workload_id == workload.id,
        ~silence(rule).stale,
    )
    return bool(session.scalar(select(fitted | running)))


def lenders(session: Session, tenant: str, names: Sequence[str]) -> set[str]:
    """Those of the workloads ``names`` that can serve for priors of others now: they have a model and don't opt out."""
    fitted = exists().where(DomainModel.workload_id == Workload.id)
    statement = select(Workload.name, Workload.spec).where(Workload.tenant == tenant, Workload.name.in_(names), fitted)
    return {name for name, spec in session.execute(statement) if spec.get("use_earlier_workloads", True)}
