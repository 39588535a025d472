"""Which of a list are shown, and where the rest of it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

from app.database.engine import Database
from app.http.pagination import PageRequest
from app.jobs import service as jobs
from app.jobs.schemas import FINAL_STATES, JobRead, JobState
from app.kinds.contract.run_outcome import RunOutcome
from app.runs.schemas import RunState


class Chosen(NamedTuple):
    """Which of a list are shown.

    Attributes:
        path: of the list.
        states: that may be chosen among; empty where there are none.
        by: name of the field that these are values of.
    """

    path: str
    states: Sequence[str] = ()
    workload: str | None = None
    state: str | None = None
    outcome: str | None = None
    by: Literal["state", "outcome"] = "state"

    @property
    def current(self) -> str | None:
        """Which of ``states`` is chosen; a state where the list is of runs in one."""
        return (self.outcome or self.state) if self.by == "outcome" else self.state

    def address(self, **other: Any) -> str:
        """The list's, with some of it chosen otherwise."""
        asked = {"workload": self.workload, "state": self.state, "outcome": self.outcome} | other
        given = {name: value for name, value in asked.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path

    def choosing(self, one: str | None) -> str:
        """The list's address with one of ``states`` and no other; None: with all."""
        return self.address(**{"state": None, "outcome": None, self.by: one})

    def older(self, cursor: str | None) -> str | None:
        """Where the list goes on; None at its end."""
        return None if cursor is None else self.address(cursor=cursor)


def of_runs(workload: str | None, state: RunState | None = None, outcome: RunOutcome | None = None) -> Chosen:
    """Of runs, whose outcomes are offered."""
    return Chosen("/ui/runs", get_args(RunOutcome), workload, state, outcome, "outcome")


def of_jobs(workload: str | None, state: JobState | None = None) -> Chosen:
    """Of jobs."""
    return Chosen("/ui/jobs", get_args(JobState), workload, state)


class JobTable(NamedTuple):
    """Some jobs.

    Attributes:
        of: the workload whose jobs they are; None: they are of several.
        older: where the list goes on.
        again: where the table is to be had as it will be; None where all jobs have ended.
    """

    jobs: Sequence[JobRead]
    of: str | None
    older: str | None
    again: str | None


def job_table(database: Database, tenant: str, chosen: Chosen, request: PageRequest) -> JobTable:
    """The jobs that are chosen.

    Raises:
        NotFound: no such workload.
    """
    found, names = jobs.listed(database, tenant, request, chosen.workload, chosen.state)
    lines = [jobs.read(job, names[job.workload_id]) for job in found.rows]
    moving = any(job.state not in FINAL_STATES for job in lines)
    again = chosen.address(part="true", cursor=request.cursor, rows=request.limit) if moving else None
    return JobTable(lines, chosen.workload, chosen.older(found.cursor), again)
