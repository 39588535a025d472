"""What it means for a queue to be at risk, and to have met its targets: the deadlines of its tasks."""

from __future__ import annotations

import math

import numpy as np

from app.kinds.contract.run_outcome import Ended, Judgement, in_time
from app.kinds.workflow.queue.state import WAITING, State


def risk(state: State) -> str:
    """Which tasks have passed their deadlines, or can't end in time by their estimates; empty where none has."""
    queue = state.queue
    if np.isnan(queue.deadline).all():
        return ""
    rest = np.where(queue.node == WAITING, np.nan_to_num(queue.estimate), 0.0)
    late = np.flatnonzero(state.now + rest > queue.deadline).tolist()  # no comparison holds for what is not a number
    if not late:
        return ""
    task, due = queue.names[late[0]], float(queue.deadline[late[0]])
    more = f", and {len(late) - 1:,} more" if len(late) > 1 else ""
    word = "is past" if due < state.now else "can't meet"
    return f"{task} {word} its deadline of {due:,.0f} s (now {state.now:,.0f} s){more}"


def judge(run: Ended) -> Judgement:
    """Every task that had a deadline and ended, by what was reported; unended ones are late once it passed."""
    due: dict[str, float] = {}
    late, met, now = 0, 0, -math.inf
    for report in run.reports():
        now = report["now"]
        for task in (*report.get("queued", ()), *report.get("running", ())):
            if task.get("deadline") is not None:
                due[task["id"]] = task["deadline"]
        for task in report.get("finished", ()):
            deadline = due.pop(task["id"], None)
            if deadline is not None:
                late, met = late + (task["end"] > deadline), met + (task["end"] <= deadline)
        for name in report.get("withdrawn", ()):
            due.pop(name, None)
    late += sum(deadline < now for deadline in due.values())
    return in_time(late, late + met, "task")
