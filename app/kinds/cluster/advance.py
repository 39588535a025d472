"""The state of a cluster run after a report: the report's validation, passage of time, ended jobs, node changes and
arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from app.charts.text import exact
from app.kinds.cluster import experience, records
from app.kinds.cluster import jobs as table
from app.kinds.cluster import state as counting
from app.kinds.cluster.layout import ClusterState, Layout
from app.kinds.cluster.report import (
    MOST_CELLS,
    MOST_JOBS,
    MOST_NAMES,
    ClusterReport,
    Progressed,
    Submitted,
)
from app.kinds.contract.inputs import Contradiction, FieldIssue, InvalidInput

# Plausibility of reported measurements: GPUs and nodes that exist, steps no longer than the job is known.


BEFORE = 3_600.0
"""Seconds by which a step may be longer than the time since its job's submission: the job may have run before."""


def check(layout: Layout, state: ClusterState, report: ClusterReport) -> None:
    """Validate the measurements in ``report.progressed``; return nothing.

    Raises:
        InvalidInput: a step names more GPUs or nodes than the cluster has, or its ``seconds`` exceed the time since its
            job's submission by more than ``BEFORE``.
    """
    since = _since(state, report) if any(one.seconds is not None for one in report.progressed) else {}
    issues = list[FieldIssue]()
    for at, one in enumerate(report.progressed):
        results = [*_place(layout, one), *_time(one, since.get(one.job), report.at)]
        issues += [issue._replace(pointer=f"/progressed/{at}/{issue.pointer}") for issue in results]
    if issues:
        raise InvalidInput(issues)


def _since(state: ClusterState, report: ClusterReport) -> dict[str, float]:
    """Map the name of each present or newly submitted job to its submission time, seconds since the run's start. New
    jobs whose report states no time are left out."""
    times = {job.job: job.at for job in report.submitted if job.at is not None}
    return times | dict(zip(state.names, state.jobs.submitted.tolist(), strict=True))


def _place(layout: Layout, one: Progressed) -> Iterator[FieldIssue]:
    """Yield an issue if a measured step names more GPUs than the cluster has, or nodes that can't hold its GPUs."""
    total, largest, nodes = int(layout.capacity.sum()), int(layout.capacity.max()), len(layout.capacity)
    if one.gpus is not None and one.gpus > total:
        yield FieldIssue("gpus", f"must be 1 to {total}, the GPUs of all nodes", one.gpus)
    elif one.nodes is not None:
        fewest, most = (1, nodes) if one.gpus is None else (-(-one.gpus // largest), min(one.gpus, nodes))
        if not fewest <= one.nodes <= most:
            on = "the number of nodes" if one.gpus is None else f"the nodes that {one.gpus} GPUs can take"
            yield FieldIssue("nodes", f"must be {fewest} to {most} ({on})", one.nodes)


def _time(one: Progressed, since: float | None, now: float) -> Iterator[FieldIssue]:
    """Yield an issue if a step's ``seconds`` exceed by ``BEFORE`` the time from the job's submission ``since`` to
    ``now``. ``since`` and ``now`` are seconds since the run's start; ``since`` None: no check."""
    if one.seconds is not None and since is not None and one.seconds > now - since + BEFORE:
        accepted = f"must be at most {exact(now - since + BEFORE)} (an hour more than the age of its job)"
        yield FieldIssue("seconds", accepted, one.seconds)


# Transition from a state and a report to the next state.


ENDED, UNKNOWN = -1, -2  # positions of jobs that are not there
ONCE = "must be named once in a report"


class Request(NamedTuple):
    """GPU request of a submitted job.

    Attributes:
        queue: position of its queue in the spec, 0 the most urgent.
        gpus: number of GPUs requested.
        minimum, maximum: smallest and largest number of GPUs that the job can use.
    """

    queue: int
    gpus: int
    minimum: int
    maximum: int


def advance(layout: Layout, state: ClusterState, report: ClusterReport) -> ClusterState:
    """Return the state after a report; jobs that remain keep their nodes until the next decision.

    Raises:
        InvalidInput: the report names an unknown queue or node, has impossible numbers of GPUs, or is too large.
        Contradiction: the report is older than the last one, submits a job that is present, or names one that is not.
    """
    _check_time(state, report)
    # Raise InvalidInput if a report names a job twice in ``ended``, or a node twice in ``nodes``
    ended, nodes = [one.job for one in report.ended], [one.node for one in report.nodes]
    issues = [FieldIssue(f"/ended/{at}/job", ONCE, ended[at]) for at in _twice(ended)]
    issues += [FieldIssue(f"/nodes/{at}/node", ONCE, nodes[at]) for at in _twice(nodes)]
    if issues:
        raise InvalidInput(issues)
    check(layout, state, report)
    requests = _requests(layout, report)
    capacity = _capacity(layout, state, report)
    stay, new = _stay(state, report), _new(state, report)
    _check_few(len(layout.capacity), sum(stay), len(new))
    _check_names(state, stay, [report.submitted[at].job for at in new])
    jobs = table.pass_time(state.jobs, report.at, report.at - state.now, layout.demotion)
    # Positions, in the state before the report, of the jobs that leave with it and did not fail
    failed = {job.job for job in report.ended if job.state == "failed"}
    each = enumerate(zip(state.names, stay, strict=True))
    finished = [at for at, (name, stays) in each if not stays and name not in failed]
    older = records.add_training_time(state.records, state.jobs, report.at - state.now)
    shown = counting.add_finished_jobs(state._replace(records=older), finished)
    jobs, older = table.keep(jobs, stay), records.keep(older, stay)
    learned = experience.keep(state.learning, stay)
    names = [name for name, stays in zip(state.names, stay, strict=True) if stays]
    if new:
        submitted = [report.submitted[at] for at in new]
        came = np.array([_submission_time(job, report) for job in submitted])
        queue, columns, minimum, maximum = np.array([requests[at] for at in new], np.int64).T
        jobs = table.arrive(jobs, came, queue, columns, (minimum, maximum))
        older = records.append_jobs(older, records.of(submitted))
        learned = experience.join(learned, len(new))
        names += [job.job for job in submitted]
    positions = _positions(names, report)
    if positions:
        at = [*positions.values()]
        older = records.update_progress(older, at, [report.progressed[place] for place in positions], jobs)
        learned = experience.extend_curves(learned, at, older) if layout.spec.convergence else learned
    off = counting.prediction_errors(state, finished, report.at)
    after = ClusterState(report.at, tuple(names), jobs, capacity, older, learned, shown, off, state.off_starts)
    steps = {at: report.progressed[place] for place, at in positions.items()}
    return counting.count_steps(after, state, steps) if steps else after


def _check_time(state: ClusterState, report: ClusterReport) -> None:
    """Raise Contradiction if a report is older than the last one, InvalidInput if a job is submitted after the
    report."""
    if report.at < state.now:
        accepted = f"must be at least {exact(state.now)} (the last time reported)"
        raise Contradiction([FieldIssue("/at", accepted, report.at)])
    late = [(at, job.at) for at, job in enumerate(report.submitted) if job.at is not None and job.at > report.at]
    if late:
        at, moment = late[0]
        accepted = f"must be at most {exact(report.at)} (the time of the report)"
        raise InvalidInput([FieldIssue(f"/submitted/{at}/at", accepted, moment)])


def _check_few(nodes: int, stay: int, new: int) -> None:
    """Raise InvalidInput if more than ``MOST_JOBS`` jobs, or ``MOST_CELLS`` jobs × ``nodes``, would be present.
    ``stay`` and ``new`` are the numbers of jobs that remain and that arrive; without new jobs nothing is checked."""
    most = min(MOST_JOBS, MOST_CELLS // nodes)
    if new and stay + new > most:
        accepted = f"must leave at most {most:,} pending and running jobs in the run at once, on {nodes:,} nodes"
        raise InvalidInput([FieldIssue("/submitted", accepted, stay + new)])


def _check_names(state: ClusterState, stay: Sequence[bool], new: Sequence[str]) -> None:
    """Raise InvalidInput if the names of the jobs that stay and of the ``new`` jobs exceed ``MOST_NAMES`` bytes in
    UTF-8. ``stay`` is a mask over the jobs of ``state``; without new jobs nothing is checked."""
    names = [name for name, stays in zip(state.names, stay, strict=True) if stays]
    length = sum(len(name.encode()) for name in (*names, *new)) if new else 0
    if length > MOST_NAMES:
        accepted = f"must leave jobs whose names have at most {MOST_NAMES:,} bytes together"
        raise InvalidInput([FieldIssue("/submitted", accepted, length)])


def _submission_time(job: Submitted, report: ClusterReport) -> float:
    """Return the submission time of a job, seconds since the run's start: its own, else the report's."""
    return report.at if job.at is None else job.at


def _requests(layout: Layout, report: ClusterReport) -> list[Request]:
    """Return the GPU requests of the submitted jobs, in the report's order, with defaults of the spec. Raises
    InvalidInput if a job names an unknown queue, or more GPUs than there are, or limits that contradict each other."""
    requests, issues, total = [], list[FieldIssue](), int(layout.capacity.sum())
    for at, job in enumerate(report.submitted):
        minimum = min(layout.spec.minimum, job.gpus) if job.minimum is None else job.minimum
        maximum = max(layout.spec.maximum or total, job.gpus) if job.maximum is None else job.maximum
        queue = layout.queues[-1] if job.queue is None else job.queue
        place = layout.queue_index.get(queue)
        if place is None:
            known = f"unknown queue; known: {', '.join(layout.queues)}"
            issues.append(FieldIssue(f"/submitted/{at}/queue", known, queue))
            continue
        issues += [issue._replace(pointer=f"/submitted/{at}/{issue.pointer}") for issue in _limits(job, total)]
        requests.append(Request(place, job.gpus, minimum, maximum))
    if issues:
        raise InvalidInput(issues)
    return requests


def _limits(job: Submitted, total: int) -> Iterator[FieldIssue]:
    """Yield an issue for each of a job's ``gpus``, ``minimum``, ``maximum`` that contradicts another or ``total``
    GPUs."""
    if job.gpus > total:
        yield FieldIssue("gpus", f"must be 1 to {total}, the GPUs of all nodes", job.gpus)
    most = min(job.gpus, job.maximum or job.gpus)
    if job.minimum is not None and job.minimum > most:
        yield FieldIssue("minimum", f"must be 1 to {most}, at most gpus and maximum", job.minimum)
    if job.maximum is not None and job.maximum < job.gpus:
        yield FieldIssue("maximum", f"must be at least {job.gpus}, the gpus that the job asks for", job.maximum)


def _capacity(layout: Layout, state: ClusterState, report: ClusterReport) -> table.Integers:
    """Return the GPUs of each node after the report, [nodes]. Raises InvalidInput if a node is unknown, or has more
    GPUs than in the spec."""
    unknown = [at for at, node in enumerate(report.nodes) if node.node not in layout.node_index]
    if unknown:
        accepted = f"unknown node; known: {layout.known_nodes}"
        raise InvalidInput([FieldIssue(f"/nodes/{at}/node", accepted, report.nodes[at].node) for at in unknown])
    capacity, places = layout.capacity if report.whole else state.capacity, layout.node_index
    if not report.nodes:
        return capacity
    issues = [
        FieldIssue(f"/nodes/{at}/gpus", f"must be 0 to {most}, as in the spec", node.gpus)
        for at, node in enumerate(report.nodes)
        if node.gpus > (most := int(layout.capacity[places[node.node]]))
    ]
    if issues:
        raise InvalidInput(issues)
    capacity = capacity.copy()
    for node in report.nodes:
        capacity[places[node.node]] = node.gpus
    return capacity


def _stay(state: ClusterState, report: ClusterReport) -> list[bool]:
    """Return whether each job of the state remains after the report; raise Contradiction if an ended job is unknown."""
    known, left = set(state.names), {job.job for job in report.ended}
    missing = [(at, job.job) for at, job in enumerate(report.ended) if job.job not in known]
    if missing:
        accepted = "must be a job of the run"
        raise Contradiction([FieldIssue(f"/ended/{at}/job", accepted, name) for at, name in missing])
    listed = {job.job for job in report.submitted} if report.whole else known
    return [name in listed and name not in left for name in state.names]


def _new(state: ClusterState, report: ClusterReport) -> list[int]:
    """Return indices into ``report.submitted`` of the jobs that are not yet present, ordered by submission time. Raises
    Contradiction if a name is submitted twice, or is already present and the report is not ``whole``."""
    known = set(state.names)
    again = [at for at, job in enumerate(report.submitted) if job.job in known and not report.whole]
    again += _twice([job.job for job in report.submitted])
    if again:
        accepted = "must be a new name: the run has a job of that name"
        raise Contradiction([FieldIssue(f"/submitted/{at}/job", accepted, report.submitted[at].job) for at in again])
    new = [at for at, job in enumerate(report.submitted) if job.job not in known]
    return sorted(new, key=lambda at: _submission_time(report.submitted[at], report))


def _positions(names: Sequence[str], report: ClusterReport) -> dict[int, int]:
    """Map indices into ``report.progressed`` to positions in ``names``, the jobs present; jobs that end now are left
    out. Raises Contradiction if a job with progress is neither present nor ended by this report."""
    index = {name: position for position, name in enumerate(names)}
    index |= dict.fromkeys((job.job for job in report.ended), ENDED)
    results = [index.get(one.job, UNKNOWN) for one in report.progressed]
    if UNKNOWN in results:
        accepted = "must be a job of the run"
        missing = [at for at, position in enumerate(results) if position == UNKNOWN]
        raise Contradiction(
            [FieldIssue(f"/progressed/{at}/job", accepted, report.progressed[at].job) for at in missing]
        )
    return {at: position for at, position in enumerate(results) if position != ENDED}


def _twice(names: Sequence[str]) -> list[int]:
    visited = set[str]()
    return [at for at, name in enumerate(names) if name in visited or visited.add(name)]  # type: ignore[func-returns-value]
