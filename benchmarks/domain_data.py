"""The public measurements that domain models are judged on, each with the protocol of those who published it."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.spec import Spec
from workers.estimators.base import Floats, Inputs, Integers
from workers.kinds.iterative.grid import Executions

Mask = NDArray[np.bool_]
ELLIS_TARGETS = {"kmeans": 840.0, "logisticregression": 300.0}


@dataclass(frozen=True, eq=False)
class Measurements:
    """A data set and its splits.

    Attributes:
        X, seconds, groups: inputs [n, D], what was measured [n], and the execution of each row [n].
        tests: the rows to be predicted [n], one mask per split; the model learns from the others.
        published: MAPE in percent of methods as their authors published it under this protocol.
        rate: errors are those of the rate 1 / seconds.
        computing: the part of the seconds without synchronisation [n], where it was measured.
    """

    name: str
    protocol: str
    inputs: Inputs
    X: Floats
    seconds: Floats
    groups: Integers
    tests: list[Mask]
    published: dict[str, float] = field(default_factory=dict)
    rate: bool = False
    computing: Floats | None = None


C3O = {
    "kmeans": ("K-Means", ("observations", "features", "k"), {"machine_type": "r4.2xlarge"}, 2, 2.17, 15.3),
    "grep": ("Grep", ("data_size_MB", "p_occurrence"), {"machine_type": "m4.2xlarge"}, 0, 2.74, 39.4),
    "sort": ("Sort", ("data_size_MB",), {"machine_type": "c4.2xlarge", "line_length": "100"}, 0, 2.61, 5.8),
}


def c3o(folder: Path, splits: int) -> Iterator[Measurements]:
    """Three Spark jobs on one machine type: medians of five runs, random 90/10 splits (Will et al. 2021)."""
    for job, (title, features, chosen, above, theirs, ernest) in C3O.items():
        runs = defaultdict(list)
        for row in csv.DictReader((folder / "c3o" / f"{job}.tsv").open(), delimiter="\t"):
            if all(row[k] == v for k, v in chosen.items()) and int(row["instance_count"]) > above:
                key = tuple(float(row[c]) for c in ("instance_count", *features))
                runs[key].append(float(row["gross_runtime"]))
        X = np.array(sorted(runs))
        seconds = np.array([np.median(runs[tuple(x)]) for x in X])
        tests = [_random(len(X), 0.1, seed) for seed in range(splits)]
        inputs = Inputs(("machines",), tuple(name.lower() for name in features))
        published = {"C3O": theirs, "Ernest": ernest}
        protocol = f"{splits} random 90/10 splits of medians of 5 runs"
        yield Measurements(f"C3O {title}", protocol, inputs, X, seconds, np.arange(len(X)), tests, published)


def bell(folder: Path) -> Iterator[Measurements]:
    """Six dataflow jobs on 4 to 60 nodes: fastest and slowest of 7 runs dropped, each inner scale-out left out once."""
    for path in sorted((folder / "bell").glob("*.*.csv")):
        nodes, milliseconds = np.array([[float(v) for v in row] for row in list(csv.reader(path.open()))[1:]]).T
        rows = np.concatenate([_inner(nodes, milliseconds, value) for value in np.unique(nodes)])
        nodes, seconds = nodes[rows], milliseconds[rows] / 1000
        tests = [nodes == value for value in np.unique(nodes)[1:-1]]
        inputs, groups = Inputs(("nodes",)), np.arange(len(nodes))
        name, protocol = f"Bell {path.stem}", "each inner scale-out left out"
        yield Measurements(name, protocol, inputs, nodes[:, None], seconds, groups, tests)


def rcv1(folder: Path) -> Measurements:
    """Ernest's own example: seven runs on 4 to 32 cores over shares of the data, each left out once."""
    rows = list(csv.reader((folder / "bell" / "ernest-rcv1.csv").open()))[1:]
    table = np.array([[float(v) for v in row] for row in rows])
    every = np.arange(len(table))
    tests = [every == i for i in every]
    inputs = Inputs(("cores",), ("share",))
    return Measurements("Ernest rcv1", "leave one out of 7", inputs, table[:, :2], table[:, 2], every, tests)


def pollux(folder: Path, repeats: int) -> Iterator[Measurements]:
    """Step times of four models on 1 to 64 GPUs: folds that hold out whole (nodes, GPUs) pairs.

    The pairs are dealt to the folds in order, so that none of them takes all placements on a single node away: how fast
    one node synchronises can't be learned from several.
    """
    for app in ("bert", "cifar10", "ncf", "yolov3"):
        traces = folder / "pollux-osdi21" / "traces" / app
        rows, names = [], []
        for row in csv.DictReader((traces / "placements.csv").open()):
            digits = [int(c) for c in row["placement"]]
            rows.append((sum(digits), len(digits), *_step(row)))
            names.append(row["placement"])
        for row in csv.DictReader((traces / "scalability.csv").open()):
            rows.append((int(row["num_replicas"]), int(row["num_nodes"]), *_step(row)))
            names.append(f"{row['num_nodes']}x{row['num_replicas']}")
        table = np.array(rows, float)
        tests = _dealt(table[:, 1] * 1000 + table[:, 0], 5, repeats)
        groups = np.unique(names, return_inverse=True)[1]
        inputs = Inputs(("gpus", "nodes"), ("local_batch",))
        seconds, computing = table[:, 3], np.maximum(table[:, 3] - table[:, 4], 1e-6)
        protocol = f"{len(tests)} folds by (nodes, GPUs)"
        yield Measurements(f"Pollux {app}", protocol, inputs, table[:, :3], seconds, groups, tests, computing=computing)


def elasticflow(folder: Path, repeats: int) -> Iterator[Measurements]:
    """Iterations per second of seven models on 1 to 64 A100 at fixed global batches: random fifths."""
    for path in sorted((folder / "elasticflow-asplos23" / "throughputs_A100").glob("*.csv")):
        head, *rows = csv.reader(path.open())
        cells = [
            (float(gpus), float(row[0]), float(rate))
            for row in rows
            for gpus, rate in zip(head[1:], row[1:], strict=False)
            if rate not in {"", "nan"} and float(rate) > 0
        ]
        table = np.array(cells)
        every = np.arange(len(table))
        tests, inputs = _folds(every.astype(float), 5, repeats), Inputs(("gpus",), ("global_batch",))
        name, protocol = f"ElasticFlow {path.stem}", f"{len(tests)} random fifths"
        yield Measurements(name, protocol, inputs, table[:, :2], 1 / table[:, 2], every, tests, rate=True)


def ellis(folder: Path, app: str) -> tuple[Spec, Executions]:
    """All 65 runs of a Spark application that was rescaled between its stages, failures included."""
    runs = defaultdict(list)
    with (folder / "enel-ellis" / f"ellis-{app}.csv").open() as file:
        for row in list(csv.reader(file, delimiter="|"))[1:]:
            runs[row[4]].append((float(row[5]), float(row[9]), float(row[8]) / 1000))
    executions = Executions(tuple((run, np.array(sorted(rows))) for run, rows in runs.items()))
    metric = {"name": "iteration_seconds", "unit": "s", "target": ELLIS_TARGETS[app], "scope": "run"}
    spec = {
        "name": f"ellis-{app}",
        "resources": [{"name": "executors", "minimum": 4, "maximum": 36, "max_steps": 4}],
        "metrics": [metric],
        "iterations": max(len(rows) for rows in runs.values()),
    }
    return Spec.model_validate(spec), executions


def _step(row: dict[str, str]) -> tuple[float, float, float]:
    return float(row["local_bsz"]), float(row["step_time"]), float(row["sync_time"])


def _inner(nodes: Floats, seconds: Floats, value: float) -> Integers:
    rows = np.flatnonzero(nodes == value)
    return rows[np.argsort(seconds[rows])][1:-1]


def _random(rows: int, share: float, seed: int) -> Mask:
    order = np.random.default_rng(seed).permutation(rows)
    return np.isin(np.arange(rows), order[: int(np.ceil(share * rows))])


def _folds(keys: Floats, count: int, repeats: int) -> list[Mask]:
    names = np.unique(keys)
    orders = [np.random.default_rng(seed).permutation(names) for seed in range(repeats)]
    return [np.isin(keys, part) for order in orders for part in np.array_split(order, count)]


def _dealt(keys: Floats, count: int, repeats: int) -> list[Mask]:
    """Folds of every ``count``-th key in ascending order; each repeat groups the keys by another stride."""
    place = np.unique(keys, return_inverse=True)[1]
    return [(place + place // count * seed) % count == fold for seed in range(repeats) for fold in range(count)]
