"""The dashboard's HTML: plain tables, one style sheet, no script; everything that was given by someone is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any

from app.evaluations.schemas import EvaluationRead
from app.jobs.schemas import JobRead
from app.kinds.registry import KINDS
from app.runs.schemas import RunListed
from app.workloads.schemas import WorkloadListed

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #212529; }
h1 { margin-bottom: 0; } h2 { margin-top: 2rem; font-size: 1.1rem; } p { color: #495057; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; color: #495057; }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #dee2e6; vertical-align: top; }
a { color: #0b7285; } @media (prefers-color-scheme: dark) { body { background: #1a1b1e; color: #dee2e6; } }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Steward</title><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width"><style>{style}</style></head><body>
<h1>Steward</h1>
<p>Allocation as a service. <a href="/docs">API</a> · <a href="/openapi.json">schema</a> ·
<a href="/readyz">readiness</a> · <a href="/metrics">metrics</a></p>
{body}
</body></html>
"""


class Link(str):
    """A cell that is HTML already."""

    __slots__ = ()


def link(path: str, text: str) -> Link:
    """A link to the API's own answer."""
    return Link(f'<a href="{escape(path)}">{escape(text)}</a>')


def overview(
    workloads: Sequence[WorkloadListed],
    runs: Sequence[RunListed],
    evaluations: Sequence[EvaluationRead],
    jobs: Sequence[JobRead],
) -> str:
    """The whole page."""
    parts = [
        table("Workloads", ["name", "resources", "iterations", "answers", "targets"], map(workload_row, workloads)),
        table(
            "Latest runs", ["run", "workload", "state", "iteration", "allocation", "by", "reason"], map(run_row, runs)
        ),
        table("Latest evaluations", ["report", "workload", "class", "created"], map(evaluation_row, evaluations)),
        table("Latest jobs", ["job", "workload", "type", "state", "progress", "created"], map(job_row, jobs)),
    ]
    return PAGE.format(style=STYLE, body="\n".join(parts))


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A titled table, or a word that there is nothing."""
    lines = ["".join(f"<td>{cell if isinstance(cell, Link) else escape(cell)}</td>" for cell in row) for row in rows]
    if not lines:
        return f"<h2>{escape(title)}</h2><p>none yet</p>"
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<h2>{escape(title)}</h2>\n<table><thead><tr>{names}</tr></thead><tbody>\n{body}</tbody></table>"


def workload_row(workload: WorkloadListed) -> list[str]:
    """Name, resources, iterations, who answers, targets; or why it can't be told."""
    name = link(f"/workloads/{workload.name}", workload.name)
    if workload.problem is not None:
        return [name, workload.problem, "", "", ""]
    described = KINDS[workload.kind].describe(workload.spec)
    answers = "heuristic" if workload.champion is None else f"agent {workload.champion}"
    return [name, described.resources, described.length, answers, described.targets]


def run_row(run: RunListed) -> list[str]:
    """Identity, state and the last decision with its reason; or why it can't be told."""
    about = [link(f"/runs/{run.id}", run.id[:8]), run.workload, run.state, str(run.iterations)]
    if run.problem is not None:
        return [*about, "", "", run.problem]
    decision: Any = run.decision
    return [*about, KINDS[decision.kind].summarise(decision), decision.source, decision.reason.text]


def evaluation_row(evaluation: EvaluationRead) -> list[str]:
    """Link to the page, and the class of each agent."""
    found = [f"agent {verdict.agent}: {verdict.level or 'none'}" for verdict in evaluation.verdicts]
    return [
        link(f"/evaluations/{evaluation.id}/report", evaluation.id[:8]),
        evaluation.workload,
        ", ".join(found),
        moment(evaluation.created_at),
    ]


def moment(at: datetime) -> str:
    """To the second."""
    return at.strftime("%Y-%m-%d %H:%M:%S")


def job_row(job: JobRead) -> list[str]:
    """Identity, state and progress."""
    failed = f": {job.error.get('detail', '')}" if job.error else ""
    return [
        link(f"/jobs/{job.id}", job.id[:8]),
        job.workload,
        job.type,
        job.state + failed,
        f"{job.progress:.0%}",
        moment(job.created_at),
    ]
