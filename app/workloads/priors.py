"""Priors: what a workload's first decisions, before its first domain model, have from the tenant's earlier workloads.

A prior is made when a workload is registered, and made anew when a run starts, unless another one is running: runs keep
the prior that they began with, whichever workloads are fitted or deleted meanwhile. It is stored with the workload, so
that all processes decide alike.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, exists, func, select
from sqlalchemy.orm import Session

from app.database.engine import Database
from app.database.tables import DomainModel, Run, Workload
from app.domain_models import repository as domain_models
from app.kinds.contract.inputs import BrokenRow
from app.kinds.contract.kind import Earlier, Prior, no_prior
from app.kinds.registry import KINDS, MissingKind, layout_of, read_spec
from app.workloads import members

CONSIDERED = 256
"""Most earlier workloads whose specs are read, newest first."""

logger = logging.getLogger(__name__)


def made(workload: Workload) -> Prior | None:
    """The prior stored with a workload; None: the tenant had no similar workloads."""
    return (workload.prior or {}).get("made")


def make(
    database: Database, tenant: str, spec: Any, known: Mapping[str, Any] | None = None
) -> Mapping[str, Any] | None:
    """Make the prior of a spec from the tenant's other workloads with a domain model, for ``Workload.prior``.

    It has ``made``, the kind's prior (None: nothing is similar), and ``of``, a hash of the workloads that were
    considered: if it is still the one in ``known``, ``known`` is returned. None: the kind makes no priors.
    """
    kind = KINDS[spec.kind]
    if kind.prior is no_prior:
        return None
    with database.reading() as session:
        rows = _fitted(session, tenant, spec)
    considered = msgspec.json.encode([[row.id, row.spec_version, row.version] for row in rows])
    digest = hashlib.blake2b(considered, digest_size=16).hexdigest()
    if known is not None and known["of"] == digest:
        return known
    try:
        found = kind.prior(layout_of(spec), _earlier(database, rows))
    except Exception:  # without one decisions are as good as in a tenant's first workload
        logger.exception("workload %s: no prior can be made of earlier workloads", spec.name)
        found = None
    return {"of": digest, "made": found}


def _fitted(session: Session, tenant: str, spec: Any) -> Sequence[Row[Any]]:
    """The tenant's other workloads of the spec's kind with their newest models' versions, newest workloads first."""
    newest = select(DomainModel.workload_id, func.max(DomainModel.version).label("version"))
    models = newest.where(DomainModel.tenant == tenant).group_by(DomainModel.workload_id).subquery()
    columns = select(Workload.id, Workload.spec, Workload.spec_version, models.c.version)
    statement = (
        columns.join(models, models.c.workload_id == Workload.id)
        .where(Workload.tenant == tenant, Workload.kind == spec.kind, Workload.name != spec.name)
        .order_by(Workload.created_at.desc(), Workload.id)
    )
    return session.execute(statement.limit(CONSIDERED)).all()


def _earlier(database: Database, rows: Sequence[Row[Any]]) -> Iterator[Earlier]:
    """Earlier workloads of which each is read when it is used; unreadable ones are left out."""
    for row in rows:
        try:
            spec = read_spec(row.spec)
        except (BrokenRow, MissingKind):
            continue

        def model(workload: str = row.id, version: int = row.version, kind: str = spec.kind) -> Any:
            with database.reading() as session:
                stored = domain_models.table(session, workload, version)
            return KINDS[kind].model(stored.table if stored else b"")

        yield Earlier(spec, model)


def renew(database: Database, tenant: str, name: str) -> bool:
    """Make a workload's prior anew if it has no domain model and no run is running; return whether it changed."""
    with database.reading() as session:
        workload = members.find(session, tenant, name)
        if workload is None or _is_in_use(session, workload.id):
            return False
        spec, known = read_spec(workload.spec), workload.prior
    found = make(database, tenant, spec, known)
    if found == known:
        return False
    with database.session() as session:
        workload = members.find(session, tenant, name, lock=True)
        if workload is None or _is_in_use(session, workload.id):
            return False
        if made(workload) != (found or {}).get("made"):
            workload.revision += 1
        workload.prior = None if found is None else dict(found)
        return True


def _is_in_use(session: Session, workload_id: str) -> bool:
    """Whether the workload has a domain model, and so needs no prior, or a run that keeps its prior."""
    fitted = exists().where(DomainModel.workload_id == workload_id)
    running = exists().where(Run.workload_id == workload_id, Run.state == "running")
    return bool(session.scalar(select(fitted | running)))
