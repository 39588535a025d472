"""What answers in which situation: a map over the course of a run and the allocation it stands at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.charts.figure import Figure
from app.charts.map import Cell, steps_map
from app.kinds.contract.policy import Situation
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import guard
from app.kinds.iterative.state import State, begin
from app.kinds.iterative.step import step

MOMENTS, MOST_LEVELS = 30, 24


def figures(compiled: Compiled) -> Iterator[Figure]:
    """One map for each resource, the others at the spec's initial allocation; runs are right on their way."""
    layout = compiled.layout
    moments = np.unique(np.linspace(0, layout.iterations - 1, min(MOMENTS, layout.iterations)).astype(np.int32))
    for position, resource in enumerate(layout.spec.resources):
        shown = np.unique(np.linspace(0, resource.levels - 1, min(MOST_LEVELS, resource.levels)).astype(np.int16))
        levels = np.tile(layout.start_levels.astype(np.int16), (len(moments) * len(shown), 1))
        levels[:, position] = np.tile(shown, len(moments))
        state = _states(compiled, levels, np.repeat(moments, len(shown)))
        situation = Situation(compiled.projector, state, view(compiled.projector, state))
        taken = step(layout, levels, guard.decide(situation, compiled.artifact).action)[:, position]
        change = (taken - levels[:, position]) * resource.step
        amounts = resource.minimum + resource.step * levels[:, position]
        cells = [
            Cell(int(at), float(amount), float(by))
            for at, amount, by in zip(state.iteration, amounts, change, strict=True)
        ]
        who = compiled.artifact.policy.name if compiled.artifact else compiled.heuristic
        told = (
            f"What {who.replace('_', ' ')} changes, by iteration and present allocation, in a run that is right on its "
            "way to its targets. Blank: it stays."
        )
        yield steps_map(f"Policy map, {resource.name}", resource.name, cells, told)


def _states(compiled: Compiled, levels: NDArray[np.int16], at: NDArray[np.int32]) -> State:
    """Runs at some iteration that measure what is expected, and have used up the share of their targets that is due."""
    projector = compiled.projector
    state = begin(projector, levels)
    expected = np.exp(projector.log_mean(projector.layout.index(levels), projector.point(state.features), at))
    share = (at / projector.layout.iterations)[:, None]
    due = np.nan_to_num(state.targets * share, nan=0.0)
    whole = np.array([metric.scope == "run" for metric in projector.layout.spec.metrics])
    known = np.where(whole & (due > 0), due, expected * at[:, None])
    return state._replace(iteration=at, measured=expected, elapsed=known.astype(state.elapsed.dtype))
