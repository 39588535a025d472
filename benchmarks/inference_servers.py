"""The number of servers that the rule of kind `inference` keeps on, beside every other way to choose it.

``STEWARD_DATA=… python -m benchmarks inference_servers`` (``inference_servers:azure-8`` runs one part, in two to twenty
minutes). Loads and systems are those of ``inference_agents``; a server takes 0, 8 or 60 s to start, and windows last
300 s, begin with one server, and don't overlap. Peers: the horizontal autoscaler, ⌈rate × p90 ÷ target⌉, the earliest
deadline first with that autoscaler's number, and the rule's own dispatch with a fixed number; each has the settings of
most return on windows of the training stream, on which the rule was designed, too. Figures are of the test stream,
which nothing was chosen by, with 95 % intervals of paired differences over windows.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from benchmarks.inference_agents import CORES, FEW_CORES, LOADS, TEST_SEED, Load, believed, met, serving
from benchmarks.inference_peers import scalers
from workers.evaluation.arena import Bare, Scores, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld

STARTS = (0, 8, 60)
PARTS = tuple(f"{load}-{start}" for load in LOADS for start in STARTS)
WINDOW, MOST, CHOOSING = 300.0, 24, 8
"""Seconds, and windows that figures and choices are of, at most."""
BEHIND = 0.002
Row = dict[str, Any]


class Case(NamedTuple):
    """A load on a system whose servers take some seconds to start."""

    layout: Layout
    model: ServiceModel
    load: Load


def results(names: Sequence[str] = PARTS) -> list[Row]:
    """Per part: by how much the rule is ahead of each peer, and of the best."""
    return [row for name in names for row in rows(name)]


def case(name: str) -> Case:
    """That of a part."""
    load, _, start = name.partition("-")
    data = Path(os.environ["STEWARD_DATA"])
    known, seconds = serving(data, FEW_CORES if load == "azure" else CORES)
    servers = tuple(one.model_copy(update={"startup_seconds": float(start)}) for one in known.spec.servers)
    layout = Layout(known.spec.model_copy(update={"episode_seconds": WINDOW, "servers": servers}))
    parts = met(load, data, WINDOW)
    return Case(layout, believed(layout, seconds, parts.train), parts)


def scored(one: Case, log: RecordedArrivals, most: int, policy: Policy) -> Scores:
    """What a policy earns in windows of a stream that don't overlap."""
    several = min(most, log.apart(WINDOW))
    world = InferenceWorld(one.layout, [one.model], Conditions(several, TEST_SEED), log)
    return play(world, Level.SEEDS, TEST_SEED, Bare(policy))


def rows(name: str) -> list[Row]:
    """Of one part."""
    one, found, best = case(name), list[Row](), -np.inf
    own = scored(one, one.load.test, MOST, BASELINES[0])
    for peer, tried in scalers(one.layout):
        chosen = max(tried, key=lambda policy: float(scored(one, one.load.train, CHOOSING, policy).returns.mean()))
        theirs = scored(one, one.load.test, MOST, chosen)
        paired = mean_interval(own.returns.astype(np.float64) - theirs.returns)
        best = max(best, float(theirs.returns.mean()))
        ahead = (
            f"ahead by {paired['mean']:+.4f} [{paired['low']:+.4f}, {paired['high']:+.4f}], {len(own.returns)} windows"
        )
        found.append(
            _row(f"{name} s to start: {BASELINES[0].name} beside {peer} ({chosen.name}; {ahead})", own, theirs, "")
        )
    value = float(own.returns.mean())
    goal = f"at most {BEHIND:g} behind: {'met' if value >= best - BEHIND else 'missed'}"
    whole = {**found[0], "name": f"{name} s to start: {BASELINES[0].name} beside the best of them", "goal": goal}
    return [*found, {**whole, "peer": "the best", "peer_value": best, "ratio": value / best}]


def _row(name: str, own: Scores, theirs: Scores, goal: str) -> Row:
    value, peer = float(own.returns.mean()), float(theirs.returns.mean())
    row = {"name": name, "value": value, "unit": "return", "peer": "peer", "peer_value": peer}
    return {**row, "ratio": value / peer, "goal": goal}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("inference_servers", results())
