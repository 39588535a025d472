"""What it means for a queue to be at risk, and to have met its targets: the deadlines of its tasks."""

from __future__ import annotations

import math

import numpy as np

from app.kinds.contract.run_outcome import Ended, Judgement, in_time
from app.kinds.workflow.decisions.compiled import Compiled
from app.kinds.workflow.queue.state import WAITING, State


def risk(compiled: Compiled, state: State) -> str:
    """Which tasks have passed their deadlines, or would not end in time if they started now on the fastest node; empty
    where none is late. A task is expected to take what the domain model predicts, else its estimate.
    """
    queue, predictor = state.queue, compiled.predictor
    if np.isnan(queue.deadline).all():
        return ""
    known = queue.estimate if predictor is None else predictor.expected(queue.estimate, queue.users, state.history)
    expected = np.nan_to_num(known) / compiled.layout.nodes.speed.max()
    rest = np.where(queue.node == WAITING, expected, 0.0)
    late = np.flatnonzero(state.now + rest > queue.deadline).tolist()  # no comparison holds for what is not a number
    if not late:
        return ""
    task, due = queue.names[late[0]], float(queue.deadline[late[0]])
    more = f", and {len(late) - 1:,} more" if len(late) > 1 else ""
    moment = f"its deadline of {due:,.0f} s (now {state.now:,.0f} s)"
    if due < state.now:
        return f"{task} is past {moment}{more}"
    source = "its estimate" if predictor is None else "its predicted run time"
    return f"{task} may miss {moment} by {source}{more}"


def judge(run: Ended) -> Judgement:
    """Every task that had a deadline and ended, by what was reported; unended ones are late once it passed."""
    due: dict[str, float] = {}
    late, met, now = 0, 0, -math.inf
    for report in run.reports:
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
        if not report.get("delta"):  # a whole queue: who is left out was withdrawn
            listed = {task["id"] for task in (*report.get("queued", ()), *report.get("running", ()))}
            due = {name: deadline for name, deadline in due.items() if name in listed}
    late += sum(deadline < now for deadline in due.values())
    return in_time(late, late + met, "task")
