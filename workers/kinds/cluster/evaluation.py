"""Evaluations of kind ``cluster``: the problem, recordings of jobs, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import LearningCurves
from app.kinds.cluster.lookahead import Progress, Tolerance, none, update_convergence
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.outlook import UNKNOWN
from app.kinds.cluster.policies import ENTRIES, FACTORS
from app.kinds.contract.policy import Situation
from workers.evaluation.arena import Player, play
from workers.evaluation.problem import Axis, HeatMapAxes
from workers.evaluation.statistics import Level
from workers.kinds.cluster.episodes import DRAWN, STEPS, Episodes, draw, draw_curves, foreseen, seen_at
from workers.kinds.cluster.kernels import CAME, NOBODY
from workers.kinds.cluster.world import ClusterWorld
from workers.kinds.simulated.problem import SimulatedProblem


class JobRecording(NamedTuple):
    """Jobs of all episodes under one policy; courses over time are of the episode with the most jobs: K jobs, T
    intervals.

    Attributes:
        names: application and number of each of those K jobs, [K].
        time: seconds since the episode began at which each job comes, [K].
        requested_gpus: requested GPUs, [K].
        hour: hour of the day (UTC, 0 to 23) at which that episode begins.
        completion: seconds from submission to end of every job of all episodes; NaN: unfinished.
        begins: seconds at which each interval begins, [T].
        gpus: GPUs of each job in each interval, [T, K].
        waiting: whether a job is present without GPUs, [T, K].
    """

    names: list[str]
    time: Floats
    requested_gpus: Integers
    hour: int
    completion: Floats
    begins: Floats
    gpus: Integers
    waiting: NDArray[np.bool_]


class ChartedState(NamedTuple):
    """The charted episode of L jobs before a decision: seconds, GPUs of each job [L], mask of present jobs [L]."""

    now: float
    gpus: Integers
    there: NDArray[np.bool_]


class Recorder:
    """Records one policy's episodes of a world: ``workers.evaluation.arena.play`` calls ``watch``."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._last: Episodes | None = None
        self._completed: Floats = np.zeros(0)
        self._shown: list[ChartedState] = []
        self._at = 0

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:  # noqa: ARG002
        """Record completions in all episodes and GPUs in the one with the most jobs; ``situation`` suffices."""
        last: Episodes = situation.state
        if self._last is None:
            self._at = int((last.drawn.steps > 0).sum(axis=1).argmax())
        clusters, at = last.clusters, self._at
        self._last, self._completed = last, clusters.completed.copy()
        here = (np.arange(clusters.time.shape[1]) < clusters.counts[at, CAME]) & np.isnan(clusters.completed[at])
        self._shown.append(ChartedState(float(clusters.now[at]), clusters.gpus[at].copy(), here))

    def recording(self) -> JobRecording:
        """Return the recording after the episodes' end; their last interval is not in it.

        Raises:
            RuntimeError: no state was recorded.
        """
        if self._last is None:
            raise RuntimeError("nothing was recorded: watch() comes before recording()")
        drawn, clusters, at = self._last.drawn, self._last.clusters, self._at
        every = drawn.steps > 0
        real, gpus = every[at], np.array([one.gpus for one in self._shown[1:]])
        there = np.array([one.there for one in self._shown[1:]])[:, real]
        known = self._world.source.applications
        return JobRecording(
            names=[
                f"{known[kind] if kind != UNKNOWN else 'job'} {number}"
                for number, kind in enumerate(drawn.believed[at, real].tolist())
            ],
            time=clusters.time[at, real],
            requested_gpus=clusters.asked[at, real],
            hour=int(drawn.begins[at] // 3600),
            completion=self._completed[every],
            begins=np.array([one.now for one in self._shown[:-1]]),
            gpus=gpus[:, real],
            waiting=there & (gpus[:, real] == 0),
        )


def record_episodes(world: ClusterWorld, seed: int, player: Player) -> JobRecording:
    """Play all episodes of a fresh world at level L1 (only seeds differ), and record their jobs.

    Raises:
        TooLittleData: the world's domain model has no jobs to draw from.
    """
    recorder = Recorder(world)
    play(world, Level.SEEDS, seed, player, recorder.watch)
    return recorder.recording()


Json = dict[str, Any]
GPUS = 8
MOST_CLASSES = 6


class GivenBack(NamedTuple):
    """Jobs of one class under convergence, which takes GPUs from jobs that gain little.

    Attributes:
        kept_share: mean share of its GPUs that a job keeps in each of STEPS equal parts of its time, 0…1, [STEPS].
        freed: share of node-hours that are freed, 0…1.
        lost: mean loss of the final value, as a share of it; 0: none.
    """

    kept_share: Floats
    freed: float
    lost: float


def convergence(layout: Layout, model: ClusterModel) -> list[Json]:
    """Chart the GPUs that are freed by taking them from jobs that gain little, and the loss, as a list of one; []
    without convergence (that option) or learning curves."""
    wanted, curves = layout.spec.convergence, model.curves
    if wanted is None or not len(curves.family):
        return []
    tolerance = Tolerance(wanted.tolerance, wanted.doubt, 1.0)
    series = []
    for own in range(min(len(curves.family), MOST_CLASSES)):
        result = given_back(curves, own, tolerance)
        name = f"{model.applications[int(curves.application[own])]}: {result.freed:.0%} for {result.lost:.1%}"
        x, y = np.linspace(0, 1, STEPS + 1), np.append(result.kept_share, result.kept_share[-1])
        series.append({"name": name, "x": x.round(5).tolist(), "y": y.round(5).tolist()})
    return [
        {
            "heading": "Convergence",
            "caption": f"GPUs that jobs keep, by how much of their time is over: {DRAWN} jobs of each application "
            "that learn as others have, one window in each of 40 parts; beside the names node-hours freed, and what "
            "is lost of the final value for that",
            "form": "steps",
            "x": {"title": "part of a job's time", "share": True, "domain": [0, 1]},
            "y": {"title": "GPUs kept", "share": True, "domain": [0, 1]},
            "panels": [{"name": "", "series": series}],
        }
    ]


def given_back(curves: LearningCurves, own: int, tolerance: Tolerance) -> GivenBack:
    """Simulate jobs of the class of index ``own`` under convergence, which takes GPUs from jobs that gain little: GPUs
    kept and freed, loss of the final value. Each job runs as long as its steps would take on all GPUs."""
    played, jobs = draw_curves(curves, own), np.arange(DRAWN)
    gpus, done, parts = np.full(DRAWN, GPUS), np.zeros(DRAWN), []
    state, table = none(DRAWN), foreseen(curves, own, played)
    for now in range(STEPS):
        done += gpus / GPUS
        parts.append(gpus.mean() / GPUS)
        left = seen_at(table, jobs, done / STEPS)
        state = update_convergence(state, Progress(*left, gpus, np.ones(DRAWN, np.int64)), now + 1.0, tolerance)
        gpus = np.minimum(state.ceiling, GPUS)
    best = np.maximum.accumulate(played.value, axis=1)
    reached = best[jobs, np.clip(np.floor(done + 1e-9).astype(np.int64), 1, STEPS) - 1]
    lost = (best[:, -1] - reached) / np.maximum(np.abs(best[:, -1]), 1e-12)
    return GivenBack(np.array(parts), 1 - float(np.mean(parts)), float(lost.mean()))


# Charts of policies with the same jobs on the same cluster (``workers.evaluation.report``).
#
# Completion times are of all episodes, courses over time of the episode with the most jobs.


MOST_LINES, MOST_NAMED = 6, 5
"""Most policies in a chart, and most jobs with a colour of their own."""
BINS, DRAWS = 12, 400
SHARES = np.linspace(0, 1, 51)
OTHERS, FREE = "other jobs", "free"
TITLE = "Jobs, one by one"
TOLD = (
    "All jobs of {episodes} episodes in which seeds alone differ, under each of these policies; over time, the episode "
    "with the most jobs, under {compared}."
)


def pictures(
    layout: Layout, model: ClusterModel, played: Mapping[str, JobRecording], compared: Sequence[str], episodes: int
) -> Json:
    """Make all charts of an evaluation, as JSON values.

    Args:
        layout: the workload's layout.
        model: its domain model.
        played: recordings by policy's name, in display order, at least one; all with the same jobs.
        compared: names of the policies that are charted over time.
        episodes: number of episodes played.

    Raises:
        TooLittleData: the model has no jobs to draw from.
    """
    shown = dict(list(played.items())[:MOST_LINES])
    beside = {name: played[name] for name in compared}
    plots = [allocation(layout, beside), queue(layout, beside), arrivals(layout, model, next(iter(played.values())))]
    plots += [completion(shown), *convergence(layout, model)]
    text = TOLD.format(episodes=episodes, compared=" and ".join(compared))
    return {"title": TITLE, "told": text, "plots": plots}


def allocation(layout: Layout, played: Mapping[str, JobRecording]) -> Json:
    """Chart each job's GPUs over time, stacked; a job has the same colour under every policy."""
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
        "panels": [{"name": name, "series": _stacked_lines(one, chosen, total)} for name, one in played.items()],
    }


def _stacked_lines(one: JobRecording, chosen: Sequence[int], total: int) -> list[Json]:
    names = one.names
    rest = np.delete(one.gpus, chosen, axis=1).sum(axis=1)
    each = [(names[job], one.gpus[:, job]) for job in chosen]
    parts = [*each, (OTHERS, rest), (FREE, total - one.gpus.sum(axis=1))]
    return [_line(one, name, values) for name, values in parts]


def queue(layout: Layout, played: Mapping[str, JobRecording]) -> Json:
    """Chart the number of waiting jobs over time, one line per policy."""
    series = [_line(one, name, one.waiting.sum(axis=1)) for name, one in played.items()]
    return {
        "heading": "Queue",
        "caption": "Jobs that are there and have no GPU, over time",
        "form": "steps",
        "x": _hours(layout),
        "y": {"title": "pending jobs", "zero": True},
        "panels": [{"name": "", "series": series}],
    }


def arrivals(layout: Layout, model: ClusterModel, one: JobRecording) -> Json:
    """Chart the GPUs requested over the episode, with the domain model's mean and 90 % band.

    Raises:
        TooLittleData: the model has no jobs to draw from.
    """
    seconds = layout.spec.interval_seconds * layout.spec.episode_intervals
    edges = np.linspace(0, seconds, BINS + 1)
    random, total = np.random.default_rng(0), int(layout.capacity.sum())
    drawn = [draw(model.arrivals, one.hour, seconds, 1.0, total, random) for _ in range(DRAWS)]
    every = np.array([_requests_histogram(each.time, each.requested_gpus, edges) for each in drawn])
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
                    _series("came", hours, _last_twice(_requests_histogram(one.time, one.requested_gpus, edges))),
                ],
            }
        ],
    }


def _requests_histogram(time: Floats, request: NDArray[np.int64], edges: Floats) -> Floats:
    return np.asarray(np.histogram(time, edges, weights=request)[0], np.float64)


def completion(played: Mapping[str, JobRecording]) -> Json:
    """Chart the share of jobs that are finished within a number of hours, one line per policy."""
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


def _line(one: JobRecording, name: str, values: NDArray[Any]) -> Json:
    """Make a step line of ``values`` [T] over hours, with the last step extended to its end."""
    wide = one.begins[1] - one.begins[0] if len(one.begins) > 1 else 1.0
    return _series(name, np.append(one.begins, one.begins[-1:] + wide) / 3600, _last_twice(values))


def _last_twice(values: NDArray[Any]) -> NDArray[Any]:
    return np.append(values, values[-1:])


def _series(name: str, x: NDArray[Any], y: NDArray[Any]) -> Json:
    return {"name": name, "x": _values(x), "y": _values(y)}


def _values(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 5) for value in values]


PROBLEM_BINS = 10
LEFT = ENTRIES.index("left")
DESCRIPTIONS = {
    Level.TRAIN: "As L1, under seeds that no test uses.",
    Level.FIXED: "One episode: the same jobs at the same times for everybody and every time.",
    Level.SEEDS: "What a seed decides: the hour of the day, which jobs come and how long they last, how far steps are "
    "slower than is believed.",
    Level.PARAMETERS: "How many jobs come, and how far steps stray from what is believed, changes too.",
    Level.COMPOSITION: "Jobs come and last as in a domain model of executions that were held out.",
    Level.ENVIRONMENT: "More jobs; steps slow down, GPUs are lost, and work is lost on top.",
}


class ClusterProblem(SimulatedProblem):
    """The evaluation's problem of a cluster workload: each decision sets the weight of one job."""

    @cached_property
    def heat_map_axes(self) -> HeatMapAxes:
        """Axes of the heat map: hours left of a job, and its GPUs; the colour is the change of its weight (log2)."""
        spec, gpus = self.layout.spec, int(self.layout.capacity.sum())
        hours = np.linspace(0.0, spec.episode_intervals * spec.interval_seconds / 3600, PROBLEM_BINS + 1).round(3)
        edges = np.unique(np.append(0.0, np.linspace(1, gpus + 1, PROBLEM_BINS).round()))
        left = Axis("hours that are left of the job, on an equal share of GPUs", tuple(hours.tolist()))
        title = "change of the job's weight, in doublings (above 0: GPUs sooner; below: later)"
        return HeatMapAxes(left, Axis("GPUs that it has", tuple(edges.tolist())), title)

    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """Return (the job's hours left, its GPUs, log2 of the factor that ``action`` gives its weight) of each
        decision, [B] each; the last is NaN where there is no job."""
        state, rows = situation.state, np.arange(len(action))
        mask = state.asked != NOBODY
        gpus = np.where(mask, state.clusters.gpus[rows, state.asked], 0).astype(np.float64)
        hours = (
            np.asarray(
                self.layout.spec.interval_seconds
                * np.expm1(4.0 * (situation.view.observation[:, LEFT].astype(np.float64) + 1.0))
            )
            / 3600
        )
        return hours, gpus, np.where(mask, np.log2(FACTORS[action]), np.nan)

    @override
    def action_name(self, action: int) -> str:
        return f"the job's weight × {FACTORS[action]:.3g}"

    @override
    def description(self, level: Level) -> str:
        return DESCRIPTIONS[level]
