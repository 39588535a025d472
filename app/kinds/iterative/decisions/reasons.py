"""Reasons in words that a person accepts, with the numbers: what is projected, against what, and what the step does.

Codes, by who answers:

===================  ==================================================================================
``initial``          the run's first allocation
``deadline_at_risk``  a target of the whole run is projected to be missed
``target_at_risk``   a target of each iteration is projected to be missed
``margin``           the target is met, but the step makes that surer
``slack_to_save_cost``  the target is met with room to spare, which the step turns into money
``trade_off``        a miss is accepted, because meeting the target isn't worth its price
``on_track``         nothing needs to change
``complete``         every iteration is reported; nothing is left to decide
``within_noise``, …  a guard replaced the policy's step
``no_model``, ``no_agent``  a heuristic answers for want of samples, or of a promoted agent
``fallback``         something failed, and a heuristic answers instead
===================  ==================================================================================
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from app.kinds.contract.text import number
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import SECONDS, Metric

TOLERANCE = 0.001  # a relative miss below it is none that a person would see


class AllocationText(NamedTuple):
    """An allocation as it is answered: encoded, and in words."""

    encoded: msgspec.Raw
    words: str


class DecisionContext(NamedTuple):
    """One decision in plain numbers; pairs are (hold the present allocation, take the decided one).

    Attributes:
        metric: position of the metric that is nearest to missing its target, or furthest beyond it; -1 without target.
        projected, excess, cost: of ``Forecast``, for that metric.
        present, decided: allocations.
    """

    metric: int
    target: float
    projected: Sequence[float]
    excess: Sequence[float]
    cost: Sequence[float]
    moved: bool
    present: AllocationText
    decided: AllocationText


class Reason(NamedTuple):
    """Why: a stable code, and the same for people."""

    code: str
    text: str


def explain(layout: Layout, context: DecisionContext) -> Reason:
    """The reason of a policy's own step."""
    if context.metric < 0:
        return _untargeted(context)
    metric = layout.spec.metrics[context.metric]
    hold, chosen = context.excess
    opening = against(metric, context)
    if hold > TOLERANCE:
        return _missing(metric, context, opening)
    if not context.moved:
        return Reason("on_track", opening)
    reached = f"{_brings(context)} {quantity(context.projected[1], metric)}"
    if context.cost[1] < context.cost[0]:
        code = "slack_to_save_cost" if chosen <= TOLERANCE else "trade_off"
        return Reason(code, f"{opening}; {reached} and save {_saved(context)} of the remaining cost")
    return Reason("margin", f"{opening} leaves little margin; {reached}")


def _missing(metric: Metric, context: DecisionContext, opening: str) -> Reason:
    code = "deadline_at_risk" if metric.scope == "run" else "target_at_risk"
    if not context.moved:
        return Reason(
            code,
            f"{opening} if nothing changes; "
            f"no step now is worth more than {context.present.words} for the next iteration",
        )
    reached = f"{_brings(context)} {quantity(context.projected[1], metric)}"
    if context.excess[1] < context.excess[0]:
        return Reason(code, f"{opening}; {reached}")
    return Reason("trade_off", f"{opening}; {reached} and save {_saved(context)} of the remaining cost")


def _untargeted(context: DecisionContext) -> Reason:
    if not context.moved:
        return Reason("on_track", f"no metric has a target; {context.present.words} cost least")
    if context.cost[1] < context.cost[0]:
        text = f"no metric has a target; {context.decided.words} save {_saved(context)} of the remaining cost"
        return Reason("slack_to_save_cost", text)
    return Reason("trade_off", f"no metric has a target; {context.decided.words} instead of {context.present.words}")


def against(metric: Metric, context: DecisionContext) -> str:
    """“projected 1,912 s against a target of 1,800 s”."""
    subject = "projected" if metric.name == SECONDS and metric.scope == "run" else f"{metric.name} projected at"
    bound = {"at_most": "a target of", "at_least": "a target of at least", "track": "a set point of"}[metric.goal]
    projected = quantity(context.projected[0], metric)
    return f"{subject} {projected} against {bound} {quantity(context.target, metric)}"


def first(layout: Layout, context: DecisionContext) -> Reason:
    """The reason of a run's initial allocation, chosen by the model."""
    decided = context.decided.words
    if context.metric < 0:
        return Reason("initial", f"{decided} to start with; no metric has a target")
    metric = layout.spec.metrics[context.metric]
    projection = against(metric, context._replace(projected=[context.projected[1]]))
    if context.excess[1] <= TOLERANCE:
        return Reason("initial", f"{decided} cost least of what meets the target: {projection}")
    return Reason("initial", f"{decided} are worth most by the model: {projection}")


def first_without_model(context: DecisionContext, problem: str = "") -> Reason:
    """The reason of a run's initial allocation before any domain model, or with one that can't be used."""
    why = problem or "no domain model yet"
    return Reason("no_model", f"{context.decided.words} as the workload's initial allocation; {why}")


def complete(layout: Layout) -> Reason:
    """The reason of the decision after the last iteration."""
    return Reason("complete", f"all {layout.iterations:,} iterations are reported; nothing is left to decide")


def within_noise(own: Reason, context: DecisionContext, intended: str) -> Reason:
    """The reason why ``intended`` is not taken: its gain is within the model's noise."""
    text = f"{own.text}; what {intended} would gain is within the noise, so {context.present.words} stay"
    return Reason("within_noise", text)


_OUTSIDE = {
    "allocation": "the allocation is beyond those of the samples",
    "features": "the features are beyond those of the samples",
    "run_effect": "the run is further from the model than any sample",
    "targets": "the targets are beyond those that the agent was trained for",
    "weights": "the weights are beyond those that the agent was trained for",
    "prices": "the prices are beyond those that the agent was trained for",
}


def outside_experience(own: Reason, causes: Sequence[str], heuristic: str) -> Reason:
    """The reason of ``heuristic``'s action for a state outside of the policy's experience, by ``causes``."""
    causes = ", ".join(_OUTSIDE.get(cause, cause) for cause in causes)
    return Reason("outside_experience", f"{causes}, so {heuristic} answers: {own.text}")


def _brings(context: DecisionContext) -> str:
    return f"{context.decided.words} bring it to"


def _saved(context: DecisionContext) -> str:
    before, after = context.cost
    return f"{100 * (before - after) / before:.0f} %" if before > after else "nothing"


def quantity(value: float, metric: Metric) -> str:
    """A number with its unit, as a person would write it."""
    return f"{number(value)} {metric.unit}" if metric.unit else number(value)


def in_words(allocation: dict[str, float]) -> str:
    """An allocation as “6 gpus, 4 cpus”."""
    return ", ".join(f"{value:g} {name}" for name, value in allocation.items())
