"""Whose job is next: workers take turns between tenants, so that nobody waits behind all that another one asked for.

A broker hands jobs out in the order in which they were announced. Its messages only wake workers up, so the worker
that one reaches takes a job of the tenant that has the least going on; of those that have equally little, of the one
whose last job began longest ago. Within a tenant those of the highest priority are next, and of these the one that was
announced.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app.database.tables import Job


def instead(session: Session, job_id: str) -> str | None:
    """The job to be taken in place of the one that was announced; None where its own turn has come, or there is none.

    It may be of another type: who waits for a fit does not wait behind another tenant's trainings.
    """
    announced = session.execute(select(Job.tenant, Job.state, Job.priority).where(Job.id == job_id)).one_or_none()
    if announced is None:
        return None
    tenant, state, priority = announced
    waiting = set(session.scalars(select(Job.tenant).where(Job.state == "queued").group_by(Job.tenant)))
    if waiting == {tenant}:
        # what is announced and does not wait may have been taken in place of one that mattered less
        return _first(session, tenant, Job.priority > priority if state == "queued" else Job.priority < priority)
    if state != "queued":  # taken already, in place of another one
        waiting.discard(tenant)
    if not waiting:
        return None
    chosen = _next_tenant(session, waiting)
    return _first(session, chosen, *([Job.priority > priority] if chosen == tenant else ()))


def _next_tenant(session: Session, waiting: set[str]) -> str:
    running = func.sum(case((Job.state == "running", 1), else_=0))
    query = select(Job.tenant, running, func.max(Job.started_at)).where(Job.tenant.in_(waiting)).group_by(Job.tenant)
    found = session.execute(query).all()
    return min(found, key=lambda one: (one[1], one[2] is not None, one[2], one[0]))[0]


def _first(session: Session, tenant: str, *conditions: ColumnElement[bool]) -> str | None:
    """The first in a tenant's line, of those that meet the conditions."""
    query = select(Job.id).where(Job.tenant == tenant, Job.state == "queued", *conditions)
    return session.scalar(query.order_by(Job.priority.desc(), Job.created_at, Job.id).limit(1))
