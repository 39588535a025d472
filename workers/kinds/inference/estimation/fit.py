"""The fit of a domain model of kind ``inference``: service times, arrivals, forecasts, and their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.columns import MICRO
from app.kinds.contract.engine import Chain
from app.kinds.inference.drift import ARRIVALS_OF, SECONDS_OF
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import LASTING, ServiceModel
from app.kinds.inference.model import Floats as ModelFloats
from app.kinds.inference.samples import BATCH, CORES, SERVER, VARIANT, Content, Requests
from app.kinds.inference.samples import SECONDS as CONTENT_SECONDS
from workers.estimators.base import LEVEL, Floats, Prediction, TooLittleData
from workers.estimators.forecasting.back_test import SECONDS, count_by_class, forecasters
from workers.inputs import Drifts, Workload
from workers.kinds.contract import FittedModel
from workers.kinds.inference.estimation.arrivals import (
    Arrivals,
    Series,
    back_test,
    dispersion,
    fit_arrivals,
    parts,
    series,
    span,
)
from workers.kinds.inference.estimation.arrivals import count_requests as counts_counted
from workers.kinds.inference.estimation.service import LAWS, Rows, ServiceTime, cells, thin_rows


def forecasts(
    layout: Layout, contents: Sequence[Content], levels: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """Fit forecasters of each user's requests to the longest part of a log; return their bytes, and a report by user.

    Args:
        layout: the workload's layout.
        contents: the samples of all executions, at least one.
        levels: factor by which drift has changed each of U users' requests since the log, [U].
        seed: seed of networks and trees.
    """
    log = max(_logs(contents), key=span)
    series = count_by_class(log.time / MICRO, log.user, layout.users)
    shifted = [one._replace(counts=level * one.counts) for one, level in zip(series.values(), levels, strict=False)]
    return forecasters(dict(zip(series, shifted, strict=True)), seed)


def longest(contents: Sequence[Content]) -> float:
    """Return the length in seconds of the log to which forecasts are fitted."""
    return max(map(span, _logs(contents)))


def _logs(contents: Sequence[Content]) -> list[Requests]:
    """Split all executions' logs of requests at silences of a week; an empty log is one part."""
    return [part for content in contents for part in (parts(content.requests, SECONDS) or [content.requests])]


# Errors of service times on held-out batch sizes, server classes and cores.


MOST_FOLDS = 8
WIDEST = 3.0
KINDS = ("batch", "server", "cores")


class HeldOut(NamedTuple):
    """Errors of service times on held-out rows.

    Attributes:
        factor: factor by which half intervals must be multiplied to hold 90 % of the rows, in 1…3; 1 if none is held
            out.
        report: JSON-like values: relative errors (``mape``, ``naive_mape``), ``coverage`` in 0…1; None if unknown.
    """

    factor: float
    report: dict[str, Any]


class _Fold(NamedTuple):
    """n rows held out together: relative error, relative error of the variant's mean, and distance from the median in
    half widths of the interval, [n] each. ``kind`` names the property that the rows have in common (``KINDS``)."""

    kind: str
    error: Floats
    naive: Floats
    distance: Floats


def held_out(rows: Rows, variants: int, servers: int, seed: int) -> HeldOut:
    """Predict held-out rows, one batch size, server class or number of cores at a time, at most ``MOST_FOLDS`` of each.

    Args:
        rows: measured batches.
        variants, servers: numbers of variants and of server classes.
        seed: seed of folds and fits.
    """
    tests: dict[bytes, tuple[str, NDArray[np.bool_]]] = {}  # folds of classes that differ only in cores are used once
    for kind in KINDS:
        for test in _tests(getattr(rows, kind), np.random.default_rng([seed, KINDS.index(kind)])):
            if set(rows.variant[test]) <= set(rows.variant[~test]):
                tests.setdefault(test.tobytes(), (kind, test))
    folds = [_judge_fold(kind, rows, test, variants, servers, seed) for kind, test in tests.values()]
    if not folds:
        return HeldOut(1.0, {"mape": None, "naive_mape": None, "coverage": None, "held_out": 0, "left_out": {}})
    distances = [fold.distance for fold in folds]
    # each fold's coverage is measured with the factor from the other folds
    within = [
        distance <= _factor(distances[:i] + distances[i + 1 :] or distances) for i, distance in enumerate(distances)
    ]
    errors = {kind: _error_report([fold for fold in folds if fold.kind == kind]) for kind in KINDS}
    report = {
        **_error_report(folds),
        "coverage": float(np.concatenate(within).mean()),
        "held_out": sum(map(len, distances)),
        "left_out": {kind: values for kind, values in errors.items() if values["mape"] is not None},
    }
    return HeldOut(_factor(distances), report)


def _factor(distances: list[Floats]) -> float:
    return float(np.clip(np.quantile(np.concatenate(distances), LEVEL), 1.0, WIDEST))


def _tests(values: NDArray[Any], rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Return one mask [n] per fold, of the rows with one of the distinct ``values`` [n]; none if all are equal."""
    each = np.unique(values)
    if len(each) < 2:
        return []
    chosen = each if len(each) <= MOST_FOLDS else np.sort(rng.choice(each, MOST_FOLDS, replace=False))
    return [values == value for value in chosen]


def _judge_fold(kind: str, rows: Rows, test: NDArray[np.bool_], variants: int, servers: int, seed: int) -> _Fold:
    known, tests = rows.take(np.flatnonzero(~test)), rows.take(np.flatnonzero(test))
    alike = cells(tests)
    there = ServiceTime(variants, servers, seed).fit(known).predict(alike.points)
    prediction = Prediction(*(part[alike.of_row] for part in there))
    level = np.bincount(known.variant, np.log(known.seconds), variants) / np.maximum(
        np.bincount(known.variant, minlength=variants), 1
    )
    distance = np.abs(np.log(tests.seconds / prediction.mean)) / np.log(prediction.high / prediction.mean)
    naive = np.exp(level[tests.variant])
    return _Fold(kind, np.abs(prediction.mean / tests.seconds - 1), np.abs(naive / tests.seconds - 1), distance)


def _error_report(folds: list[_Fold]) -> dict[str, float | None]:
    if not folds:
        return {"mape": None, "naive_mape": None}
    return {
        "mape": float(np.concatenate([fold.error for fold in folds]).mean()),
        "naive_mape": float(np.concatenate([fold.naive for fold in folds]).mean()),
    }


FEWEST_BATCHES, FEWEST_REQUESTS = 2, 50


def fit(workload: Workload, seed: int) -> FittedModel:
    """Fit service times, each user's arrivals and forecasts of requests to all samples.

    Raises:
        TooLittleData: a variant was measured less than twice, or there are fewer than 50 requests.
    """
    layout = Layout(workload.spec)
    contents: Sequence[Content] = [content for _, content in workload.samples]
    since = [became(layout, workload.drifts, name) for name, _ in workload.samples]
    rows = thin_rows(measured_rows(contents, [one.seconds for one in since]), np.random.default_rng([seed, 2]))
    _check(layout, rows, contents)
    older, levels = _alike(workload, since)
    counts = counts_counted([content.requests for content in older], len(layout.users), workload.spec.control_seconds)
    logs = [series(counts, user) for user in range(len(layout.users))]
    fine = _fine(older, layout)
    arrivals = [
        scale_arrivals(fit_arrivals(own, finer), level) for own, finer, level in zip(logs, fine, levels, strict=True)
    ]
    service = ServiceTime(len(layout.variants), len(layout.servers), seed).fit(rows)
    tested = held_out(rows, len(layout.variants), len(layout.servers), seed)
    result, reported = forecasts(layout, older, levels, seed)
    model = replace(tabulate_service(layout, service, rows, tested.factor, arrivals), forecasts=result)
    report = {**_report(layout, service, tested, logs, arrivals), "forecasts": reported, "log_seconds": longest(older)}
    return FittedModel(model.to_bytes(), {**report, "executions": len(contents), "observations": len(rows.seconds)})


def _fine(contents: Sequence[Content], layout: Layout) -> list[list[Series]]:
    """Return each user's requests per second in tenths of a control interval (``LASTING[0]``), in layout order."""
    seconds = layout.spec.control_seconds * float(LASTING[0])
    counts = counts_counted([content.requests for content in contents], len(layout.users), seconds)
    return [series(counts, user) for user in range(len(layout.users))]


def measured_rows(contents: Sequence[Content], slower: Sequence[ModelFloats] = ()) -> Rows:
    """Concatenate the measured batches of all executions, their seconds multiplied by ``slower``: for each execution a
    factor of each of V variants, [V]; empty: 1."""
    table = np.concatenate([np.zeros((0, 5)), *(content.batches for content in contents)])
    variant, server = (table[:, column].astype(np.intp) for column in (VARIANT, SERVER))
    rows = Rows(variant, server, table[:, BATCH], table[:, CORES], table[:, CONTENT_SECONDS])
    if not slower:
        return rows
    which = np.repeat(np.arange(len(contents)), [len(content.batches) for content in contents])
    return rows._replace(seconds=rows.seconds * np.stack(slower)[which, variant])


class Became(NamedTuple):
    """Factors of drift since an execution: of batch seconds by variant, [V], and of requests by user, [U]."""

    seconds: ModelFloats
    requests: ModelFloats


def became(layout: Layout, drifts: Drifts, execution: str) -> Became:
    """Compute the factors by which batch seconds and requests have drifted since ``execution`` (name) was measured."""
    now, then = (_together(layout, chain) for chain in (drifts.now, drifts.then.get(execution, ())))
    return Became(now.seconds / then.seconds, now.requests / then.requests)


def _together(layout: Layout, chain: Chain) -> Became:
    """Multiply the factors of successive drifts.

    A variant without a drift of its own gets the geometric mean of the others', as it runs on the same servers.
    """
    seconds, requests = np.ones(len(layout.variants)), np.ones(len(layout.users))
    for factors in chain:
        known = np.array([factors.get(f"{SECONDS_OF}{name}", np.nan) for name in layout.variants])
        noticed = ~np.isnan(known)
        others = np.exp(np.log(known[noticed]).mean()) if noticed.any() else 1.0
        seconds *= np.where(noticed, known, others)
        requests *= [factors.get(f"{ARRIVALS_OF}{name}", 1.0) for name in layout.users]
    return Became(seconds, requests)


def _alike(workload: Workload, since: Sequence[Became]) -> tuple[list[Content], ModelFloats]:
    """Return the executions of equal drift of requests whose logs are longest together, and that drift's factors [U].

    Runs' logs have no time of day; so after a drift older logs are used until newer ones are longer.
    """
    contents: dict[tuple[float, ...], list[Content]] = {}
    for (_, content), became in zip(workload.samples, since, strict=True):
        contents.setdefault(tuple(became.requests.round(9)), []).append(content)
    seconds = workload.spec.control_seconds
    lengths = {
        factors: sum(span(part) for one in alike for part in parts(one.requests, seconds))
        for factors, alike in contents.items()
    }
    factors = max(lengths, key=lambda factors: lengths[factors])
    return contents[factors], np.array(factors)


def scale_arrivals(fitted: Arrivals, factor: float) -> Arrivals:
    """Return ``fitted`` with its requests per second multiplied by ``factor``."""
    return fitted._replace(rate=fitted.rate * factor)


def tabulate_service(
    layout: Layout, service: ServiceTime, rows: Rows, factor: float, arrivals: Sequence[Arrivals]
) -> ServiceModel:
    """Tabulate the domain model over classes, variants and batch sizes; seconds never fall with the batch size.

    Args:
        layout: the workload's layout.
        service: fitted service times.
        rows: measured batches.
        factor: factor by which spreads are widened, from held-out rows.
        arrivals: fitted arrivals of each user.
    """
    _, variants, batches = layout.shape
    shape = (len(layout.servers), variants, batches)
    server, variant, batch = (part.ravel() for part in np.indices(shape))
    cores = np.array([one.cores for one in layout.spec.servers], np.float64)
    points = Rows(variant, server, layout.batches[batch].astype(np.float64), cores[server], np.ones(len(server)))
    logs = service.logs(points).reshape(-1, *shape)
    logs = np.maximum.accumulate(logs.mean(axis=0) + factor * (logs - logs.mean(axis=0)), axis=-1)
    wider = service.wider(points).reshape(shape).mean(axis=(0, 2))
    observed = np.zeros(shape[:2], np.bool_)
    observed[rows.server, rows.variant] = True
    parts = max(len(one.rate) for one in arrivals)
    return ServiceModel(
        log_seconds=logs,
        spread=factor * service.noise_sd_ * wider,
        rate=np.stack([np.broadcast_to(one.rate, parts) if len(one.rate) == 1 else one.rate for one in arrivals]),
        variation=np.array([one.variation for one in arrivals]),
        measured=observed,
        forecast=np.stack([one.numbers for one in arrivals]),
        parts=np.stack([one.parts for one in arrivals]),
    )


def _check(layout: Layout, rows: Rows, contents: Sequence[Content]) -> None:
    each = np.bincount(rows.variant, minlength=len(layout.variants))
    requests = sum(len(content.requests.time) for content in contents)
    if each.min() >= FEWEST_BATCHES and requests >= FEWEST_REQUESTS:
        return
    has = ", ".join(f"{count} of {name}" for name, count in zip(layout.variants, each.tolist(), strict=True))
    needs = f"{FEWEST_BATCHES} measured batches of each variant and a log of {FEWEST_REQUESTS} requests"
    raise TooLittleData(needs, f"{has}, and {requests:,} requests")


def _report(
    layout: Layout,
    service: ServiceTime,
    tested: HeldOut,
    logs: Sequence[Sequence[Series]],
    arrivals: Sequence[Arrivals],
) -> dict[str, Any]:
    names = [*LAWS]
    best = int(np.argmax(service.weights_))
    candidates = [
        {"family": name, "weight": float(weight), "chosen": i == best}
        for i, (name, weight) in enumerate(zip(names, service.weights_, strict=True))
    ]
    of_users = zip(layout.users, logs, arrivals, strict=True)
    return {
        "family": names[best],
        "candidates": candidates,
        "metrics": {"seconds": tested.report},
        "spread": dict(zip(layout.variants, service.noise_sd_.tolist(), strict=True)),
        "arrivals": {name: _fit_told(own, fitted) for name, own, fitted in of_users},
        "unexplained": [],
    }


def _fit_told(logs: Sequence[Series], fitted: Arrivals) -> dict[str, Any]:
    """Report on one user's arrivals as JSON-like values; forecasts are back-tested on the end of the longest log."""
    longest = max(logs, key=lambda one: len(one.rate))
    return {
        "per_second": float(np.concatenate([one.rate for one in logs]).mean()),
        "parts_of_day": len(fitted.rate),
        "variation": fitted.variation,
        "variation_by_control_intervals": dict(zip(map(str, LASTING.tolist()), fitted.parts.tolist(), strict=True)),
        "index_of_dispersion": dispersion(logs, fitted.rate),
        "next": back_test(longest),
    }
