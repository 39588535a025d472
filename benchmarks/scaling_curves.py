"""How measured workloads scale: ``STEWARD_DATA=… python -m benchmarks.scaling_curves > curves.csv``.

``steward pretrain`` reads that file. It has Spark and Flink jobs (Bell) and trainings on GPUs (Gavel, ElasticFlow,
Pollux), and nothing of Ellis or C3O, which are left for judging it.
"""

import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, float, float]
"""Application, curve, amount of the resource, and seconds per unit of work."""


def rows(folder: Path) -> Iterator[Row]:
    """All measurements, in order of their sources."""
    yield from _bell(folder / "bell")
    yield from _elasticflow(folder / "elasticflow-asplos23" / "throughputs_A100")
    yield from _gavel(folder / "gavel-throughputs" / "alone.csv")
    yield from _pollux(folder / "pollux-osdi21" / "traces")


def _bell(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.*.csv")):
        for nodes, milliseconds in list(csv.reader(path.open()))[1:]:
            yield f"bell-{path.stem}", "all", float(nodes), float(milliseconds) / 1000


def _elasticflow(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.csv")):
        head, *table = csv.reader(path.open())
        for batch, *rates in table:
            for gpus, rate in zip(head[1:], rates, strict=False):
                if rate not in {"", "nan"} and float(rate) > 0:
                    yield f"elasticflow-{path.stem}", batch, float(gpus), 1 / float(rate)


def _gavel(path: Path) -> Iterator[Row]:
    """Each GPU has a batch of its own, so that a step is as many times as much work."""
    for row in csv.DictReader(path.open()):
        rate, gpus = float(row["steps_per_second"]), float(row["gpus"])
        if rate > 0 and "unconsolidated" not in row["type"]:
            yield f"gavel-{row['job'].split(' ')[0]}", f"{row['job']} on {row['type']}", gpus, 1 / (rate * gpus)


def _pollux(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*/scalability.csv")):
        for row in csv.DictReader(path.open()):
            replicas, batch = float(row["num_replicas"]), float(row["local_bsz"])
            yield f"pollux-{path.parent.name}", row["local_bsz"], replicas, float(row["step_time"]) / (replicas * batch)


if __name__ == "__main__":
    writer = csv.writer(sys.stdout)
    writer.writerow(("application", "curve", "amount", "seconds"))
    writer.writerows(rows(Path(os.environ.get("STEWARD_DATA") or "../shared/data")))
