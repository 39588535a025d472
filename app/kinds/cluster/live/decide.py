"""Who gets which GPUs after a report, and why: a reason for each job whose nodes change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.allocation.placement import place
from app.kinds.cluster.allocation.situation import Rule, Situation
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.state import ClusterState

SHOWN = 3


class Unmeasured:
    """See ``Outlook``: before anything is measured one GPU is as good as another, and all jobs have as much left.

    Args:
        maximum: GPUs that each job can use, [J].
        gpus: all there are.
    """

    def __init__(self, maximum: Integers, gpus: int) -> None:
        self._maximum, self._gpus = maximum, gpus

    def update_seconds(self) -> Floats:
        """See ``Outlook``."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.goodput(np.arange(self._gpus + 1)), np.float64)

    def updates(self) -> Floats:
        """See ``Outlook``."""
        return np.ones(len(self._maximum))

    def goodput(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        return np.where(gpus <= self._maximum[:, None], gpus, 0).astype(np.float64)

    def remaining(self) -> Floats:
        """See ``Outlook``."""
        return np.ones(len(self._maximum))


class Change(NamedTuple):
    """What becomes of one job.

    Attributes:
        job: its name.
        before: GPUs that it had.
        nodes: GPUs by node from now on; empty: it waits.
        code: `started`, `grown`, `shrunk`, `moved` or `preempted`.
        text: the same in words, with who gains or gives.
    """

    job: str
    before: int
    nodes: dict[str, int]
    code: str
    text: str


def decide(layout: Layout, state: ClusterState, rule: Rule) -> tuple[ClusterState, list[Change]]:
    """The state with its jobs on the nodes that they are given, and what changes by that."""
    outlook = Unmeasured(state.jobs.maximum, int(state.capacity.sum()))
    restart = layout.spec.restart_seconds
    situation = Situation(state.now, state.capacity, state.jobs, outlook, restart)
    held = place(situation, rule(situation)) if state.names else state.jobs.held
    changes = _changes(layout, state, held)
    return state._replace(jobs=table.move(state.jobs, held, restart)), changes


def _changes(layout: Layout, state: ClusterState, held: Integers) -> list[Change]:
    before, after = state.jobs.gpus, held.sum(axis=1)
    gave = [state.names[at] for at in np.flatnonzero(after < before).tolist()]
    took = [state.names[at] for at in np.flatnonzero(after > before).tolist()]
    found = []
    for at in np.flatnonzero((held != state.jobs.held).any(axis=1)).tolist():
        had, has = int(before[at]), int(after[at])
        nodes = {layout.nodes[node]: int(held[at, node]) for node in np.flatnonzero(held[at]).tolist()}
        lost = bool((state.jobs.held[at] > state.capacity).any())
        code = _code(had, has)
        others = gave if has > had else took if has < had else []
        found.append(Change(state.names[at], had, nodes, code, _text(code, had, has, others, lost=lost)))
    return found


def _code(had: int, has: int) -> str:
    if not had:
        return "started"
    if not has:
        return "preempted"
    return "grown" if has > had else "shrunk" if has < had else "moved"


def _text(code: str, had: int, has: int, others: list[str], *, lost: bool) -> str:
    shown = ", ".join(others[:SHOWN]) + (f" and {len(others) - SHOWN:,} more" if len(others) > SHOWN else "")
    words = {
        "started": f"starts on {has:,} GPUs",
        "preempted": f"gives up its {had:,} GPUs",
        "grown": f"{had:,} GPUs become {has:,}",
        "shrunk": f"{had:,} GPUs become {has:,}",
        "moved": f"keeps {has:,} GPUs on other nodes",
    }[code]
    given = f"; {'given up by' if has > had else 'given to'} {shown}" if shown else ""
    return words + given + ("; a node that it had is lost" if lost else "")
