"""Estimation for kind ``cluster``: seconds per step, interference between jobs, arrivals and their forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from app.kinds.cluster.arrivals import GPUS_IN_USE, HOUR_SECONDS, HOURS, Arrivals, none
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.samples import ASKED, BY_APPLICATION, DATA, DURATION, QUEUE, SAMPLES, TIME, WAIT, WIDTHS
from app.kinds.cluster.throughput import LAYOUTS, NORMAL_90, Interference, Throughput, layout_nodes, no_interference
from app.kinds.forecasting.series import Series
from workers.estimators.base import LEVEL, Estimator, Inputs, TooLittleData, distinct
from workers.estimators.forecasting.back_test import FEWEST as FEWEST_INTERVALS
from workers.estimators.forecasting.back_test import MOST_INTERVALS, SECONDS, count_by_class, forecasters
from workers.estimators.registry import FAMILIES
from workers.estimators.selection import Selection, select

MEMBERS = 6
SIZES, LOCAL_POINTS = 24, 9
FEWEST = 3
MOST_PLACES = 160
"""Most places (combinations of GPUs, nodes, samples per GPU) used per application; of more a random subset is taken."""
LIKELY = 1.25
"""Largest ratio of a family's error to the best family's at which it may still be a member."""
BEYOND = 3.0
"""Factor by which predicted seconds per step may leave the measured range, below and above."""
INPUTS = Inputs(("gpus", "nodes"), ("local_batch",))
TRIED = {
    "mean": 1,
    "ernest": 4,
    "serial_ernest": 5,
    "log_linear": 6,
    "throughput": 8,
    "ernest_gaussian_process": 9,
    "throughput_gaussian_process": 10,
}
"""Families, and the least number of places from which each is tried: fewer than with other inputs."""


class StepMeasurements(NamedTuple):
    """n steps of one application on GPUs of speed 1: GPUs, nodes, samples per GPU, seconds per step, [n] each."""

    gpus: Floats
    nodes: Floats
    local: Floats
    seconds: Floats

    @property
    def inputs(self) -> Floats:
        """Columns of ``INPUTS``: GPUs, nodes, samples per GPU, [n, 3]."""
        return np.column_stack([self.gpus, self.nodes, self.local])

    def take(self, rows: Integers) -> StepMeasurements:
        """Return the k steps with the indices ``rows`` [k]."""
        return StepMeasurements._make(column[rows] for column in self)


class StepFit(NamedTuple):
    """The fit of one application's seconds per step.

    Attributes:
        members: estimators fitted to all places (numbers of GPUs on nodes) or bootstrap samples of them.
        bounds: 90 % interval of the natural log of measured over median seconds.
        report: JSON-like values on families and their errors.
    """

    members: list[Estimator]
    bounds: tuple[float, float]
    report: dict[str, Any]


def fit_steps(measured: StepMeasurements, seed: int) -> StepFit:
    """Fit one application's seconds per step by several families, each judged on held-out places (GPUs on nodes).

    The members are of the family with the least error, and of those whose error is at most ``LIKELY`` times as large.

    Raises:
        TooLittleData: fewer than 3 measured steps, or all on one number of GPUs and nodes.
    """
    rng = np.random.default_rng([seed, 7])
    first, place = distinct(measured.gpus, measured.nodes)
    if len(first) < 2 or len(measured.seconds) < FEWEST:
        has = f"{len(measured.seconds)} on {len(first)}"
        raise TooLittleData(
            f"{FEWEST} measured steps on 2 allocations of each application that is measured at all", has
        )
    known = measured.take(_thin_places(measured, rng))
    _, place = distinct(known.gpus, known.nodes)
    families = {name: FAMILIES[name]._replace(needs=_constant(least)) for name, least in TRIED.items()}
    with threadpool_limits(1):
        chosen = select(INPUTS, known.inputs, known.seconds, place, seed=seed, families=families)
        members = _members(chosen, known, place, rng)
    return StepFit(
        members,
        (chosen.offsets.low, chosen.offsets.high),
        {
            "family": chosen.family,
            "candidates": [one.report(chosen.family) for one in chosen.candidates],
            "mape": chosen.nested.mape,
            "naive_mape": chosen.naive_mape,
            "coverage": chosen.offsets.coverage,
            "level": chosen.offsets.level,
            "places": len(distinct(measured.gpus, measured.nodes)[0]),
            "observations": len(measured.seconds),
        },
    )


def _constant(least: int) -> Callable[[Inputs], int]:
    return lambda _: least


def _thin_places(measured: StepMeasurements, rng: np.random.Generator) -> Integers:
    """Return the indices of the rows, [k], of a random subset of at most ``MOST_PLACES`` places."""
    first, cell = distinct(measured.gpus, measured.nodes, measured.local)
    if len(first) <= MOST_PLACES:
        return np.arange(len(cell))
    mask = np.zeros(len(first), np.bool_)
    mask[rng.permutation(len(first))[:MOST_PLACES]] = True
    return np.flatnonzero(mask[cell])


def _members(chosen: Selection, known: StepMeasurements, place: Integers, rng: np.random.Generator) -> list[Estimator]:
    """Fit the selected family and those about as good to all places (``place`` [n] of each row), then to bootstrap
    samples; return six estimators in all."""
    able = [one for one in chosen.candidates if one.held_out is not None and one.family in TRIED]
    likely = [one.family for one in able if one.log_error <= LIKELY * chosen.chosen.log_error]
    order = sorted(likely, key=lambda name: name != chosen.family)
    fitted: dict[str, Estimator] = {}
    members = list[Estimator]()
    while len(members) < MEMBERS:
        name = order[len(members) % len(order)]
        rows = np.arange(len(place)) if name not in fitted else _resample_places(place, rng)
        frozen = fitted[name].frozen() if name in fitted else FAMILIES[name].make(INPUTS)
        part = known.take(rows)
        members.append(frozen.fit(part.inputs, part.seconds, place[rows]))
        fitted.setdefault(name, members[-1])
    return members


def _resample_places(place: Integers, rng: np.random.Generator) -> Integers:
    """Return the indices of the rows, [k], of a bootstrap sample of places; ``place``: place of each row, [n]."""
    drawn = np.unique(rng.integers(0, int(place.max()) + 1, int(place.max()) + 1))
    return np.flatnonzero(np.isin(place, drawn))


def tabulate_fits(fitted: list[StepFit], measured: list[StepMeasurements], nodes: Integers) -> Throughput:
    """Tabulate the fits of all applications, given their steps; ``nodes``: GPUs per node and number of nodes, [2]."""
    most = max(int(nodes.prod()), *(int(one.gpus.max()) for one in measured), 2)
    gpus = sizes(most)
    local = np.stack([_local(one.local) for one in measured])
    each = zip(fitted, local, measured, strict=True)
    logs = np.stack([_clip_to_measured(_table(one, gpus, own, nodes), steps) for one, own, steps in each], axis=1)
    return Throughput(
        log_seconds=logs,
        gpus=gpus,
        local=local,
        bounds=np.array([one.bounds for one in fitted]),
        node=nodes,
        largest=np.array([int(one.gpus.max()) for one in measured]),
    )


def sizes(most: int) -> Integers:
    """List G numbers of GPUs from 1 to ``most``: all up to 8, then in about equal ratios, [G]."""
    sizes = np.unique(np.rint(np.geomspace(1, most, SIZES)).astype(np.int64))
    return np.unique(np.concatenate([sizes, np.arange(1, min(most, 8) + 1)]))


def _local(values: Floats) -> Floats:
    """Return K numbers of samples per GPU in equal ratios over the range of ``values``, [K]."""
    low, high = float(values.min()), float(values.max())
    return np.geomspace(low, max(high, 1.001 * low), LOCAL_POINTS)


def _table(fitted: StepFit, gpus: Integers, local: Floats, node: Integers) -> Floats:
    """Return the natural log of seconds per step, [M, 3, G, K]: M members, 3 layouts on nodes, G numbers of GPUs, K
    numbers of samples per GPU."""
    nodes = layout_nodes(gpus, node).astype(np.float64)
    places = np.stack(np.broadcast_arrays(gpus[None, :, None], nodes[:, :, None], local), axis=-1)
    points = places.reshape(-1, 3).astype(np.float64)
    logs = [np.log(member.median(points)) for member in fitted.members]
    return np.stack(logs).reshape(len(logs), LAYOUTS, len(gpus), len(local))


def _clip_to_measured(logs: Floats, measured: StepMeasurements) -> Floats:
    """Clip natural-log seconds [M, 3, G, K] to 1/3 to 3 times the measured range, as extrapolated lines may reach 0."""
    low, high = np.log(measured.seconds.min() / BEYOND), np.log(measured.seconds.max() * BEYOND)
    return np.clip(logs, low, high)


# Pairwise slow-downs, from steps measured beside other jobs.
#
# log slow-down of a beside b = common part + sensitivity of a + pressure of b + a part of the pair; each part is
# normal, with a variance by maximum marginal likelihood (empirical Bayes). So a pair that was never measured is
# predicted from both applications, and one that was measured often from its own data.


SEARCH_ROWS, MOST_ROWS = 400, 2_000
FOLDS = 5
START = np.log([0.1, 0.1, 0.1, 0.05, 0.1])
"""Natural logs of initial standard deviations: common part, sensitivity, pressure, pairs, noise of a measurement."""
LOWEST, HIGHEST = np.log(1e-3), np.log(3.0)


class SharedSteps(NamedTuple):
    """n steps measured beside other jobs.

    Attributes:
        application: index of the application, [n].
        beside: number of other jobs of each of B applications on the same nodes, [n, B].
        log: natural log of seconds over seconds alone, [n].
    """

    application: Integers
    beside: Floats
    log: Floats

    def take(self, rows: Integers) -> SharedSteps:
        """Return the k steps with the indices ``rows`` [k]."""
        return SharedSteps(self.application[rows], self.beside[rows], self.log[rows])


def fit_pairs(shared: SharedSteps, applications: int, seed: int) -> tuple[Interference, dict[str, Any] | None]:
    """Fit the slow-downs of all pairs of ``applications`` (their number), and report errors on held-out pairs.

    With fewer than 3 rows the interference is unknown, and the report None.
    """
    if len(shared.log) < FEWEST:
        return no_interference(), None
    rng = np.random.default_rng([seed, 13])
    shared = shared.take(np.sort(rng.permutation(len(shared.log))[:MOST_ROWS]))
    return pairs(shared, applications, likeliest(shared, rng)), held_out(shared, rng)


def pairs(shared: SharedSteps, applications: int, spreads: Floats) -> Interference:
    """Compute the posterior of the slow-downs of all pairs of ``applications`` (their number) from measured steps.

    ``spreads``: natural logs of the standard deviations of common part, sensitivity of the job, pressure of its
    neighbours, pairs, and measurement noise, [5].
    """
    one, other = (part.ravel() for part in np.indices((applications, applications)))
    shared_steps = SharedSteps(one, np.eye(applications)[other], np.zeros(len(one)))
    solved = cho_factor(_covariance(shared, shared, spreads) + _noise(shared, spreads), lower=True)
    across = _covariance(shared_steps, shared, spreads)
    log = across @ cho_solve(solved, shared.log)
    own = float((np.exp(spreads[:4]) ** 2).sum())
    variance = own - np.einsum("an,na->a", across, cho_solve(solved, across.T))
    shape = applications, applications
    usual = [float(log.mean()), float(np.sqrt(own))]
    return Interference(log.reshape(shape), np.sqrt(np.maximum(variance, 0.0)).reshape(shape), np.array(usual))


def held_out(shared: SharedSteps, rng: np.random.Generator) -> dict[str, Any]:
    """Cross-validate slow-downs on held-out pairs; also the errors of no slow-down and of the mean slow-down.

    Errors are fractions, ``coverage`` the share within the 90 % interval; None where nothing can be held out.
    """
    _, pair = np.unique(np.column_stack([shared.application, shared.beside]), axis=0, return_inverse=True)
    number = int(pair.max()) + 1
    fold = (rng.permutation(number) % min(FOLDS, number))[pair.ravel()]
    rows = [_judge_forecasts(shared, fold == one, rng) for one in range(int(fold.max()) + 1) if (fold != one).any()]
    if not rows:
        return {"mape": None, "naive_mape": None, "mean_mape": None, "coverage": None}
    error, none, mean, inside = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return {
        "mape": float(error.mean()),
        "naive_mape": float(none.mean()),
        "mean_mape": float(mean.mean()),
        "coverage": float(inside.mean()),
        "level": LEVEL,
        "observations": len(shared.log),
    }


def _judge_forecasts(
    shared: SharedSteps, test: np.ndarray[Any, np.dtype[np.bool_]], rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    known, rows = shared.take(np.flatnonzero(~test)), shared.take(np.flatnonzero(test))
    spreads = likeliest(known, rng)
    mean, sd = foretold(known, rows, spreads)
    true = np.exp(rows.log)
    naive = np.exp(float((known.log / known.beside.sum(axis=1)).mean()) * rows.beside.sum(axis=1))
    inside = np.abs(rows.log - mean) <= NORMAL_90 * sd
    return np.abs(np.exp(mean) / true - 1), np.abs(1 / true - 1), np.abs(naive / true - 1), inside.astype(np.float64)


def foretold(known: SharedSteps, new: SharedSteps, spreads: Floats) -> tuple[Floats, Floats]:
    """Predict the natural log of the slow-downs of n steps ``new`` from ``known`` ones: means, standard deviations, [n]
    each. ``spreads``: natural log deviations of common part, sensitivity, pressure, pairs, noise, [5], see ``pairs``.
    """
    solved = cho_factor(_covariance(known, known, spreads) + _noise(known, spreads), lower=True)
    across = _covariance(new, known, spreads)
    mean = across @ cho_solve(solved, known.log)
    variance = np.diag(_covariance(new, new, spreads)) - np.einsum("an,na->a", across, cho_solve(solved, across.T))
    return mean, np.sqrt(np.maximum(variance, 0.0) + np.exp(2 * spreads[4]))


def likeliest(shared: SharedSteps, rng: np.random.Generator) -> Floats:
    """Estimate natural logs of the standard deviations of the slow-downs' parts: common, the job's sensitivity,
    neighbours' pressure, pairs, and noise, [5], by maximum marginal likelihood on a random subset of rows."""
    few = shared.take(rng.permutation(len(shared.log))[:SEARCH_ROWS])
    parts, size = _parts(few, few), len(few.log)

    def loss(logs: Floats) -> float:
        covariance = np.tensordot(np.exp(2 * logs[:4]), parts, axes=1) + np.exp(2 * logs[4]) * np.eye(size)
        factor, lower = cho_factor(covariance, lower=True)
        solved = cho_solve((factor, lower), few.log)
        return float(few.log @ solved / 2 + np.log(np.diag(factor)).sum())

    bounds = [(LOWEST, HIGHEST)] * len(START)
    return np.asarray(minimize(loss, START, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25}).x, np.float64)


def _parts(one: SharedSteps, other: SharedSteps) -> Floats:
    """Return the covariance of n and m slow-downs by common part, sensitivity, pressure, pairs, at variance 1,
    [4, n, m]."""
    number = np.outer(one.beside.sum(axis=1), other.beside.sum(axis=1))
    same = one.application[:, None] == other.application
    together = one.beside @ other.beside.T
    return np.stack([number, number * same, together, together * same])


def _covariance(one: SharedSteps, other: SharedSteps, spreads: Floats) -> Floats:
    return np.asarray(np.tensordot(np.exp(2 * spreads[:4]), _parts(one, other), axes=1), np.float64)


def _noise(shared: SharedSteps, spreads: Floats) -> Floats:
    return np.asarray(np.exp(2 * spreads[4]) * np.eye(len(shared.log)), np.float64)


# Arrivals of jobs: rates by hour of the day, their variation, and a sample of the jobs.


MOST_JOBS = 4_096
SHRUNK = 4.0
"""Hours at the mean rate that are added to each hour of the day, to shrink its rate towards the mean."""


def fit_arrivals(logs: Sequence[Floats], queues: int, seed: int) -> tuple[Arrivals, dict[str, Any] | None]:
    """Fit jobs per hour by hour of the day and queue, and their variation; also return a report, None without any job.

    Args:
        logs: jobs by time with the columns of samples, [n, 7] each; partial hours count by their length.
        queues: number of queues.
        seed: seed of the draw of at most 4,096 jobs that are kept.
    """
    logs = [log for log in logs if len(log)]
    if not logs:
        return none(queues), None
    counts, part, hours = (np.concatenate(parts) for parts in zip(*(_hourly(log, queues) for log in logs), strict=True))
    mean = counts.sum(axis=0) / part.sum()
    came = np.stack([counts[hours == hour].sum(axis=0) for hour in range(HOURS)])  # [24, Q]
    time = np.bincount(hours, part, HOURS)[:, None]
    rate = (came + SHRUNK * mean) / (time + SHRUNK)
    variation = _variation(counts, part, rate[hours])
    table = np.concatenate(logs)[:, [QUEUE, BY_APPLICATION, ASKED, DATA, DURATION, SAMPLES]]
    drawn = np.sort(np.random.default_rng([seed, 17]).permutation(len(table))[:MOST_JOBS])
    report = {
        "jobs": len(table),
        "hours": float(part.sum()),
        "per_hour": mean.tolist(),
        "variation": variation.tolist(),
        "mean_gpus": float(table[:, 2].mean()),
    }
    return Arrivals(rate.T, variation, table[drawn]), report


def _hourly(log: Floats, queues: int) -> tuple[Floats, Floats, Integers]:
    """Count a log's jobs [n, columns] by hour and queue, [h, Q]; return also covered share and hour of day, [h]."""
    start, end = float(log[0, TIME]), float(log[-1, TIME])
    first = int(start // HOUR_SECONDS)
    number = int(max(end, start + HOUR_SECONDS) // HOUR_SECONDS) - first + 1
    where = (log[:, TIME] // HOUR_SECONDS).astype(np.int64) - first
    counts = np.bincount(where * queues + log[:, QUEUE].astype(np.int64), minlength=number * queues)
    edges = np.clip((first + np.arange(number + 1)) * HOUR_SECONDS, start, max(end, start + HOUR_SECONDS))
    return (
        counts.reshape(number, queues).astype(np.float64),
        np.diff(edges) / HOUR_SECONDS,
        (first + np.arange(number)) % HOURS,
    )


def _variation(counts: Floats, coverage: Floats, rate: Floats) -> Floats:
    """Return each queue's squared coefficient of variation of the hourly rate beyond a Poisson process's, [Q].

    ``counts`` [h, Q]: jobs in each hour; ``coverage`` [h]: covered share of the hour; ``rate`` [h, Q]: expected
    jobs per hour.
    """
    expected = rate * coverage[:, None]
    excess = ((counts - expected) ** 2 - expected).sum(axis=0)
    return np.asarray(np.maximum(excess / np.maximum((expected**2).sum(axis=0), 1e-12), 0.0), np.float64)


def forecasts(logs: Sequence[Floats], queues: Sequence[str], seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """Fit forecasters of each queue's jobs to the longest log, and of GPUs in use to the longest one with durations.

    Return their bytes, and a report: ``log_seconds`` of the longest log, ``forecasts`` by series, and ``gpus_in_use``:
    numbers of jobs, durations and intervals, and what is lacking for a forecast (None: nothing).

    Args:
        logs: jobs by time with the columns of samples, [n, 8] each.
        queues: names of the queues.
        seed: seed of networks and trees.
    """
    log = max(logs, key=_span, default=NO_JOBS)
    series, (in_use, in_use_report) = count_by_class(log[:, TIME], log[:, QUEUE], queues), gpus_in_use(logs)
    if GPUS_IN_USE in queues:
        in_use, in_use_report = None, {**in_use_report, "lacking": f"another name for the queue {GPUS_IN_USE}"}
    result, reports = forecasters(series | ({GPUS_IN_USE: in_use} if in_use else {}), seed)
    return result, {"forecasts": reports, "gpus_in_use": in_use_report, "log_seconds": _span(log)}


def _span(log: Floats) -> float:
    return float(np.ptp(log[:, TIME])) if len(log) else 0.0


# GPUs in use, from the start, duration and GPUs of each job.


NO_JOBS = np.zeros((0, WIDTHS["arrivals"]))
KNOWN = 0.9
"""Least share of a log's jobs whose duration is known, and share of GPU time for which its beginning is left out."""


def gpus_in_use(logs: Sequence[Floats]) -> tuple[Series | None, dict[str, Any]]:
    """Return mean GPUs in use by interval of 600 seconds, from the longest log with durations (None: too little data),
    and a report: numbers of jobs, durations and intervals, and what is lacking for a forecast.

    A job uses its GPUs for ``duration`` from ``wait`` (unknown: 0) seconds after its submission. Jobs that ran before
    the first submission aren't in a log, so its beginning is left out: the seconds from submission to end below which
    90 % of the GPU time lies, at most a quarter of the log. The last interval ends before the last submission.

    Args:
        logs: jobs by time with the columns of samples, [n, 8] each.
    """
    log = max((one for one in logs if len(one)), key=lambda one: (_known(one) >= KNOWN, _span(one)), default=NO_JOBS)
    report: dict[str, Any] = {
        "jobs": len(log),
        "durations": int((~np.isnan(log[:, DURATION])).sum()),
        "intervals": 0,
        "lacking": None,
    }
    if not len(log) or _known(log) < KNOWN:
        return None, {**report, "lacking": f"durations of {KNOWN:.0%} of the jobs of a log"}
    log = log[~np.isnan(log[:, DURATION])]
    gpus, ran, wait = log[:, ASKED], log[:, DURATION], np.nan_to_num(log[:, WAIT])
    span = float(log[-1, TIME] - log[0, TIME])
    long = np.quantile(wait + ran, KNOWN, weights=gpus * ran, method="inverted_cdf") if ran.any() else 0.0
    first, last = math.ceil((log[0, TIME] + min(long, span / 4)) / SECONDS), int(log[-1, TIME] // SECONDS)
    first = max(first, last - MOST_INTERVALS)
    report["intervals"] = max(last - first, 0)
    if last - first < FEWEST_INTERVALS:
        return None, {**report, "lacking": f"{FEWEST_INTERVALS} intervals of {SECONDS:g} seconds"}
    at = log[:, TIME] + wait - first * SECONDS
    moments, change = np.concatenate([at, at + ran]), np.concatenate([gpus, -gpus])
    order = np.argsort(moments, kind="stable")
    level = np.cumsum(change[order])[:-1]
    used = np.append(0.0, np.cumsum(level * np.diff(moments[order])))  # GPU-seconds up to each start or end
    means = np.diff(np.interp(SECONDS * np.arange(last - first + 1), moments[order], used)) / SECONDS
    return Series(np.maximum(means, 0.0), SECONDS * first, SECONDS), report


def _known(log: Floats) -> float:
    """Return the share of a log's jobs, one or more, whose duration is known."""
    return float((~np.isnan(log[:, DURATION])).mean())
