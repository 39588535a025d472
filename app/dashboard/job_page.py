"""A job's page: progress, events, and a training's learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import select

from app.charts.figures import Figure, LearningPoint, learning
from app.dashboard.rendering import plain
from app.database.engine import Database
from app.database.tables import JobEvent
from app.jobs import service as jobs
from app.jobs.service import FINAL_STATES, JobRead

MOST_EVENTS, MOST_POINTS = 2_000, 300
SHOWN_EVENTS = 40
MOST_MARKS = 3
PLANS = ("optimum", "plan")
PLAN = "plan of the domain model"
"""Label of the plan's return. A heuristic may exceed it: trainings disturb the simulator that the plan was made for."""
CALLED = {"episode_return": "training_return"}
SHOWN_ABOVE = {"state", "progress", "units", "of", "eta_seconds", "yardsticks"}


class EventLine(NamedTuple):
    """One event of a job: its time, the job's state and progress (0 to 1), and what happened, in words."""

    at: datetime
    state: str
    progress: float
    words: str


class JobPage(NamedTuple):
    """Content of a job's page; ``open``: whether the job has not ended; events newest first."""

    job: JobRead
    request: Mapping[str, Any]
    open: bool
    figures: Sequence[Figure]
    events: Sequence[EventLine]


def page(database: Database, tenant: str, identifier: str) -> JobPage:
    """Content of a job's page; raises NotFound if there is no such job."""
    job = jobs.get(database, tenant, identifier)
    with database.reading() as session:
        row = jobs.require(session, tenant, identifier)
        newest = select(JobEvent).where(JobEvent.job_id == row.id).order_by(JobEvent.sequence.desc())
        events = list(session.scalars(newest.limit(MOST_EVENTS)))[::-1]
    in_pairs = reversed([*pairwise([None, *events])])
    lines = [_line(event, before.data if before else {}) for before, event in in_pairs if event]
    lines = [*lines[:1], *(line for line in lines[1:] if line.words)][:SHOWN_EVENTS]
    # Training returns of the plan and the best heuristics, by label; empty if unknown
    known: Mapping[str, float] = next(
        (event.data["yardsticks"] for event in reversed(events) if event.data.get("yardsticks")), {}
    )
    rules = sorted((name for name in known if name not in PLANS), key=lambda name: -known[name])
    shown = [*(name for name in PLANS if name in known), *rules[:MOST_MARKS]]
    return JobPage(
        job,
        row.request,
        job.state not in FINAL_STATES,
        _figures(events, {PLAN if name in PLANS else name.replace("_", " "): known[name] for name in shown}),
        lines,
    )


def _figures(events: Sequence[JobEvent], marks: Mapping[str, float]) -> list[Figure]:
    learnt = [
        LearningPoint(
            f"{event.data.get('algorithm', 'training')}, seed {event.data.get('seed', 0)}".replace("_", " "),
            event.data["steps"],
            event.data["episode_return"],
        )
        for event in events
        if isinstance(event.data.get("episode_return"), int | float) and "steps" in event.data
    ]
    if not learnt:
        return []
    caption = (
        "Mean reward per episode in the training simulator, with exploration; higher is better. "
        "Rewards are scaled: don't compare them with the return of evaluations."
    )
    if marks:
        caption += " Dashed: built-in policies in the same simulator."
    if PLAN in marks:
        caption += " Dotted: the best plan if the domain model were exact."
    learnt = list(dict.fromkeys(learnt))
    every = -(-len(learnt) // MOST_POINTS)
    return [learning(list(dict.fromkeys([*learnt[::every], learnt[-1]])), marks, caption, (PLAN,))]


def _line(event: JobEvent, before: Mapping[str, Any]) -> EventLine:
    """An event in one line, without members that are equal in the event before; no words if nothing else is new."""
    new = {name: value for name, value in event.data.items() if value is not None and value != before.get(name)}
    more = {name: value for name, value in new.items() if name not in SHOWN_ABOVE}
    words = ", ".join(f"{CALLED.get(name, name).replace('_', ' ')} {_word(value)}" for name, value in more.items())
    words = words or str(new.get("state", ""))
    return EventLine(event.created_at, str(event.data.get("state", "")), float(event.data.get("progress", 0.0)), words)


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {part}" for name, part in value.items() if not isinstance(part, list | dict))
    return plain(value)
