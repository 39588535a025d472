"""How runs stand: progress, elapsed time of a deadline and cost, read from their stored states for lists."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.tables import Iteration, Run, Workload
from app.http.pagination import AT_ONCE
from app.kinds.contract.views import Standing
from app.kinds.registry import KINDS, read_spec

logger = logging.getLogger(__name__)


def of_runs(session: Session, ids: Sequence[str]) -> dict[str, Standing]:
    """Progress, elapsed time, deadline and cost of runs by id, without runs whose kind states none, or whose spec or
    state can't be read. Reads only the part of their states that their kind names, some runs at a time."""
    standings: dict[str, Standing] = {}
    for name, kind in KINDS.items():
        views = kind.views
        if views is None or not views.standing_part:
            continue
        part = Run.state_vector[(0, *views.standing_part)]
        query = select(Run.id, Run.workload_id, Run.start, Run.savings, part.label("state")).join(Workload)
        stored: dict[str, Any] = {}
        specs: dict[str, Any] = {}
        for first in range(0, len(ids), AT_ONCE):
            some = query.where(Run.id.in_(ids[first : first + AT_ONCE]), Workload.kind == name)
            rows = session.execute(some).all()
            new = {row.workload_id for row in rows} - stored.keys()
            if new:
                found_specs = session.execute(select(Workload.id, Workload.spec).where(Workload.id.in_(new)))
                stored |= {one.id: one.spec for one in found_specs}
            for row in rows:
                try:
                    if row.workload_id not in specs:
                        specs[row.workload_id] = read_spec(stored[row.workload_id])
                    stands = views.standing(specs[row.workload_id], row.start, row.state)
                except Exception:  # whatever a kind from outside may raise
                    logger.exception("how run %s stands can't be read", row.id)
                    continue
                cost = stored_cost(row.savings)  # that at the prices when it finished
                standings[row.id] = stands if cost is None else stands._replace(cost=cost)
    return standings


MOST_LIVE = 200
"""Most running runs, the newest, whose probabilities are read at once."""


def lowest_chances(session: Session, tenant: str) -> dict[str, float]:
    """Lowest probability (0 to 1) of meeting a target among a tenant's running runs, by workload, where it is known."""
    query = (
        select(Workload.name, Iteration)
        .join(Run, Run.workload_id == Workload.id)
        .join(Iteration, (Iteration.run_id == Run.id) & (Iteration.iteration == Run.next_iteration - 1))
        .where(Run.tenant == tenant, Run.state == "running")
        .order_by(Run.created_at.desc())
        .limit(MOST_LIVE)
    )
    lowest_chances: dict[str, float] = {}
    for workload, last in session.execute(query):
        values = last.decision.get("chances")
        if isinstance(values, Mapping) and values:
            lowest_chances[workload] = min(lowest_chances.get(workload, 1.0), *values.values())
    return lowest_chances


def stored_cost(savings: Mapping[str, Any] | None) -> float | None:
    """Cost of a finished run, from its stored savings; None: unknown."""
    cost = (savings or {}).get("cost")
    return None if cost is None else float(cost)
