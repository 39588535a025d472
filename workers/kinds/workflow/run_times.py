"""The fit of a run-time predictor for kind ``workflow``: the family with the least error on later tasks.

The median relative error decides; the mean (MAPE) is reported too, but depends on the few tasks that end at once.

Each trace is processed in order of submission. A user's last run times are those that would have ended if every task
had started at once, since traces need not contain start times. The first 75 % of each trace are fitted, the rest is
predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.run_times import FAMILIES, LAST, PastTask, Predictor
from app.kinds.workflow.trace import Trace
from workers.estimators.base import TooLittleData

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
FEWEST_TASKS = 50
FEWEST_OF_USER = 5
HELD_OUT = 0.25
SHORTEST = 10.0  # seconds; shorter run times count as this in relative errors, as in bounded slowdown


class FittedPredictor(NamedTuple):
    """A fitted predictor of run times, and a report of JSON-like values on its errors."""

    predictor: Predictor
    report: dict[str, Any]


class TaskRecords(NamedTuple):
    """N tasks of a trace in order of submission: submission, run time and estimate (seconds; NaN: no estimate), [N]
    each, and the N users' names ("": unknown)."""

    submit: Floats
    runtime: Floats
    estimate: Floats
    users: list[str]


def fit_run_times(traces: Sequence[tuple[str, Trace]]) -> FittedPredictor:
    """Choose the family with the least median relative error on later tasks of the named traces, and fit it to all.

    Raises:
        TooLittleData: fewer than 50 tasks with a run time.
    """
    known = [_task_records(trace, rows) for _, trace in traces if len(rows := np.flatnonzero(trace.runtime > 0))]
    tasks = sum(len(part.runtime) for part in known)
    if tasks < FEWEST_TASKS:
        raise TooLittleData(f"{FEWEST_TASKS} tasks with run times", str(tasks))
    cuts = [int(len(part.runtime) * (1 - HELD_OUT)) for part in known]
    fitted = _fit_predictor([_part(part, 0, cut) for part, cut in zip(known, cuts, strict=True)])
    errors = {family: _errors(known, cuts, fitted, family) for family in FAMILIES}
    candidates = [_candidate(family, error) for family, error in errors.items()]
    best = min((entry for entry in candidates if entry["median"] is not None), key=lambda entry: entry["median"])
    candidates = [{**entry, "chosen": entry is best} for entry in candidates]
    report = {
        "family": best["family"],
        "candidates": candidates,
        "metrics": {
            "run_time": {
                "mape": best["mape"],
                "median": best["median"],
                "naive_mape": candidates[0]["mape"],
                "estimate_mape": candidates[1]["mape"],
            }
        },
        "executions": len(traces),
        "observations": tasks,
        "held_out": sum(len(part.runtime) - cut for part, cut in zip(known, cuts, strict=True)),
        "users": len({user for part in known for user in part.users if user}),
        "unexplained": [],
    }
    return FittedPredictor(_fit_predictor(known, str(best["family"])), report)


def predict_traces(traces: Sequence[Trace], predictor: Predictor) -> list[Trace]:
    """Return the traces with predicted seconds of each task, as the service predicts at its submission.

    For family ``history`` users' past run times are those of the trace's own tasks that have ended by then."""
    results = []
    for trace in traces:
        tasks = _task_records(trace, np.arange(trace.tasks))
        of_users = predictor.family == "history" or (predictor.family != "mean" and np.isnan(trace.estimate).any())
        seconds = _predict_tasks(tasks, 0, predictor) if of_users else _at_once(tasks, predictor)
        results.append(trace._replace(predicted=seconds))
    return results


def refit(predictor: Predictor, traces: Sequence[Trace]) -> Predictor:
    """Fit the family of ``predictor`` to other traces; return ``predictor`` itself if none of them has a run time."""
    parts = [_task_records(trace, np.flatnonzero(trace.runtime > 0)) for trace in traces]
    return _fit_predictor(parts, predictor.family) if any(len(part.runtime) for part in parts) else predictor


def _task_records(trace: Trace, rows: Integers) -> TaskRecords:
    users = [trace.users[user] if user >= 0 else "" for user in trace.user[rows].tolist()]
    return TaskRecords(trace.submit[rows], trace.runtime[rows], trace.estimate[rows], users)


def _part(known: TaskRecords, first: int, last: int) -> TaskRecords:
    at = slice(first, last)
    return TaskRecords(known.submit[at], known.runtime[at], known.estimate[at], known.users[at])


def _fit_predictor(parts: Sequence[TaskRecords], family: str = "estimate") -> Predictor:
    """Fit a predictor of ``family`` (one of ``FAMILIES``) to all parts together.

    Fitted are the mean run time in seconds (NaN without any task), the mean ratio of run time to estimate (1 without
    any estimate), and that ratio of each user with at least five tasks that have an estimate.
    """
    runtime, estimate = (np.concatenate([getattr(part, name) for part in parts]) for name in ("runtime", "estimate"))
    users = np.array([user for part in parts for user in part.users])
    both = estimate > 0
    share = np.where(both, runtime / np.where(both, estimate, 1.0), np.nan)
    ratios = {}
    for user in dict.fromkeys(users[users != ""].tolist()):
        own = share[(users == user) & both]
        if len(own) >= FEWEST_OF_USER:
            ratios[user] = float(own.mean())
    mean = float(runtime.mean()) if len(runtime) else np.nan
    return Predictor(family, mean, float(share[both].mean()) if both.any() else 1.0, ratios)


def _errors(known: Sequence[TaskRecords], cuts: Sequence[int], fitted: Predictor, family: str) -> Floats:
    """Return relative errors on k held-out tasks, [k]; [0] if most lack the estimate that the family needs."""
    predictor = Predictor(family, fitted.mean, fitted.ratio, fitted.ratios)
    results = []
    for part, cut in zip(known, cuts, strict=True):
        later = _part(part, cut, len(part.runtime))
        if family in ("estimate", "ratio") and np.isnan(later.estimate).mean() > 0.5:
            continue
        predicted = _predict_tasks(part, cut, predictor) if family == "history" else _at_once(later, predictor)
        results.append(np.abs(predicted - later.runtime) / np.maximum(later.runtime, SHORTEST))
    return np.concatenate(results) if results else np.zeros(0)


def _at_once(part: TaskRecords, predictor: Predictor) -> Floats:
    return predictor.expected(part.estimate, part.users, {})


def _predict_tasks(part: TaskRecords, cut: int, predictor: Predictor) -> Floats:
    """Predict the seconds of the tasks from index ``cut`` on, [N − cut], each from tasks ended at its submission."""
    history: dict[str, tuple[PastTask, ...]] = {}
    running: list[tuple[float, int]] = []
    predictions = np.zeros(len(part.runtime) - cut)
    submit, runtime = part.submit.tolist(), part.runtime.tolist()
    for i, user in enumerate(part.users):
        while running and running[0][0] <= submit[i]:
            row = heappop(running)[1]
            ended = PastTask(runtime[row], float(part.estimate[row]), 1)
            history[part.users[row]] = (*history.get(part.users[row], ()), ended)[-LAST:]
        if i >= cut:
            own = {user: history[user]} if user in history else {}
            predictions[i - cut] = predictor.expected(part.estimate[i : i + 1], [user], own)[0]
        if user and runtime[i] > 0:
            heappush(running, (submit[i] + runtime[i], i))
    return predictions


def _candidate(family: str, errors: Floats) -> dict[str, Any]:
    mape, median = (float(errors.mean()), float(np.median(errors))) if len(errors) else (None, None)
    return {"family": family, "mape": mape, "median": median}
