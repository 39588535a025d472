"""The domain model of what level L3 holds out: fitted on those executions alone."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.estimators.base import EstimationError
from workers.evaluation.hold_out import Chosen, choose
from workers.inputs import HoldOut, Samples
from workers.kinds.iterative.estimation.executions import Executions
from workers.kinds.iterative.estimation.fit import FEWEST_TO_JUDGE, check_judge, fit_domain_model


class HeldOutModel(NamedTuple):
    """The domain model of the held-out executions, or None where they can't carry one; and what to say of it."""

    table: ModelTable | None
    report: dict[str, Any]


def held_out_model(spec: Spec, samples: Samples, request: HoldOut, seed: int) -> HeldOutModel:
    """Choose executions, and fit a domain model on them alone."""
    data, layout = dict(samples), Layout(spec)

    def taken(names: Collection[str]) -> Executions:
        return Executions(tuple((name, data[name]) for name in names))

    def carries(names: Collection[str]) -> bool:
        try:
            check_judge(layout, taken(names).flat(layout))
        except EstimationError:
            return False
        return True

    chosen = choose([*data], request, seed, fewest=FEWEST_TO_JUDGE, carries=carries)
    try:
        check_judge(layout, taken(chosen.names).flat(layout))
        fitted = fit_domain_model(spec, taken(chosen.names), seed)
    except EstimationError as error:
        reason = f"the {len(chosen.names)} held-out executions can't carry a domain model of their own: {error}"
        return HeldOutModel(None, chosen.report(reason, None))
    return HeldOutModel(fitted.table, chosen.report(None, _note(chosen)))


def _note(chosen: Chosen) -> str:
    """How strictly they are held out."""
    count, unseen = len(chosen.names), chosen.unseen
    if unseen == count:
        return f"L3 follows a domain model of {count} executions that no agent's domain model had been fitted on."
    known = "all" if unseen == 0 else f"{count - unseen}"
    return (
        f"L3 follows a domain model fitted on {count} executions alone; {known} of them were also among those that an "
        "agent's own domain model was fitted on, so that L3 shows another mixture rather than unknown executions."
    )
