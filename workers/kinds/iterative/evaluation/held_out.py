"""Which executions level L3 holds out, and the domain model that is fitted on them alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from app.database.tables import Workload
from app.evaluations import repository
from app.evaluations.repository import Stored
from app.evaluations.schemas import HeldOut
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from app.samples import service as samples
from workers.estimators.base import EstimationError
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import FEWEST_EXECUTIONS, check_enough, fit_domain_model

NAMES_TOLD = 200
HOLDING_OUT = ("L3", "L4")
NOT_ASKED = "not asked for"


class Chosen(NamedTuple):
    """Names of the executions that are held out, and how many of them no agent's model had been fitted on."""

    names: tuple[str, ...]
    unseen: int


class Split(NamedTuple):
    """The held-out part of a workload's samples; no session is open any more."""

    chosen: Chosen
    executions: Executions


class HeldOutModel(NamedTuple):
    """The domain model of the held-out executions, or None where they can't carry one; and what to say of it."""

    table: ModelTable | None
    told: dict[str, Any]


def choose(
    stored: Sequence[Stored],
    asked: HeldOut,
    seen_until: datetime | None,
    seed: int,
    carries: Callable[[Collection[str]], bool] = bool,
) -> Chosen:
    """The executions to hold out: those named, else a share, drawn first from what came after `seen_until`.

    A share that can't carry a model grows until it does (`carries`), up to half of all.
    """
    unseen = {name for name, moment in stored if seen_until is None or moment > seen_until}
    if asked.executions is not None:
        present = {name for name, _ in stored}
        names = tuple(name for name in asked.executions if name in present)
    else:
        wanted = min(len(stored), max(FEWEST_EXECUTIONS, round(asked.share * len(stored))))
        ordered = drawn([name for name, _ in stored], unseen, seed)
        sizes = range(wanted, max(wanted, len(stored) // 2) + 1)
        size = next((size for size in sizes if carries(ordered[:size])), wanted)
        names = tuple(ordered[:size])
    return Chosen(names, sum(name in unseen for name in names))


def not_asked() -> dict[str, Any]:
    """What to say of it where the evaluation ends before L3."""
    return {"executions": 0, "unseen": 0, "names": [], "reason": NOT_ASKED, "note": None}


def drawn(names: Sequence[str], unseen: Collection[str], seed: int) -> list[str]:
    """All names in an order drawn from ``seed``, those that are unseen first."""
    order = np.random.default_rng(seed).permutation(len(names))
    return sorted((names[index] for index in order), key=lambda name: name not in unseen)


def split(
    session: Session, workload: Workload, asked: HeldOut, models: Sequence[int], before: datetime, seed: int
) -> Split:
    """Read the held-out executions into arrays.

    Args:
        asked: which ones.
        models: versions of the domain models that the agents were trained on.
        before: what came later is left out, so that whoever resumes the evaluation holds out the same.
    """
    stored = [one for one in repository.stored(session, workload.id) if one.created_at <= before]
    moments = [repository.model_time(session, workload.id, version) for version in models]
    known = [moment for moment in moments if moment is not None]
    data = dict(samples.executions(session, workload))
    layout = samples.layout_of(workload)

    def taken(names: Collection[str]) -> Executions:
        return Executions(tuple((name, data[name]) for name in names))

    def carries(names: Collection[str]) -> bool:
        try:
            check_enough(layout, taken(names).flat(layout))
        except EstimationError:
            return False
        return True

    chosen = choose(stored, asked, max(known, default=None), seed, carries)
    return Split(chosen, taken(chosen.names))


def model_of(spec: Spec, part: Split, seed: int) -> HeldOutModel:
    """Fit a domain model on the held-out executions alone."""
    names, unseen = part.chosen
    told: dict[str, Any] = {"executions": len(names), "unseen": unseen, "names": list(names[:NAMES_TOLD])}
    try:
        fitted = fit_domain_model(spec, part.executions, seed)
    except EstimationError as error:
        reason = f"the {len(names)} held-out executions can't carry a domain model of their own: {error}"
        return HeldOutModel(None, {**told, "reason": reason, "note": None})
    return HeldOutModel(fitted.table, {**told, "reason": None, "note": _note(len(names), unseen)})


def _note(count: int, unseen: int) -> str:
    """How strictly they are held out."""
    if unseen == count:
        return f"L3 follows a domain model of {count} executions that no agent's domain model had been fitted on."
    known = "all" if unseen == 0 else f"{count - unseen}"
    return (
        f"L3 follows a domain model fitted on {count} executions alone; {known} of them were also among those that an "
        "agent's own domain model was fitted on, so that L3 shows another mixture rather than unknown executions."
    )
