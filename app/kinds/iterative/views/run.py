"""A run: its metrics beside what was expected, what was allocated, and the way to its targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from app.charts.figure import Figure
from app.charts.text import amount, money, percent
from app.charts.timeline import Expected, Point, Series, allocated, measured, progress
from app.kinds.contract.policy import Situation
from app.kinds.contract.views import Alternative, Fact, Shown
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.observation import view
from app.kinds.iterative.outcome import reached, state_of, target
from app.kinds.iterative.policies.guard import decide
from app.kinds.iterative.spec import Metric
from app.kinds.iterative.step import step

BAND = "Line: measured. Band: what was expected before each iteration ({:.0f} % of cases)."
TARGET = " Dashed: the target."


def last(shown: Shown) -> Any:
    """The last decision, as stored."""
    return shown.steps[-1].decision if shown.steps else shown.first


def facts(compiled: Compiled, shown: Shown) -> list[Fact]:
    """Where it stands, what it has, what it costs, and how sure its targets are."""
    decision, state = last(shown), state_of(compiled, shown.state)
    found = [
        Fact("iteration", f"{shown.iterations:,} of {compiled.layout.iterations:,}"),
        Fact("allocated", _amounts(decision["allocation"])),
    ]
    if state is not None:
        found.append(Fact("cost so far", money(float(state.cost[0]))))
    done = state is not None and int(state.iteration[0]) >= compiled.layout.iterations
    over = reached(compiled.layout, state, shown.start) if state is not None and done else {}
    aimed_at = [metric for metric in compiled.layout.spec.metrics if target(shown.start, metric)]
    return found + [_chance(decision, metric, shown, over.get(metric.name)) for metric in aimed_at]


def _amounts(allocation: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g} {name}" for name, value in allocation.items())


def _chance(decision: Any, metric: Metric, shown: Shown, came_to: float | None) -> Fact:
    """How sure it is that a target is met; of a run that is over, whether it was."""
    goal = target(shown.start, metric) or 0.0
    wanted, chance = amount(goal, metric.unit), decision.get("chances", {}).get(metric.name)
    if came_to is not None:
        verdict = "met" if metric.is_met(came_to, goal) else "missed"
        sure = f"{verdict}: {amount(came_to, metric.unit)}"
    else:
        sure = "not known yet" if chance is None else f"{percent(min(max(chance, 0.01), 0.99), 0)} sure"
    return Fact(f"{metric.name.replace('_', ' ')}, {wanted}", sure, f"per {metric.scope}")


def figures(compiled: Compiled, shown: Shown) -> Iterator[Figure]:
    """Metric by metric, then the allocation, then the way to targets that are for the whole run."""
    if not shown.steps:
        return
    note = "" if shown.every == 1 else f" Every {shown.every}th iteration is drawn."
    spec = compiled.layout.spec
    for metric in spec.metrics:
        yield _metric(compiled, shown, metric, note)
    for resource in spec.resources:
        points = [Point(s.iteration, s.report["allocation"][resource.name]) for s in shown.steps]
        unit = resource.unit or resource.name
        yield allocated(
            f"Allocation of {resource.name}", unit, [Series(resource.name, points)], f"What was allocated.{note}"
        )
    for metric in spec.metrics:
        wanted = target(shown.start, metric)
        if metric.scope == "run" and wanted is not None:
            yield _progress(compiled, shown, metric, wanted)


def _metric(compiled: Compiled, shown: Shown, metric: Metric, note: str) -> Figure:
    points = [Point(one.iteration, one.report["metrics"][metric.name]) for one in shown.steps]
    band = list(_bands(shown, metric.name))
    wanted = target(shown.start, metric) if metric.scope == "iteration" else None
    told = BAND.format(100 * compiled.projector.table.level) if band else "Line: measured."
    title = f"{metric.name.replace('_', ' ')} ({metric.unit})" if metric.unit else metric.name.replace("_", " ")
    return measured(title, points, band, wanted, told + (TARGET if wanted is not None else "") + note)


def _bands(shown: Shown, name: str) -> Iterator[Expected]:
    """What each decision expected of the iteration that it was for."""
    for decision in [shown.first, *(one.decision for one in shown.steps)]:
        found = decision.get("predicted", {}).get(name)
        if found and decision["iteration"] < shown.iterations:
            yield Expected(decision["iteration"], found["low"], found["high"])


def _progress(compiled: Compiled, shown: Shown, metric: Metric, wanted: float) -> Figure:
    """Sums over the run; between iterations that are left out they are taken to be evenly spread."""
    values = np.array([one.report["metrics"][metric.name] for one in shown.steps])
    at = np.array([one.iteration for one in shown.steps])
    sums = np.cumsum(values * np.diff(at, prepend=-1))
    state = state_of(compiled, shown.state)
    if state is not None and shown.every > 1 and sums[-1] > 0:
        sums *= float(state.elapsed[0, compiled.layout.metrics.index(metric.name)]) / sums[-1]
    points = [Point(int(i), float(total)) for i, total in zip(at, sums, strict=True)]
    name = metric.name.replace("_", " ")
    title = f"{name}, summed over the run"
    return progress(title, metric.unit or name, [Series(name, points)], wanted, f"Line: summed so far.{TARGET}")


def alternatives(compiled: Compiled, shown: Shown) -> list[Alternative]:
    """What the heuristics would do where the run stands."""
    state = state_of(compiled, shown.state)
    if state is None or int(state.iteration[0]) >= compiled.layout.iterations:
        return []
    situation = Situation(compiled.projector, state, view(compiled.projector, state))
    taken = last(shown)["allocation"]
    found = []
    for name, rule in HEURISTICS.items():
        levels = step(compiled.layout, state.levels, decide(situation, None, rule).action)
        given = compiled.layout.allocation_dict(levels[0])
        found.append(Alternative(name.replace("_", " "), _amounts(given), given == taken))
    return found
