"""How many of a workload's newest ended runs were on target, as far as its kind can tell."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session

from app.dashboard import repository, shown
from app.dashboard.shown import CompiledOf
from app.kinds.contract.views import Standing
from app.workloads.schemas import WorkloadListed


class OnTarget(NamedTuple):
    """See the module.

    Attributes:
        target: when a run is on target, in words; empty where that can't be told.
        hit, judged: how many were, of so many of which it can be told.
        newest: the newest of these, if it missed.
    """

    target: str = ""
    hit: int = 0
    judged: int = 0
    newest: str | None = None


def on_target(session: Session, one: WorkloadListed, compiled_of: CompiledOf) -> OnTarget:
    """Of the newest ended runs of a workload."""
    views = None if one.problem is not None else shown.views(one.kind)
    if views is None or not views.target:
        return OnTarget()
    ended = repository.ended(session, one.id)
    compiled = shown.compiled_or_none(compiled_of, one.name) if ended else None
    if compiled is None:
        return OnTarget(views.target)
    standings = [(run.id, Standing(run.start, run.decision, shown.state(one.kind, run.state))) for run in ended]
    told = [(run, views.on_target(compiled, standing)) for run, standing in standings]
    found = [(run, good) for run, good in told if good is not None]
    hit = sum(good for _, good in found)
    return OnTarget(views.target, hit, len(found), found[0][0] if found and not found[0][1] else None)
