"""What is shown of policies that share the same cluster among the same jobs, as plots (``workers.evaluation.report``).

Completion times are of all episodes, what happens over time is of the one with the most jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from workers.kinds.cluster.evaluation.converging import convergence
from workers.kinds.cluster.evaluation.recording import Recorded
from workers.kinds.cluster.world.drawing import draw

Json = dict[str, Any]
MOST_LINES, MOST_NAMED = 6, 5
"""Policies, and jobs that have a colour of their own; what is more can't be told apart."""
BINS, DRAWS = 12, 400
SHARES = np.linspace(0, 1, 51)
OTHERS, FREE = "other jobs", "free"
TITLE = "Jobs, one by one"
TOLD = (
    "All jobs of {episodes} episodes in which seeds alone differ, under each of these policies; over time, the episode "
    "with the most jobs, under {compared}."
)


def pictures(
    layout: Layout, model: ClusterModel, played: Mapping[str, Recorded], compared: Sequence[str], episodes: int
) -> Json:
    """All plots.

    Args:
        layout: of the workload.
        model: its domain model.
        played: by policy, in the order in which to show them; all of the same jobs.
        compared: those that are shown over time.
        episodes: that were played.
    """
    shown = dict(list(played.items())[:MOST_LINES])
    beside = {name: played[name] for name in compared}
    plots = [allocation(layout, beside), queue(layout, beside), arrivals(layout, model, next(iter(played.values())))]
    plots += [completion(shown), *convergence(layout, model)]
    told = TOLD.format(episodes=episodes, compared=" and ".join(compared))
    return {"title": TITLE, "told": told, "plots": plots}


def allocation(layout: Layout, played: Mapping[str, Recorded]) -> Json:
    """Who has how many GPUs, stacked; the same jobs have the same colour under each policy."""
    first = next(iter(played.values()))
    most = np.argsort(-first.gpus.sum(axis=0), kind="stable")[:MOST_NAMED]
    chosen = sorted(most[first.gpus.sum(axis=0)[most] > 0].tolist())
    total = int(layout.capacity.sum())
    return {
        "heading": "Allocation",
        "caption": "GPUs of each job over time; the largest by what they had under the first of them are named",
        "form": "areas",
        "x": _hours(layout),
        "y": {"title": "GPUs", "domain": [0, total]},
        "neutral": FREE,
        "panels": [{"name": name, "series": _stacked(one, chosen, total)} for name, one in played.items()],
    }


def _stacked(one: Recorded, chosen: Sequence[int], total: int) -> list[Json]:
    names = _names(one)
    rest = np.delete(one.gpus, chosen, axis=1).sum(axis=1)
    each = [(names[job], one.gpus[:, job]) for job in chosen]
    parts = [*each, (OTHERS, rest), (FREE, total - one.gpus.sum(axis=1))]
    return [_line(one, name, values) for name, values in parts]


def _names(one: Recorded) -> list[str]:
    """Of jobs: what each trains, and its number."""
    known, positions = one.truth.beliefs.applications, one.truth.coming.application.tolist()
    return [f"{known[at] if at >= 0 else 'job'} {number}" for number, at in enumerate(positions)]


def queue(layout: Layout, played: Mapping[str, Recorded]) -> Json:
    """Jobs that wait."""
    series = [_line(one, name, one.waiting.sum(axis=1)) for name, one in played.items()]
    return {
        "heading": "Queue",
        "caption": "Jobs that are there and have no GPU, over time",
        "form": "steps",
        "x": _hours(layout),
        "y": {"title": "jobs that wait", "zero": True},
        "panels": [{"name": "", "series": series}],
    }


def arrivals(layout: Layout, model: ClusterModel, one: Recorded) -> Json:
    """GPUs that are asked for over the episode, and what the domain model expects, with its band."""
    seconds = layout.spec.interval_seconds * layout.spec.episode_intervals
    edges = np.linspace(0, seconds, BINS + 1)
    coming, random, total = one.truth.coming, np.random.default_rng(0), int(layout.capacity.sum())
    first = int(one.truth.begins // 3600)
    drawn = [draw(model.arrivals, first, seconds, 1.0, total, random) for _ in range(DRAWS)]
    every = np.array([_asked(each.time, each.asked, edges) for each in drawn])
    low, high = np.quantile(every, [0.05, 0.95], axis=0)
    hours = edges / 3600
    band = {"low": _values(np.append(low, low[-1])), "high": _values(np.append(high, high[-1]))}
    expected = every.mean(axis=0)
    return {
        "heading": "Arrivals",
        "caption": "GPUs that jobs ask for when they come, and what the domain model expects; shaded: 90 % of what may "
        "come",
        "form": "steps",
        "x": _hours(layout),
        "y": {"title": "GPUs asked for", "zero": True},
        "panels": [
            {
                "name": "",
                "series": [
                    {**_series("expected", hours, np.append(expected, expected[-1])), **band},
                    _series("came", hours, _last_twice(_asked(coming.time, coming.asked, edges))),
                ],
            }
        ],
    }


def _asked(time: Floats, asked: NDArray[np.int64], edges: Floats) -> Floats:
    return np.asarray(np.histogram(time, edges, weights=asked)[0], np.float64)


def completion(played: Mapping[str, Recorded]) -> Json:
    """Share of the jobs that are finished within that time."""
    series = []
    for name, one in played.items():
        ended = one.completion[~np.isnan(one.completion)]
        if len(ended):
            share = SHARES * len(ended) / len(one.completion)
            series.append(_series(name, np.maximum(np.quantile(ended, SHARES), 1.0) / 3600, share))
    return {
        "heading": "Completion times",
        "caption": "Share of the jobs that are finished within that time; the rest wasn't by the episode's end",
        "form": "lines",
        "x": {"title": "hours from submission to end", "log": True},
        "y": {"title": "share of jobs", "share": True, "domain": [0, 1]},
        "panels": [{"name": "", "series": series}],
    }


def _hours(layout: Layout) -> Json:
    return {"title": "hours", "domain": [0, layout.spec.interval_seconds * layout.spec.episode_intervals / 3600]}


def _line(one: Recorded, name: str, values: NDArray[Any]) -> Json:
    """Steps, the last of which goes on to the end."""
    wide = one.begins[1] - one.begins[0] if len(one.begins) > 1 else 1.0
    return _series(name, np.append(one.begins, one.begins[-1:] + wide) / 3600, _last_twice(values))


def _last_twice(values: NDArray[Any]) -> NDArray[Any]:
    return np.append(values, values[-1:])


def _series(name: str, x: NDArray[Any], y: NDArray[Any]) -> Json:
    return {"name": name, "x": _values(x), "y": _values(y)}


def _values(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 5) for value in values]
