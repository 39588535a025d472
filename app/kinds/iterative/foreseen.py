"""What a table expects of iterations whose features nobody knows: the samples' course of them is averaged over."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.feature_grid import Point, locate, weighted
from app.kinds.iterative.model import ModelTable

Array = NDArray[Any]
LARGEST = 4_000_000  # entries of one array; where it would be larger, iterations that share a bin share a course
PROBES = 3  # allocations, and cells of the other features, at which the spread over courses is computed


def foreseen(table: ModelTable) -> ModelTable:
    """``table`` with the features that vary within executions averaged over; itself where none do.

    Logs are averaged. What the average leaves out, the variance of the logs over executions, is added to the noise: it
    makes an expected sum larger and a band wider, as not knowing should.
    """
    if table.courses is None or table.cells == 1:
        return table
    varying = [bool(np.isfinite(course).all()) for course in np.moveaxis(table.courses, 2, 0)]
    parts = _parts(table, table.courses)
    course = _located(table, table.courses, varying, parts)
    stage = np.zeros(parts.bins.max() + 1, np.intp)
    stage[parts.bins] = parts.stages
    weights = _weights(course, parts)
    logs = _by_varying(table, table.log_mean, varying)
    unknown = _spread(logs, course, parts)
    noise = np.repeat(table.noise_sd[:, None], logs.shape[4], axis=1)
    noise = (noise if table.noise_by_bin is None else table.noise_by_bin)[:, stage]
    nodes = [known[:1] if varies else known for known, varies in zip(table.feature_nodes, varying, strict=True)]
    members = None
    if table.members is not None:
        members = np.stack([_averaged(_by_varying(table, one, varying), weights, stage) for one in table.members])
    return replace(
        table,
        log_mean=_averaged(logs, weights, stage),
        iteration_bin=np.repeat(parts.bins, parts.lengths).astype(np.int32),
        feature_nodes=tuple(nodes),
        noise_sd=np.sqrt(table.noise_sd**2 + unknown.mean(axis=1)),
        noise_by_bin=np.sqrt(noise**2 + unknown),
        members=members,
        courses=None,
    )


def course_places(iterations: int, resolution: int) -> NDArray[np.intp]:
    """Where in a course of ``resolution`` entries each iteration is, [iterations]."""
    return np.arange(iterations) * resolution // iterations


class _Parts(NamedTuple):
    """Runs of iterations that are alike, [S] each: how many, their bins before and after, their place in a course."""

    lengths: NDArray[np.intp]
    stages: NDArray[np.intp]
    bins: NDArray[np.intp]
    places: NDArray[np.intp]


def _parts(table: ModelTable, courses: Array) -> _Parts:
    """A new bin begins where the table's or the course's does, as long as that fits."""
    places = course_places(len(table.iteration_bin), courses.shape[1])
    anew = np.diff(table.iteration_bin, prepend=-1) != 0
    first = np.flatnonzero(anew | (np.diff(places, prepend=-1) != 0))
    members = 1 if table.members is None else len(table.members)
    fits = len(first) * table.log_mean[..., 0].size * members <= LARGEST
    bins = np.arange(len(first)) if fits else np.cumsum(anew)[first] - 1
    lengths = np.diff(first, append=len(places))
    return _Parts(lengths, table.iteration_bin[first].astype(np.intp), bins, places[first])


def _located(table: ModelTable, courses: Array, varying: list[bool], parts: _Parts) -> Point:
    """The varying features of every execution in every part among their own cells, [J, X, S]."""
    nodes = [known for known, varies in zip(table.feature_nodes, varying, strict=True) if varies]
    features = courses[:, parts.places][:, :, varying].astype(np.float64)
    cells, weights = locate(nodes, features.reshape(-1, len(nodes)))
    shape = (len(cells), *features.shape[:2])
    return Point(cells.reshape(shape), np.ones(shape) if weights is None else weights.reshape(shape))


def _weights(course: Point, parts: _Parts) -> Array:
    """Share of each cell of the varying features in each bin, over executions and iterations, [bins, V]."""
    width = int(course.cells.max()) + 1
    rows = (parts.bins * width + course.cells).reshape(-1)
    share = 1.0 if course.weights is None else course.weights
    total = np.bincount(rows, (share * parts.lengths).reshape(-1), (parts.bins.max() + 1) * width)
    found = total.reshape(-1, width)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _by_varying(table: ModelTable, logs: Array, varying: list[bool]) -> Array:
    """``logs`` [M, A, C, I] with the cells of the varying features apart, [M, A, P, V, I]."""
    apart = logs.reshape(*logs.shape[:2], *(len(known) for known in table.feature_nodes), -1)
    order = sorted(range(len(varying)), key=lambda axis: varying[axis])
    width = int(np.prod([len(known) for known, varies in zip(table.feature_nodes, varying, strict=True) if varies]))
    apart = apart.transpose(0, 1, *(2 + axis for axis in order), apart.ndim - 1)
    return apart.reshape(*logs.shape[:2], -1, width, logs.shape[3])


def _averaged(logs: Array, weights: Array, stage: NDArray[np.intp]) -> NDArray[np.float32]:
    """``logs`` [M, A, P, V, I] averaged with ``weights`` [bins, V], each bin in its ``stage``, [M, A, P, bins]."""
    width = weights.shape[1]
    columns = [logs[:, :, :, :width, known] @ one for known, one in zip(stage, weights, strict=True)]
    return np.stack(columns, axis=-1).astype(np.float32)


def _spread(logs: Array, course: Point, parts: _Parts) -> Array:
    """Variance of ``logs`` [M, A, P, V, I] over executions and the iterations of a bin, [M, bins]."""
    probes = [np.unique(np.linspace(0, size - 1, PROBES).astype(int)) for size in logs.shape[1:3]]
    probed = logs[:, probes[0]][:, :, probes[1]].astype(np.float64)
    read = [probed[:, :, :, cell, parts.stages] for cell in course.cells]  # [M, a, p, X, S]
    found = read[0] if course.weights is None else weighted(read, course.weights)
    count = np.bincount(parts.bins, parts.lengths)
    first, second = (_by_bin(values.mean(axis=3) * parts.lengths, parts.bins) / count for values in (found, found**2))
    return np.asarray(np.maximum(second - first**2, 0).mean(axis=(1, 2)))


def _by_bin(values: Array, bins: NDArray[np.intp]) -> Array:
    """Sums of ``values`` [..., S] by bin, [..., bins]."""
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    return np.add.reduceat(values, starts, axis=-1)
