"""Kind `cluster` as it is served over HTTP, in the published simulator: mean completion times beside published ones.

``STEWARD_DATA=… python -m benchmarks cluster_served`` (``cluster_served:workload-1`` runs one part, in three to ten
minutes). 160 jobs on 64 GPUs; a launcher reports each minute what is there, and does what the answers say. Jobs choose
their batches as under Pollux; they report seconds of their steps, batches and gradient noise scales.

**workload-N**, over Pollux's published completion times: (a) a domain model is fitted to what two of the other
workloads reported when they ran before, and jobs tell their epochs; (b) the same, and jobs tell no epochs; (c) nothing
is known when the run begins, and jobs tell no epochs. (d): jobs with batches as submitted, of which nothing is
reported but that they come and end, over Tiresias' published times.
**spread-N**: the same with (b) and (c) where jobs of an application need differently much: data of a lognormal size
(σ = 1, mean 1) that nobody tells, five draws; over the rule ``goodput`` in the same simulator on the same jobs, which
needs no lengths. What the other workloads ran before (b) is spread alike.

Goals are of the means over the four workloads; rows say of each whether it alone meets them.

Coverage is of the 90 % intervals of the time to completion that answers gave, averaged over jobs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from steward_demos.service import Steward, own_service

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import Integers
from app.kinds.cluster.strategies import goodput
from benchmarks.cluster_goodput import WORKLOADS, interval
from tests.pollux.adaptive import AdaptiveSimulator
from tests.pollux.measured import NCF_BATCH, ONE_GPU, Application, read_applications
from tests.pollux.simulator import ClusterSimulator, Submission, packed_first, read_log
from workers.evaluation.statistics import mean_interval

PARTS = (*WORKLOADS, *(name.replace("workload", "spread") for name in WORKLOADS))
GOALS = {"a": 0.81, "b": 0.83, "c": 0.88, "d": 1.0}
SPREAD = {"b": 0.9, "c": 0.94}
DRAWS, OTHERS = 5, 2
MOST_GPUS = 64
SETTLED_SECONDS = 2.0
"""After which new runs go by a new model: the API looks for one twice a second."""
COVERAGE = (0.85, 0.97)
Row = dict[str, Any]
Json = dict[str, Any]


class Told(NamedTuple):
    """What jobs report: the epochs that they need, their validation metric, and how their steps go."""

    epochs: bool = False
    metric: bool = False
    steps: bool = True


class Predicted(NamedTuple):
    """What an answer said of a job: when, and seconds until it is finished, with their interval if there was one."""

    job: str
    now: float
    seconds: float
    bounds: tuple[float, float] | None


class Service:
    """A live run of a workload of a running service: reports, and the answers."""

    def __init__(self, steward: Steward, workload: str) -> None:
        self._steward, self._number = steward, 0
        self.run = str(steward.start(workload)["id"])

    def __call__(self, report: Json) -> Json:
        """The answer to a report."""
        self._number += 1
        return self._steward.report(self.run, self._number - 1, report)

    def finish(self) -> None:
        """All that it reported becomes a sample."""
        self._steward.finish(self.run)


class _Served(ClusterSimulator):
    """Jobs that are given what a service answers."""

    service: Service
    reports: Told

    def _begin(self, service: Service, reported: Told) -> None:
        self.service, self.reports, self.predicted, self.waits = service, reported, list[Predicted](), list[Predicted]()
        self.starts = dict[str, list[float]]()
        self._names = set[str]()

    def _decide(self) -> None:
        """Report, and give jobs the nodes that are answered."""
        names = {self.log[number].name for number in self.which}
        report = {
            "at": self.now,
            "submitted": [self.submitted(n) for n in self.which if self.log[n].name not in self._names],
            "progressed": [*self._progressed()] if self.reports.steps else [],
            "ended": [{"job": name} for name in sorted(self._names - names)],
        }
        self._names, allocation = names, self.jobs.allocation.copy()
        at = {self.log[number].name: row for row, number in enumerate(self.which)}
        answer = self.service(report)
        for change in answer["changes"]:
            allocation[at[change["job"]]] = self._given(change)
        for one in answer["starts"]:
            low, high = one["seconds_low"], one["seconds_high"]
            bounds = None if low is None else (low, high)
            self.waits.append(Predicted(one["job"], self.now, one["seconds"], bounds))
        assert (allocation.sum(axis=0) <= self.capacity).all()  # noqa: S101 - else the service gave what isn't there
        moved = np.flatnonzero((allocation != self.jobs.allocation).any(axis=1) & allocation.any(axis=1))
        self.jobs = table.move(self.jobs, allocation, self.settings.restart_seconds)
        self.started(moved)

    def _given(self, change: Json) -> Integers:
        if change["code"] == "started":
            self.starts.setdefault(change["job"], []).append(self.now)
        if change["seconds_left"] is not None:
            low, high = change["seconds_left_low"], change["seconds_left_high"]
            bounds = None if low is None else (low, high)
            self.predicted.append(Predicted(change["job"], self.now, change["seconds_left"], bounds))
        row = np.zeros(len(self.capacity), np.int64)
        for node, gpus in change["nodes"].items():
            row[int(node.rpartition("-")[2])] = gpus
        return row

    def submitted(self, number: int) -> Json:
        """What is told of a job that came."""
        job, (_, most) = self.log[number], self._limits[number]
        return {"job": job.name, "gpus": min(job.gpus, most), "maximum": most, "at": job.time}

    def _progressed(self) -> Iterator[Json]:
        return iter(())


class Fixed(_Served):
    """Jobs whose batches are as submitted, and of which nothing is told."""

    def __init__(self, applications: dict[str, Application], log: Sequence[Submission], service: Service) -> None:
        super().__init__(applications, log, goodput)
        self._begin(service, Told(steps=False))


class Choosing(_Served, AdaptiveSimulator):
    """Jobs that choose their batches, and report what they measure."""

    def __init__(
        self, applications: dict[str, Application], log: Sequence[Submission], service: Service, reported: Told
    ) -> None:
        AdaptiveSimulator.__init__(self, applications, log, goodput)
        self._begin(service, reported)

    def submitted(self, number: int) -> Json:
        """With limits of its batch."""
        job, one = self.log[number], self.applications[number]
        alone = one.name in ONE_GPU
        most = 1 if alone else min(MOST_GPUS, one.largest // one.smallest_local)
        result: Json = {"job": job.name, "gpus": min(job.gpus, most), "maximum": most, "at": job.time}
        result |= {"application": one.name, "batch": NCF_BATCH if alone else one.initial}
        if not alone:
            limits = {"gpu_batch_minimum": one.smallest_local, "gpu_batch_maximum": one.largest_local}
            result |= {"batch_maximum": one.largest, **limits}
        return result | ({"iterations": one.epochs} if self.reports.epochs else {})

    def _progressed(self) -> Iterator[Json]:
        for at, number in enumerate(self.which):
            name, current = self.log[number].name, self.jobs.allocation[at]
            if name in self._names and current.any() and self._batches[number].atomic:
                yield {"job": name, **self._measured(at, number, current)}

    def _measured(self, at: int, number: int, allocation: Integers) -> Json:
        one, batch, placement = self.applications[number], self._batches[number], packed_first(allocation)
        epoch = int(self.progress.epoch[at])
        result: Json = {"iteration": epoch if self.reports.epochs else 0}
        if self.reports.metric and epoch:
            result["metric"] = float(one.validation.metric[0][min(epoch, one.epochs) - 1])
        if self.jobs.restarting[at] > 0:
            return result
        step, gpus, parts = one.step(placement, batch.atomic), sum(placement), batch.accumulated + 1
        computing = step.seconds - step.synchronising
        squared, variance = self._gradients[number]
        result |= {"seconds": step.seconds + (parts - 1) * computing, "computing": parts * computing}
        result |= {"gpus": gpus, "nodes": len(placement), "batch": gpus * batch.atomic * parts}
        return result | ({"noise_scale": float(one.initial * variance / squared)} if squared > 0 else {})


class Bench:
    """A running service, the applications that were measured, and workloads that are registered by name."""

    def __init__(self, steward: Steward) -> None:
        self._steward, folder = steward, Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"
        self.applications = read_applications(folder / "traces")
        self.published = json.loads((folder / "golden_jct.json").read_text())
        self._logs = {name: read_log(folder / "workloads" / f"{name}.csv") for name in WORKLOADS}

    def registered(self, name: str) -> str:
        """A workload of 16 nodes with 4 GPUs each."""
        nodes = [{"name": "n", "count": 16, "gpus": 4}]
        self._steward.register({"name": name, "kind": "cluster", "nodes": nodes})
        return name

    def log(self, name: str, draw: int | None) -> list[Submission]:
        """Jobs of a workload, their data spread by a draw."""
        log = self._logs[name]
        if draw is None:
            return log
        sizes = np.random.default_rng([draw, WORKLOADS.index(name)]).lognormal(-0.5, 1.0, len(log))
        return [job._replace(data=float(size)) for job, size in zip(log, sizes, strict=True)]

    def informed(self, name: str, draw: int | None) -> str:
        """A workload that knows what two others reported when they ran."""
        workload = self.registered(f"{name}-informed" + ("" if draw is None else f"-{draw}"))
        for step in range(1, OTHERS + 1):
            other = WORKLOADS[(WORKLOADS.index(name) + step) % len(WORKLOADS)]
            service = Service(self._steward, workload)
            Choosing(self.applications, self.log(other, draw), service, Told(epochs=True, metric=True)).run()
            service.finish()
        for _ in self._steward.follow(self._steward.fit(workload)):
            pass
        time.sleep(SETTLED_SECONDS)
        return workload

    def played(self, workload: str, log: Sequence[Submission], reported: Told) -> _Served:
        """All jobs of a log, until they have ended; the run is left unfinished, so that nothing is learned from it."""
        service = Service(self._steward, workload)
        played = Choosing(self.applications, log, service, reported) if reported.steps else self._fixed(log, service)
        played.run()
        return played

    def _fixed(self, log: Sequence[Submission], service: Service) -> _Served:
        return Fixed(self.applications, log, service)


def results(names: Sequence[str] = PARTS) -> list[Row]:
    """Rows of each part."""
    results = []
    with own_service() as steward:
        bench = Bench(steward)
        for name in names:
            rows = published(bench, name) if name in WORKLOADS else spread(bench, name.replace("spread", "workload"))
            results += [*rows]
    return results


CASES = {"a": Told(epochs=True), "b": Told(), "c": Told(), "d": Told(steps=False)}
WORDS = {
    "a": "others known, epochs told",
    "b": "others known, epochs not told",
    "c": "nothing known",
    "d": "nothing known, nothing told",
}


def published(bench: Bench, name: str) -> Iterator[Row]:
    """The four cases of one workload beside published completion times."""
    log = bench.log(name, None)
    known, new = bench.informed(name, None), bench.registered(f"{name}-new")
    for case, reported in CASES.items():
        peer = "tiresias" if case == "d" else "pollux"
        played = bench.played(known if case in "ab" else new, log, reported)
        ours = np.array([played.completed[job.name] for job in log])
        theirs = np.array([bench.published[peer]["jct"][name][job.name] for job in log])
        low, high = interval(ours, theirs)
        of = f"{name} ({case}: {WORDS[case]}; ratio over resampled jobs {low:.3f}–{high:.3f})"
        yield _row(of, float(ours.mean()), f"{peer.capitalize()}, as published", float(theirs.mean()), GOALS[case])
        if case != "d":
            of = f"{name} ({case}: {WORDS[case]})"
            ends = {job.name: job.time + played.completed[job.name] for job in log}
            yield _covered(of, "ends", [(one, ends[one.job] - one.now) for one in played.predicted])
            begun = [(one, [at for at in played.starts[one.job] if at > one.now]) for one in played.waits]
            yield _covered(of, "starts", [(one, starts[0] - one.now) for one, starts in begun])


def spread(bench: Bench, name: str) -> Iterator[Row]:
    """The cases without epochs of one workload, lengths spread, beside the rule that needs no lengths."""
    logs = [bench.log(name, draw) for draw in range(DRAWS)]
    matches = [AdaptiveSimulator(bench.applications, log, goodput).run() for log in logs]
    theirs = [statistics.mean(one[job.name] for job in log) for one, log in zip(matches, logs, strict=True)]
    known, new = bench.informed(name, DRAWS), bench.registered(f"{name}-spread-new")
    for case, goal in SPREAD.items():
        workload = known if case == "b" else new
        ours = [statistics.mean(bench.played(workload, log, CASES[case]).completed.values()) for log in logs]
        ratio = mean_interval(np.array(ours) / np.array(theirs))
        bounds = f"{ratio['low']:.3f}–{ratio['high']:.3f} over {DRAWS} draws"
        of = f"{name}, spread lengths ({case}: {WORDS[case]}; {bounds})"
        yield _row(of, statistics.mean(ours), "goodput rule", statistics.mean(theirs), goal)


def _covered(name: str, what: str, came: Sequence[tuple[Predicted, float]]) -> Row:
    """Share of predictions whose interval held what came, averaged over jobs; and the median of said over real."""
    flags, values = dict[str, list[bool]](), list[float]()
    for one, seconds in came:
        real = max(seconds, 1.0)
        values.append(one.seconds / real)
        if one.bounds is not None:
            flags.setdefault(one.job, []).append(one.bounds[0] <= real <= one.bounds[1])
    if not flags:
        return _told(f"{name}: predictions of {what}, none of which had an interval", len(came), "", "predictions")
    share = float(np.mean([np.mean(each) for each in flags.values()]))
    every, median = float(np.mean([one for each in flags.values() for one in each])), statistics.median(values)
    text = f"{name}: {what} within their 90 % intervals, by job ({len(flags)} jobs; by prediction {every:.2f}; "
    text += f"median of said over real {median:.2f})"
    met = "met" if COVERAGE[0] <= share <= COVERAGE[1] else "missed"
    return _told(text, share, f"{COVERAGE[0]:g} to {COVERAGE[1]:g}: {met}")


def _told(name: str, value: float, goal: str, unit: str = "of all") -> Row:
    row = {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None}
    return {**row, "ratio": None, "goal": goal}


def _row(name: str, ours: float, peer: str, theirs: float, goal: float) -> Row:
    met = f"≤ {goal:g} × {peer.partition(',')[0]}: {'met' if ours / theirs <= goal else 'missed'}"
    row = {"name": name, "value": ours, "unit": "s", "peer": peer, "peer_value": theirs}
    return {**row, "ratio": ours / theirs, "goal": met}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_served", results())
