"""Inference of a spec from a log of samples, with a reason for every inferred part."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from statistics import median
from typing import Any

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.iterative.spec import SECONDS

GZIP_MAGIC = b"\x1f\x8b"
TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""}
PREFIXES = ("allocation.", "metric.", "feature.")
HEADER = "execution, iteration, allocation.<resource>, metric.<metric>, feature.<feature>"
FAST, FEW = 2, 4
"""Changes per action, in levels, of resources with over ``FEW`` levels, in specs of at most ``FEW`` resources."""


@dataclass
class Log:
    """Values of a log by column, and the length of each execution.

    Attributes:
        values: distinct values of each column.
        seconds: measured seconds of iterations.
        lengths: number of iterations of each execution.
    """

    values: dict[str, set[Decimal]]
    seconds: list[float] = field(default_factory=list)
    lengths: dict[str, int] = field(default_factory=dict)

    def of(self, prefix: str) -> dict[str, list[Decimal]]:
        """Return the sorted distinct values of the columns whose names begin with ``prefix``, by name without it."""
        return {
            name.removeprefix(prefix): sorted(column) for name, column in self.values.items() if name.startswith(prefix)
        }


@dataclass(frozen=True)
class Guess:
    """Parts of a spec inferred from a log, and a sentence of reason for each."""

    spec: dict[str, Any]
    reasons: list[str]


def read_log(path: Path) -> Log:
    """Read a CSV file, plain or gzip, row by row.

    Raises:
        InvalidInput: the header or a cell is invalid, or the file has no row; the line is named.
    """
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    try:
        with gzip.open(path, "rt", **TEXT) if packed else path.open(**TEXT) as lines:
            return _read(path, csv.reader(lines))
    except (UnicodeDecodeError, csv.Error, EOFError, gzip.BadGzipFile) as error:
        raise _refusal(path, 1, f"is no CSV file: {error}") from error


def _read(path: Path, rows: Iterator[list[str]]) -> Log:
    header = [name.strip() for name in next(rows, [])]
    unknown = [name for name in header if name not in ("execution", "iteration") and not name.startswith(PREFIXES)]
    if unknown or not {"execution", "iteration"} <= set(header):
        wrong = f"column {unknown[0]!r}" if unknown else "the header"
        raise _refusal(path, 1, f"{wrong} isn't known; columns are {HEADER}")
    log = Log({name: set() for name in header if name.startswith(PREFIXES)})
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise _refusal(path, number, f"has {len(row)} cells, not {len(header)}")
        cells = dict(zip(header, row, strict=True))
        log.lengths[cells["execution"]] = log.lengths.get(cells["execution"], 0) + 1
        for name, column in log.values.items():
            if cells[name].strip():
                column.add(_number(path, number, name, cells[name]))
        if cells.get(f"metric.{SECONDS}", "").strip():
            log.seconds.append(float(cells[f"metric.{SECONDS}"]))
    if not log.lengths:
        raise _refusal(path, 2, "there is no row")
    return log


def _number(path: Path, line: int, name: str, text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise _refusal(path, line, f"{name}: must be a number, not {text!r}")
    return value


def _refusal(path: Path, line: int, message: str) -> InvalidInput:
    return InvalidInput([FieldIssue(f"/{path}, line {line}", message, None)])


def guess(log: Log, iterations: int | None, deadline: float | None) -> Guess:
    """Infer the parts of a spec from a log; ``iterations`` and ``deadline`` (seconds) are inferred if None.

    Raises:
        InvalidInput: the log has no resource column, or one is empty.
    """
    reasons: list[str] = []
    resources = log.of("allocation.")
    if not resources:
        raise InvalidInput([FieldIssue("", f"no column tells what was allocated; columns are {HEADER}", None)])
    spec: dict[str, Any] = {
        "resources": [_resource(name, values, len(resources), reasons) for name, values in resources.items()],
        "iterations": iterations or max(log.lengths.values()),
    }
    if iterations is None:
        reasons.append(f"iterations {spec['iterations']}: as the longest of {len(log.lengths)} executions")
    spec["metrics"] = [_seconds(log, spec["iterations"], deadline, reasons)]
    others = [name for name in log.of("metric.") if name != SECONDS]
    spec["metrics"] += [{"name": name} for name in others]
    reasons += [f"metric {name}: recorded and predicted; give it a target if it has one" for name in others]
    spec["features"] = [_feature(name, values, reasons) for name, values in log.of("feature.").items() if values]
    return Guess(spec, reasons)


def _resource(name: str, values: list[Decimal], resources: int, reasons: list[str]) -> dict[str, Any]:
    if not values:
        raise InvalidInput([FieldIssue(f"/allocation.{name}", "the column is empty", None)])
    low, high = values[0], values[-1]
    step = _step(values)
    levels = int((high - low) / step) + 1
    fast = FAST if levels > FEW and resources <= FEW else 1
    known = f"{len(values)} values from {low:g} to {high:g}" if len(values) > 1 else f"only {low:g} was seen"
    note = "" if len(values) > 1 else "; raise the maximum, or there is nothing to decide"
    reasons.append(
        f"resource {name}: {known}, in steps of {step:g}{note}; its price is unknown: 1 an hour stands for it"
    )
    numbers = {"minimum": low, "maximum": high, "step": step, "initial": values[len(values) // 2]}
    return {
        "name": name,
        **{key: _plain(value) for key, value in numbers.items()},
        "max_steps": fast,
        "price_per_hour": 1,
    }


def _step(values: list[Decimal]) -> Decimal:
    """Return the largest step of which all differences of values are multiples, 1 if all values are equal."""
    digits = max(max(0, -int(value.as_tuple().exponent)) for value in values)
    whole = [int((value - values[0]).scaleb(digits)) for value in values]
    return Decimal(math.gcd(*whole) or 10**digits).scaleb(-digits).normalize()


def _seconds(log: Log, iterations: int, deadline: float | None, reasons: list[str]) -> dict[str, Any]:
    metric: dict[str, Any] = {"name": SECONDS, "unit": "s"}
    if deadline is None and log.seconds:
        taken = median(log.seconds) * iterations
        deadline = float(f"{taken:.2g}")
        reasons.append(
            f"deadline {deadline:,g} s: {iterations} iterations take {taken:,.0f} s at the median pace; "
            "set what is really needed"
        )
    if deadline is None:
        reasons.append(f"metric {SECONDS}: is not in the log, so no deadline is guessed; give it a target")
        return metric
    return {**metric, "target": deadline, "goal": "at_most", "scope": "run"}


def _feature(name: str, values: list[Decimal], reasons: list[str]) -> dict[str, Any]:
    low, high = values[0], values[-1]
    reasons.append(f"feature {name}: {len(values)} values from {low:g} to {high:g}")
    if low == high:
        low, high = sorted((Decimal(0), 2 * high)) if high else (Decimal(0), Decimal(1))
        reasons[-1] = f"feature {name}: only {values[0]:g} was seen; {low:g} to {high:g} stand for what may come"
    return {"name": name, "minimum": _plain(low), "maximum": _plain(high)}


def _plain(value: Decimal) -> int | float:
    return int(value) if value == int(value) else float(value)
