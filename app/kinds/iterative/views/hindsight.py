"""What the heuristics would have done over a run, each asked where the run stood then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from app.charts.figure import Figure
from app.charts.timeline import Point, Series, allocated
from app.kinds.contract.policy import Situation
from app.kinds.contract.views import ASKED_THEN, NOTHING_YET, Hindsight, Shown, Step, evenly, too_long
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.decisions.query import beginning
from app.kinds.iterative.heuristics import HEURISTICS
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies.guard import decide
from app.kinds.iterative.state import State, advance
from app.kinds.iterative.step import step

POINTS = 60
"""Decisions that are looked at, at most."""
ANNOUNCED = "It can't be told of runs that announce what comes: what was announced then is not followed up."


def hindsight(compiled: Compiled, shown: Shown) -> Hindsight:
    """The run played anew from its reports, and every heuristic asked at some of its decisions."""
    if not shown.steps:
        return Hindsight([], NOTHING_YET)
    if len(shown.steps) < shown.iterations - shown.start.get("first_iteration", 0):
        return Hindsight([], too_long(len(shown.steps)))
    if shown.start.get("upcoming") or any(one.report.get("upcoming") for one in shown.steps):
        return Hindsight([], ANNOUNCED)
    asked = [one for one in shown.steps if one.iteration + 1 < compiled.layout.iterations]
    return Hindsight(list(_figures(compiled, shown, evenly(asked, POINTS))) if asked else [], ASKED_THEN)


def _figures(compiled: Compiled, shown: Shown, asked: Sequence[Step]) -> Iterator[Figure]:
    """One for each resource: what was decided, and what every heuristic would have."""
    state, layout = _states(compiled, shown, {one.iteration for one in asked}), compiled.layout
    situation = Situation(compiled.projector, state, view(compiled.projector, state))
    others = {n: step(layout, state.levels, decide(situation, None, rule).action) for n, rule in HEURISTICS.items()}
    for position, resource in enumerate(layout.spec.resources):
        decided = [Point(one.iteration + 1, one.decision["allocation"][resource.name]) for one in asked]
        series = [Series("decided", decided)]
        for name, levels in others.items():
            amounts = resource.minimum + resource.step * levels[:, position]
            points = [Point(p.iteration, float(amount)) for p, amount in zip(decided, amounts, strict=True)]
            series.append(Series(name.replace("_", " "), points))
        told = f"Of {len(asked):,} decisions of {len(shown.steps):,}, for the iterations after them."
        yield allocated(f"{resource.name} by other policies", resource.unit or resource.name, series, told)


def _states(compiled: Compiled, shown: Shown, chosen: set[int]) -> State:
    """Where the run stood after each of these reports, [B]."""
    start, projector = shown.start, compiled.projector
    goals = start.get("targets", {}), start.get("features"), start.get("probabilities", {})
    state = beginning(compiled, *goals, first=start.get("first_iteration", 0))
    found = []
    for one in shown.steps:
        report = one.report
        levels, metrics, features = compiled.encode(report["allocation"], report["metrics"], report.get("features", {}))
        given = np.array([features]).reshape(1, len(compiled.layout.features))
        state = advance(projector, state, np.array([levels], np.int16), np.array([metrics]), given)
        if one.iteration in chosen:
            found.append(state)
    return State._make(np.concatenate(column) for column in zip(*found, strict=True))
