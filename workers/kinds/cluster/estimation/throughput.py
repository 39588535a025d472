"""Fit seconds of a step to what was measured of an application, as a belief: families that it can't tell apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.throughput import LAYOUTS, NORMAL_90, Throughput, layout_nodes
from workers.estimators.base import Estimator, Inputs, TooLittleData
from workers.estimators.registry import FAMILIES
from workers.estimators.replicates import distinct
from workers.estimators.selection import Selection, select

MEMBERS = 6
SIZES, LOCAL_POINTS = 24, 9
FEWEST = 3
MOST_PLACES = 160
"""Places (GPUs, nodes, samples of a GPU) from which an application is learned; more are drawn from at random."""
LIKELY = 1.25
"""How much larger than the best family's a family's error may be for it to be a member."""
BEYOND = 3.0
"""By how much steps may be shorter or longer than any that was measured, with as many samples of a GPU."""
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
"""Families, and places (GPUs, nodes, samples of a GPU) from which on each is tried: fewer than of other inputs."""


class Measured(NamedTuple):
    """Steps of one application on GPUs of speed 1, [n] each."""

    gpus: Floats
    nodes: Floats
    local: Floats
    seconds: Floats

    @property
    def inputs(self) -> Floats:
        """As ``INPUTS``, [n, 3]."""
        return np.column_stack([self.gpus, self.nodes, self.local])

    def take(self, rows: Integers) -> Measured:
        """Some of them."""
        return Measured._make(column[rows] for column in self)


class Fitted(NamedTuple):
    """What an application's steps come to.

    Attributes:
        members: families fitted to all places, or to as many drawn with replacement.
        bounds: of the log of a step about its median, 90 %.
        report: plain values.
    """

    members: list[Estimator]
    bounds: tuple[float, float]
    report: dict[str, Any]


def fit_steps(measured: Measured, seed: int) -> Fitted:
    """Families that predict places left out about equally well, each place being GPUs on nodes.

    Raises:
        TooLittleData: fewer than ``FEWEST`` places.
    """
    rng = np.random.default_rng([seed, 7])
    first, place = distinct(measured.gpus, measured.nodes)
    if len(first) < 2 or len(measured.seconds) < FEWEST:
        has = f"{len(measured.seconds)} on {len(first)}"
        raise TooLittleData(
            f"{FEWEST} measured steps on 2 allocations of each application that is measured at all", has
        )
    known = measured.take(_thinned(measured, rng))
    _, place = distinct(known.gpus, known.nodes)
    families = {name: FAMILIES[name]._replace(needs=_constant(least)) for name, least in TRIED.items()}
    with threadpool_limits(1):
        chosen = select(INPUTS, known.inputs, known.seconds, place, seed=seed, families=families)
        members = _members(chosen, known, place, rng)
    return Fitted(members, (chosen.offsets.low, chosen.offsets.high), _report(chosen, measured))


def _constant(least: int) -> Callable[[Inputs], int]:
    return lambda _: least


def _thinned(measured: Measured, rng: np.random.Generator) -> Integers:
    """Rows of at most ``MOST_PLACES`` places, GPUs alone and the extremes of samples among them."""
    first, cell = distinct(measured.gpus, measured.nodes, measured.local)
    if len(first) <= MOST_PLACES:
        return np.arange(len(cell))
    kept = np.zeros(len(first), np.bool_)
    kept[rng.permutation(len(first))[:MOST_PLACES]] = True
    return np.flatnonzero(kept[cell])


def _members(chosen: Selection, known: Measured, place: Integers, rng: np.random.Generator) -> list[Estimator]:
    """The chosen family and those about as good, each fitted to all places first, then to places drawn again."""
    able = [one for one in chosen.candidates if one.held_out is not None and one.family in TRIED]
    likely = [one.family for one in able if one.log_error <= LIKELY * chosen.chosen.log_error]
    order = sorted(likely, key=lambda name: name != chosen.family)
    fitted: dict[str, Estimator] = {}
    members = list[Estimator]()
    while len(members) < MEMBERS:
        name = order[len(members) % len(order)]
        rows = np.arange(len(place)) if name not in fitted else _redrawn(place, rng)
        made = fitted[name].frozen() if name in fitted else FAMILIES[name].make(INPUTS)
        part = known.take(rows)
        members.append(made.fit(part.inputs, part.seconds, place[rows]))
        fitted.setdefault(name, members[-1])
    return members


def _redrawn(place: Integers, rng: np.random.Generator) -> Integers:
    """Rows of as many places as there are, drawn with replacement."""
    drawn = np.unique(rng.integers(0, int(place.max()) + 1, int(place.max()) + 1))
    return np.flatnonzero(np.isin(place, drawn))


def _report(chosen: Selection, measured: Measured) -> dict[str, Any]:
    return {
        "family": chosen.family,
        "candidates": [one.report(chosen.family) for one in chosen.candidates],
        "mape": chosen.nested.mape,
        "naive_mape": chosen.naive_mape,
        "coverage": chosen.offsets.coverage,
        "level": chosen.offsets.level,
        "places": len(distinct(measured.gpus, measured.nodes)[0]),
        "observations": len(measured.seconds),
    }


def tabulated(fitted: list[Fitted], measured: list[Measured], nodes: Integers) -> Throughput:
    """Tables of all applications; ``nodes``: GPUs of a node, and how many there are."""
    most = max(int(nodes.prod()), *(int(one.gpus.max()) for one in measured), 2)
    gpus = sizes(most)
    local = np.stack([_local(one.local) for one in measured])
    each = zip(fitted, local, measured, strict=True)
    logs = np.stack([_bounded(_table(one, gpus, own, nodes), steps) for one, own, steps in each], axis=1)
    return Throughput(
        log_seconds=logs,
        gpus=gpus,
        local=local,
        bounds=np.array([one.bounds for one in fitted]),
        node=nodes,
        largest=np.array([int(one.gpus.max()) for one in measured]),
    )


def sizes(most: int) -> Integers:
    """Numbers of GPUs from 1 to ``most``: each of the first eight, then in about equal ratios, [G]."""
    found = np.unique(np.rint(np.geomspace(1, most, SIZES)).astype(np.int64))
    return np.unique(np.concatenate([found, np.arange(1, min(most, 8) + 1)]))


def _local(values: Floats) -> Floats:
    """Samples of a GPU from the fewest to the most that were measured, in equal ratios, [K]."""
    low, high = float(values.min()), float(values.max())
    return np.geomspace(low, max(high, 1.001 * low), LOCAL_POINTS)


def _table(fitted: Fitted, gpus: Integers, local: Floats, node: Integers) -> Floats:
    """[M, 3, G, K]."""
    nodes = layout_nodes(gpus, node).astype(np.float64)
    places = np.stack(np.broadcast_arrays(gpus[None, :, None], nodes[:, :, None], local), axis=-1)
    points = places.reshape(-1, 3).astype(np.float64)
    logs = [np.log(member.median(points)) for member in fitted.members]
    return np.stack(logs).reshape(len(logs), LAYOUTS, len(gpus), len(local))


def _bounded(logs: Floats, measured: Measured) -> Floats:
    """Families that follow lines may come to nothing where there are fewer GPUs than were measured."""
    low, high = np.log(measured.seconds.min() / BEYOND), np.log(measured.seconds.max() * BEYOND)
    return np.clip(logs, low, high)


def within(measured: Measured, fitted: Fitted) -> tuple[Floats, Floats]:
    """Predicted seconds, and whether what was measured is within the 90 % interval, [n] each; for what was held out."""
    logs = np.stack([np.log(member.median(measured.inputs)) for member in fitted.members])
    centre, apart = logs.mean(axis=0), NORMAL_90 * logs.std(axis=0)
    miss = np.log(measured.seconds) - centre
    low, high = fitted.bounds
    return np.exp(centre), (miss >= -np.hypot(low, apart)) & (miss <= np.hypot(high, apart))
