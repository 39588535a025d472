"""What ``steward pretrain`` fits to measured workloads, and ships with kind ``iterative``.

Letters in shapes: n rows, J shares of the work that a resource shortens.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.prior import LAWS, shares

Floats = NDArray[np.float64]
COLUMNS = ("application", "curve", "amount", "seconds")
FEWEST = 3  # amounts of a curve
NOISE = 0.1  # scale of log residuals of a curve, by Student's t with ``FREEDOM`` degrees of freedom
FREEDOM = 4.0
ROUNDS = 200
SMOOTHING = 0.3  # applications that a uniform distribution over laws and shares is worth
NEIGHBOURS = (0.25, 0.5, 0.25)  # weights of adjacent shares
OPEN = 0.1  # weight of the uniform distribution in the end: what was measured is not all there is
MEMBERS = 16


class Curve(NamedTuple):
    """Seconds for the same work on several amounts of a resource, [n] each, of one application."""

    application: str
    amounts: Floats
    seconds: Floats


def read_curves(path: Path) -> list[Curve]:
    """Read a CSV file with the columns ``COLUMNS``; rows of a curve and amount are joined by their median.

    Curves of fewer than three amounts are left out.

    Raises:
        ValueError: a column is missing, a number is not greater than 0, or no curve is left.
    """
    values: dict[tuple[str, str], dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    with path.open(newline="") as file:
        for place, row in enumerate(csv.DictReader(file), start=2):
            if missing := [name for name in COLUMNS if row.get(name) in (None, "")]:
                raise ValueError(f"line {place}: {', '.join(missing)}: missing; a row has {', '.join(COLUMNS)}")
            amount, seconds = (_positive(row[name], name, place) for name in COLUMNS[2:])
            values[row["application"], row["curve"]][amount].append(seconds)
    curves = [
        Curve(application, np.array(sorted(points)), np.array([np.median(points[a]) for a in sorted(points)]))
        for (application, _), points in values.items()
        if len(points) >= FEWEST
    ]
    if not curves:
        raise ValueError(f"{path} has no curve of {FEWEST} amounts")
    return curves


def _positive(text: str, name: str, place: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise ValueError(f"line {place}: {name}: must be a number greater than 0, not {text!r}")
    return value


def law_weights(curves: Sequence[Curve]) -> Floats:
    """Estimate how frequent each pair of a scaling law and one of J shares of work that a resource shortens is among
    applications, as probabilities [laws, J], by expectation maximisation; each application has the same weight."""
    names = sorted({curve.application for curve in curves})
    likelihoods = [[_likelihood(c) for c in curves if c.application == name] for name in names]
    weights = np.full(likelihoods[0][0].shape, 1 / likelihoods[0][0].size)
    left, own, right = NEIGHBOURS
    for _ in range(ROUNDS):
        total = np.full(weights.shape, SMOOTHING / weights.size)
        for each in likelihoods:
            posteriors = [weights * likelihood for likelihood in each]
            total += np.mean([one / one.sum() for one in posteriors], axis=0)
        wide = np.pad(total, ((0, 0), (1, 1)), mode="edge")
        total = left * wide[:, :-2] + own * wide[:, 1:-1] + right * wide[:, 2:]
        weights = total / total.sum()
    return (1 - OPEN) * weights + OPEN / weights.size


def _likelihood(curve: Curve) -> Floats:
    """Return a curve's relative likelihood by scaling law and share of work that a resource shortens, [laws, J]."""
    relative = (curve.amounts / np.exp(np.log(curve.amounts).mean()))[:, None]
    logs, lattice = np.log(curve.seconds)[:, None], shares(1)
    residuals = np.stack([logs - law(relative, lattice) for law in LAWS.values()])
    residuals -= residuals.mean(axis=1, keepdims=True)
    result = -(FREEDOM + 1) / 2 * np.log1p(residuals**2 / (FREEDOM * NOISE**2)).sum(axis=1)
    return np.asarray(np.exp(result - result.max()), np.float64)


def members(weights: Floats) -> list[tuple[str, float]]:
    """Choose 16 equally likely pairs (scaling law's name, share of work that a resource shortens, 0…1) as quantiles, in
    order of shares, of the probabilities ``weights`` [laws, J]."""
    lattice, names = shares(1)[:, 0], list(LAWS)
    cumulated = weights.T.ravel().cumsum()  # laws within shares
    chosen = np.searchsorted(cumulated, (np.arange(MEMBERS) + 0.5) / MEMBERS * cumulated[-1])
    return [(names[place % len(names)], float(lattice[place // len(names)])) for place in chosen.tolist()]


def main() -> int:
    """Fit frequencies of scaling laws to the CSV file named on the command line, and write them as JSON to ``--out``.

    Returns the exit status: 0, or 2 if the file has no usable curves. Raises OSError if a file can't be opened."""
    parser = argparse.ArgumentParser(prog="steward pretrain")
    parser.add_argument("curves", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    try:
        curves = read_curves(options.curves)
    except ValueError as error:
        sys.stderr.write(f"steward pretrain: {error}\n")
        return 2
    applications = sorted({curve.application for curve in curves})
    fitted = {
        "command": f"steward pretrain {options.curves.name}",
        "curves": len(curves),
        "applications": applications,
        "members": members(law_weights(curves)),
    }
    options.out.write_text(json.dumps(fitted, indent=1) + "\n")
    done = f"{MEMBERS} members from {len(curves)} curves of {len(applications)} applications"
    sys.stderr.write(f"{options.out}: {done}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
