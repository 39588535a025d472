"""A cluster that is played: what a service decides for a workflow comes true, with run times of its own.

Data are sent for when a task starts, and its processors wait for them, as a live queue expects.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.queue import Nodes
from app.kinds.workflow.trace import Trace

Report = dict[str, Any]
Decide = Callable[[int, Report], dict[str, Any]]
LEAST = 1e-3  # seconds: what takes none has no estimate


class Loss(NamedTuple):
    """A node that fails for good at some time; what runs there waits again."""

    at: float
    node: str


class Played(NamedTuple):
    """When the last task ended, and all decisions in order."""

    makespan: float
    decisions: list[dict[str, Any]]


class Cluster:
    """The tasks of ``trace`` on nodes ``names``; ``runtime`` are the seconds at speed 1 that come true, [N]."""

    def __init__(self, trace: Trace, names: tuple[str, ...], nodes: Nodes, runtime: NDArray[np.float64]) -> None:
        self.trace, self.nodes, self.runtime = trace, nodes, runtime
        self.column = {name: j for j, name in enumerate(names)}
        self.row = {name: i for i, name in enumerate(trace.names)}
        self.where = np.full(trace.tasks, -1)
        self.running: dict[int, float] = {}
        self.ended: dict[int, float] = {}

    def described(self) -> list[Report]:
        """The tasks as they are queued first."""
        trace = self.trace
        reported = []
        for i, name in enumerate(trace.names):
            edges = range(trace.parent_start[i], trace.parent_start[i + 1])
            parents = [{"task": trace.names[trace.parents[e]], "bytes": float(trace.data[e])} for e in edges]
            reported.append(
                {"id": name, "processors": int(trace.processors[i]), "estimate": max(float(trace.expected[i]), LEAST)}
                | {"parents": parents, "workflow": "w"}
            )
        return reported

    def start(self, name: str, node: str, now: float) -> float:
        """Start a task; when it ends."""
        i, j = self.row[name], self.column[node]
        edges = range(self.trace.parent_start[i], self.trace.parent_start[i + 1])
        assert all(self.trace.parents[e] in self.ended for e in edges), "a parent has not ended"
        band = self.nodes.bandwidth
        away = [e for e in edges if self.where[self.trace.parents[e]] != j]
        slow = [min(band[self.where[self.trace.parents[e]]], band[j]) for e in away]
        wait = max((self.trace.data[e] / pace for e, pace in zip(away, slow, strict=True)), default=0.0)
        self.where[i] = j
        self.running[i] = now + wait + self.runtime[i] / self.nodes.speed[j]
        total = sum(int(self.trace.processors[k]) for k in self.running if self.where[k] == j)
        assert total <= self.nodes.processors[j], "a node holds more than it has"
        return self.running[i]


def play(cluster: Cluster, decide: Decide, losses: tuple[Loss, ...] = (), most: int = 10_000) -> Played:
    """Report every change at once, do what is decided, until all tasks have ended."""
    trace, decisions, lost = cluster.trace, list[dict[str, Any]](), set[str]()
    events: list[tuple[float, str]] = [(loss.at, f"/{loss.node}") for loss in losses]
    heapq.heapify(events)
    report: Report = {"now": 0.0, "delta": True, "queued": cluster.described()}
    while len(cluster.ended) < trace.tasks:
        assert len(decisions) < most, "the queue stands still"
        decision = decide(len(decisions), report)
        decisions.append(decision)
        now, started = report["now"], []
        for one in decision["placements"]:
            assert one["node"] not in lost, "a task starts on a node that is gone"
            heapq.heappush(events, (cluster.start(one["task"], one["node"], now), one["task"]))
            started.append({"id": one["task"], "node": one["node"], "start": now})
        report = _next(cluster, events, lost, started)
    return Played(max(cluster.ended.values()), decisions)


def _next(cluster: Cluster, events: list[tuple[float, str]], lost: set[str], started: list[Report]) -> Report:
    """The report of what happens next, and of what has ``started``."""
    assert events, "tasks are left, and nothing will ever happen"
    now = events[0][0]
    report: Report = {"now": now, "delta": True, "running": started}
    while events and events[0][0] <= now:
        what = heapq.heappop(events)[1]
        if what.startswith("/"):
            lost.add(what[1:])
            report.setdefault("nodes", []).append({"name": what[1:], "state": "failed"})
            _requeue(cluster, cluster.column[what[1:]], report, {one["id"] for one in started})
        elif cluster.running.get(cluster.row[what]) == now:
            cluster.ended[cluster.row[what]] = cluster.running.pop(cluster.row[what])
            report.setdefault("finished", []).append({"id": what, "end": now})
    ended = {one["id"]: one for one in report.get("finished", [])}
    report["running"] = [one for one in started if one["id"] not in ended and cluster.row[one["id"]] in cluster.running]
    for one in started:
        if one["id"] in ended:
            ended[one["id"]] |= {"node": one["node"], "start": one["start"]}
    return report


def _requeue(cluster: Cluster, node: int, report: Report, started: set[str]) -> None:
    """What runs on a node waits again; of what has just ``started`` nobody knows that it did."""
    for i in [i for i in cluster.running if cluster.where[i] == node]:
        del cluster.running[i]
        if cluster.trace.names[i] not in started:
            report.setdefault("queued", []).append({"id": cluster.trace.names[i]})
