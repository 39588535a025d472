"""Episodes of a world under a policy, in lock-step: what was measured, and what came of it.

``play(world, learner, episodes, seed)`` takes anything that makes a policy of a profile; it needs no service.

What a world's episodes are made of is held out: a policy tuned on them, or chosen by them, makes every figure here
worthless. To tune there are ``ellis.rehearsals``, which halve a profile, and other seeds of the planted worlds than
``planted_suite.JUDGED``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import miss
from app.kinds.iterative.spec import Spec
from benchmarks.held_out.world import Floats, Profile, World


class Report(NamedTuple):
    """One iteration of E runs: its number, allocations [E, R] in units, metrics [E, M] and features [E, F].

    ``upcoming`` are the features of the iterations after it, [E, K, F], where the launcher knows them, else K is 0.
    """

    iteration: int
    allocation: Floats
    metrics: Floats
    features: Floats
    upcoming: Floats


class Advice(NamedTuple):
    """The next allocations of E runs, [E, R] in units, and the bands of the next metrics, [E, M]; None without any."""

    allocation: Floats
    low: Floats | None = None
    high: Floats | None = None


class Policy(Protocol):
    """Who decides about E runs in lock-step."""

    name: str

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """The first allocations, under the first iteration's features [E, F]; ``upcoming`` as in a report."""
        ...

    def next(self, report: Report) -> Advice:
        """The allocations after a report; not asked after the last one."""
        ...


Learner = Callable[[Profile], Policy]


@dataclass(frozen=True, eq=False)
class Played:
    """What E episodes came to. I iterations, M metrics.

    Attributes:
        allocations: in units, [E, I, R].
        metrics: as measured, [E, I, M].
        low, high: the bands as announced, [E, I, M]; not a number where none was.
        terms: sla, cost and change as the service defines them, but that costs are relative to what the world's own law
            costs at the largest allocation, [E, 3].
        money: [E].
        changes: iterations that began with another allocation than the last one's, [E].
    """

    policy: str
    spec: Spec
    allocations: Floats
    metrics: Floats
    low: Floats
    high: Floats
    terms: Floats
    money: Floats
    changes: Floats

    @property
    def returns(self) -> Floats:
        """−Σ weight · term, [E]."""
        return -self.terms @ Layout(self.spec).weights


def play(world: World, learner: Learner, episodes: int, seed: int) -> Played:
    """Play the episodes of ``seed``.

    Raises:
        ValueError: a policy left the grid, or moved further than one action can.
    """
    chance, layout, policy = world.episodes(episodes, seed), Layout(world.spec), learner(world.profile)
    iterations, metrics = world.spec.iterations, len(layout.metrics)
    shape = (episodes, iterations)
    allocations = np.zeros((*shape, len(layout.resources)))
    measured, low, high = (np.full((*shape, metrics), np.nan) for _ in range(3))
    pauses = np.array([r.change_seconds for r in world.spec.resources])
    known = chance.features if world.announced else chance.features[:, :0]
    advice = policy.begin(chance.features[:, 0], known[:, 1:])
    for i in range(iterations):
        before = allocations[:, i - 1] if i else advice.allocation
        _check(layout, before, advice.allocation)
        allocations[:, i] = advice.allocation
        measured[:, i] = world.law(i, allocations[:, i], chance.features[:, i]) * chance.factors[:, i]
        measured[:, i, layout.seconds] += (allocations[:, i] != before) @ pauses
        if advice.low is not None and advice.high is not None:
            low[:, i], high[:, i] = advice.low, advice.high
        if i + 1 < iterations:
            observation = (allocations[:, i], measured[:, i], chance.features[:, i], known[:, i + 1 :])
            advice = policy.next(Report(i, *observation))
    return _judged(world, policy.name, (allocations, measured, low, high), world.reference(chance))


def _check(layout: Layout, before: Floats, after: Floats) -> None:
    for r, resource in enumerate(layout.spec.resources):
        levels = (after[:, r] - resource.minimum) / resource.step
        moved = np.abs(after[:, r] - before[:, r]) / resource.step
        if np.abs(levels - np.rint(levels)).max() > 1e-6 or levels.min() < 0 or levels.max() > resource.levels - 1:
            raise ValueError(f"{resource.name} must be on its grid: {after[:, r]}")
        if moved.max() > resource.max_steps + 1e-6:
            raise ValueError(f"{resource.name} may move {resource.max_steps} steps at once, not {moved.max():g}")


def _judged(world: World, name: str, course: tuple[Floats, Floats, Floats, Floats], reference: float) -> Played:
    allocations, measured, low, high = course
    layout = Layout(world.spec)
    seconds = measured[:, :, layout.seconds]
    money = ((allocations @ layout.prices) * seconds).sum(axis=1) / 3600
    steps = np.abs(np.diff(allocations, axis=1)) / np.array([r.step for r in world.spec.resources])
    change = steps.sum(axis=(1, 2)) / (layout.largest_action * layout.iterations)
    terms = np.stack([misses(world.spec, measured), money / reference, change], axis=1)
    changes = (steps > 0).any(axis=2).sum(axis=1).astype(float)
    return Played(name, world.spec, allocations, measured, low, high, terms, money, changes)


def misses(spec: Spec, measured: Floats) -> Floats:
    """The term sla of whole runs, [E], by their metrics [E, I, M]."""
    total = np.zeros(len(measured))
    for m, metric in enumerate(spec.metrics):
        if metric.target is None:
            continue
        values = measured[:, :, m]
        ratio = (values.sum(axis=1) if metric.scope == "run" else values) / metric.target
        due = miss(metric.goal, ratio)
        total += metric.weight * (due if metric.scope == "run" else due.mean(axis=1))
    return total
