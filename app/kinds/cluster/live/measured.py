"""Whether what a report says was measured of jobs can be, on the GPUs there are and in the time that has passed."""

from __future__ import annotations

from collections.abc import Iterator

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.live.report import EncodedProgressed, EncodedReport
from app.kinds.cluster.live.state import ClusterState
from app.kinds.contract.inputs import FieldIssue, InvalidInput

BEFORE = 3_600.0
"""Seconds for which a step may have been under way when its job was told, which may have run before."""


def check(layout: Layout, state: ClusterState, report: EncodedReport) -> None:
    """Nothing, if it can be.

    Raises:
        InvalidInput: on GPUs or nodes that the cluster hasn't, or steps by an hour longer than their job is there.
    """
    since = _since(state, report) if any(one.seconds is not None for one in report.progressed) else {}
    issues = list[FieldIssue]()
    for at, one in enumerate(report.progressed):
        found = [*_place(layout, one), *_time(one, since.get(one.job), report.at)]
        issues += [issue._replace(pointer=f"/progressed/{at}/{issue.pointer}") for issue in found]
    if issues:
        raise InvalidInput(issues)


def _since(state: ClusterState, report: EncodedReport) -> dict[str, float]:
    """When jobs came, by name; one that comes with the report and doesn't say when may have been there before."""
    said = {job.job: job.at for job in report.submitted if job.at is not None}
    return said | dict(zip(state.names, state.jobs.submitted.tolist(), strict=True))


def _place(layout: Layout, one: EncodedProgressed) -> Iterator[FieldIssue]:
    """What is wrong with where a step ran, by field."""
    total, largest, nodes = int(layout.capacity.sum()), int(layout.capacity.max()), len(layout.capacity)
    if one.gpus is not None and one.gpus > total:
        yield FieldIssue("gpus", f"must be 1 to {total}, the GPUs of all nodes", one.gpus)
    elif one.nodes is not None:
        fewest, most = (1, nodes) if one.gpus is None else (-(-one.gpus // largest), min(one.gpus, nodes))
        if not fewest <= one.nodes <= most:
            on = "there are" if one.gpus is None else f"can be that have {one.gpus} GPUs"
            yield FieldIssue("nodes", f"must be {fewest} to {most}, as many as {on}", one.nodes)


def _time(one: EncodedProgressed, since: float | None, now: float) -> Iterator[FieldIssue]:
    """What is wrong with how long a step took, by field."""
    if one.seconds is not None and since is not None and one.seconds > now - since + BEFORE:
        accepted = f"must be at most {now - since + BEFORE:g}: an hour more than its job is there"
        yield FieldIssue("seconds", accepted, one.seconds)
