"""What the other rules would have done over a run, each asked where the run stood then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.charts.ranking import DECIDED, beside_decided
from app.kinds.cluster import jobs as table
from app.kinds.cluster.decisions.compiled import Compiled
from app.kinds.cluster.jobs import Integers
from app.kinds.cluster.live import records
from app.kinds.cluster.live.advance import advance
from app.kinds.cluster.live.decide import decide
from app.kinds.cluster.live.report import decode
from app.kinds.cluster.live.state import ClusterState, begin
from app.kinds.contract.views import ASKED_THEN, NOTHING_YET, Hindsight, Shown, evenly, too_long

POINTS = 20
"""Decisions that are looked at, at most."""
MOST_ASKED = 200
"""Jobs at a time up to which it is told: somebody waits for it."""
TOO_MANY = f"It is told of runs with up to {MOST_ASKED} jobs at a time."


class Stood(NamedTuple):
    """A run after one of its reports: before what was decided then, and the GPUs that were, [J, N]."""

    reported: ClusterState
    judged: ClusterState
    held: Integers


def hindsight(compiled: Compiled, shown: Shown) -> Hindsight:
    """The run played anew from its reports and decisions, and every rule asked at some of these."""
    if not shown.steps:
        return Hindsight([], NOTHING_YET)
    if len(shown.steps) < shown.iterations:
        return Hindsight([], too_long(len(shown.steps)))
    stood = [one for one in _replayed(compiled, shown) if one.judged.names]
    if not stood or max(len(one.judged.names) for one in stood) > MOST_ASKED:
        return Hindsight([], TOO_MANY if stood else "No job has been there yet.")
    asked = evenly(stood, POINTS)
    decided, others = [one.held for one in asked], _others(compiled, asked)
    told = f"Of {len(asked):,} decisions of {shown.iterations:,}, where jobs were there."
    same = {name: float(np.mean(list(map(_alike, decided, every)))) for name, every in others.items()}
    run = {
        name: float(np.mean([held.any(axis=1).sum() for held in every]))
        for name, every in {DECIDED: decided, **others}.items()
    }
    figures = [
        beside_decided("Jobs that would have had as many GPUs", "share of jobs", same, told),
        beside_decided("Jobs that would have run at a time", "jobs, on average", run, told),
    ]
    return Hindsight(figures, ASKED_THEN)


def _alike(decided: Integers, other: Integers) -> float:
    return float((decided.sum(axis=1) == other.sum(axis=1)).mean())


def _others(compiled: Compiled, asked: Sequence[Stood]) -> dict[str, list[Integers]]:
    """GPUs by each rule, [J, N] at every decision."""
    found: dict[str, list[Integers]] = {}
    for one in asked:
        outlook = compiled.outlook(one.judged)
        for name, rule in compiled.layout.rules.items():
            other, _ = decide(compiled.layout, one.judged, compiled.advice(rule, outlook, one.judged, one.reported))
            found.setdefault(name.replace("_", " "), []).append(other.jobs.held)
    return found


def _replayed(compiled: Compiled, shown: Shown) -> Iterator[Stood]:
    """Where the run stood, report by report, on the nodes that were decided for its jobs."""
    layout = compiled.layout
    state = begin(layout)
    for step in shown.steps:
        reported = advance(layout, state, decode(msgspec.json.encode(step.report)))
        judged = compiled.judged(reported)
        held = _held(compiled, judged, step.decision["changes"])
        yield Stood(reported, judged, held)
        jobs = table.move(judged.jobs, held, layout.spec.restart_seconds)
        begun = np.asarray(held.any(axis=1) & ~judged.jobs.held.any(axis=1))
        state = judged._replace(jobs=jobs, records=records.started(judged.records, begun, jobs))


def _held(compiled: Compiled, state: ClusterState, changes: list[Mapping[str, Any]]) -> Integers:
    """GPUs by job and node after changes as they are stored, [J, N]."""
    held, row = state.jobs.held.copy(), {name: at for at, name in enumerate(state.names)}
    for one in changes:
        held[row[one["job"]]] = 0
        for node, gpus in one["nodes"].items():
            held[row[one["job"]], compiled.layout.node_index[node]] = gpus
    return held
