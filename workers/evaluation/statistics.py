"""Statistics of paired returns: confidence intervals, equivalence, records of an evaluation, and its levels.

Shapes: E episodes (values), G clusters, T thresholds, O outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy
from scipy.special import betaincinv, stdtrit

from app.charts.text import number, percent
from app.kinds.tensors import read_header, write_tensors

Floats = NDArray[np.float64]
Clusters = NDArray[np.intp]
LOOKS = 12  # looks after which the confidence level stays constant
POWER = 0.8  # probability of finding the detectable effect


class Interval(NamedTuple):
    """An estimate (``mean``) and the bounds of its confidence interval, in the unit of the values."""

    mean: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """Return ``mean``, ``low`` and ``high`` by name."""
        return {"mean": self.mean, "low": self.low, "high": self.high}


class Estimate(NamedTuple):
    """A mean, its standard error, and the error's degrees of freedom; for a single cluster these are inf and 0."""

    mean: float
    error: float
    freedom: float

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the two-sided interval by Student's t at a ``confidence`` of 0 to 1; infinite for ``freedom`` 0."""
        half = self._errors((1 + confidence) / 2)
        return Interval(self.mean, self.mean - half, self.mean + half)

    def detectable(self, confidence: float = 0.95, power: float = POWER) -> float:
        """Return the smallest true mean whose interval lies above 0 with probability ``power``; inf for ``freedom`` 0.

        It is the standard error times the sum of two quantiles of Student's t (Bloom 1995, "Minimum detectable
        effects").
        """
        return self._errors((1 + confidence) / 2) + self._errors(power)

    def _errors(self, chance: float) -> float:
        """Return the quantile of Student's t at probability ``chance``, times the standard error."""
        return float(stdtrit(self.freedom, chance)) * self.error if self.freedom > 0 else float("inf")


def estimate(values: Floats, clusters: Clusters | None = None) -> Estimate:
    """Estimate the mean of ``values`` [E], with dependence within ``clusters`` [E] (indices); None: independent values.

    With ``clusters`` [E, 2], values depend on each other in two ways, as results of several models on several days do.
    The variances of both ways add up, with Satterthwaite's degrees of freedom (1946, "An approximate distribution of
    estimates of variance components"): what varies in neither way counts twice, so that the interval is rather too wide
    (MacKinnon, Nielsen and Webb 2021, "Wild bootstrap and asymptotic inference with multiway clustering").
    """
    if clusters is None:
        return _clustered_mean(values, np.arange(len(values)))
    if clusters.ndim == 1:
        return _clustered_mean(values, np.unique(clusters, return_inverse=True)[1])
    ways = [estimate(values, way) for way in clusters.T]
    variance = sum(way.error**2 for way in ways)
    fewest = min(way.freedom for way in ways)
    if not fewest or not variance:
        return ways[0]._replace(error=variance**0.5, freedom=fewest)
    freedom = variance**2 / sum(way.error**4 / way.freedom for way in ways)
    return Estimate(ways[0].mean, variance**0.5, freedom)


def _clustered_mean(values: Floats, clusters: Clusters) -> Estimate:
    """Estimate the mean of values [E], cluster-robust; ``clusters`` [E] are numbered from 0 without gaps."""
    mean = float(values.mean())
    share = np.bincount(clusters) / len(values)
    if len(share) == 1:
        return Estimate(mean, float("inf"), 0.0)
    sums = np.bincount(clusters, values - mean) / len(values)
    error = float(np.sqrt((sums**2 / (1 - share)).sum()))
    each = share**2 / (1 - share)
    together = each.sum() ** 2 - (each**2).sum()
    return Estimate(mean, error, float(1 / ((share**2).sum() + together)))


def mean_interval(values: Floats, clusters: Clusters | None = None) -> dict[str, float]:
    """Return ``mean``, ``low`` and ``high`` of the 95 % interval of ``values`` [E]; infinite for a single cluster."""
    return estimate(values, clusters).interval().as_dict()


def confidence_at(look: int, confidence: float = 0.95) -> float:
    """Return the confidence level (0 to 1) at look 1, 2, … such that all looks are right with ``confidence``.

    Look i gets 1 / (i · (i + 1)) of the error probability, which sums to 1 (union bound; Darling and Robbins 1967,
    "Confidence sequences for mean, variance, and median"). Looks after the 12th (`LOOKS`) keep its level: otherwise
    later changes could never be detected.
    """
    counted = min(look, LOOKS)
    return 1 - (1 - confidence) / (counted * (counted + 1))


def interquartile_mean(values: NDArray[np.floating]) -> float:
    """Return the mean of the middle half of ``values`` of any shape; entries at quartiles have fractional weights."""
    ordered = np.sort(np.asarray(values, np.float64).reshape(-1))
    quarter = len(ordered) / 4
    upper = np.clip(np.arange(1, len(ordered) + 1), quarter, 3 * quarter)
    weights = np.diff(upper, prepend=quarter)
    return float(weights @ ordered / (2 * quarter))


def interquartile(values: Floats, clusters: Clusters | None = None) -> Estimate:
    """Estimate the interquartile mean of ``values`` [E], dependent within ``clusters`` [E] (None: independent).

    The standard error is that of twice the mean of the values winsorised at their quartiles (Tukey and McLaughlin 1963,
    "Less vulnerable confidence and significance procedures").
    """
    winsorised = np.clip(values, *np.quantile(values, [0.25, 0.75]))
    return estimate(2 * winsorised, clusters)._replace(mean=interquartile_mean(values))


def share_interval(values: Floats, clusters: Clusters | None = None, confidence: float = 0.95) -> Interval:
    """Return mean and interval, in 0 to 1, of ``values`` [E] in 0 to 1, dependent within ``clusters`` [E] unless None.

    It is Jeffreys's interval at ``confidence`` (Brown, Cai and DasGupta 2001, "Interval estimation for a binomial
    proportion") for the effective number of independent draws (Korn and Graubard 1998, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data"). It is valid also if all
    values are 0, or all 1.
    """
    result, tail = estimate(values, clusters), (1 - confidence) / 2
    share = min(max(result.mean, 0.0), 1.0)
    if not result.freedom:
        return Interval(share, 0.0, 1.0)
    same = share in (0.0, 1.0)
    alone = float(values.std()) / max(len(values) - 1, 1) ** 0.5
    error = max(result.error, alone)  # clusters that agree by chance are worth no more than independent draws
    if not same and error < 1e-9:
        return Interval(share, share, share)  # no variation
    draws: float = len(values) if same else share * (1 - share) / error**2
    if same and clusters is not None:
        draws = result.freedom + 1  # the dependence within clusters cannot be estimated
    elif len(values) > 1:
        draws *= float(stdtrit(len(values) - 1, tail) / stdtrit(result.freedom, tail)) ** 2
    won = share * draws
    low, high = betaincinv(won + 0.5, draws - won + 0.5, [tail, 1 - tail])
    low, high = float(low) if share > 0 else 0.0, float(high) if share < 1 else 1.0
    return Interval(share, min(low, share), max(high, share))


RESAMPLES = 2_000


def ratio_interval(parts: Floats, wholes: Floats, confidence: float = 0.95) -> Interval | None:
    """Return mean(``parts``) / mean(``wholes``) of paired values [E] with its bootstrap interval (Efron 1979).

    None where the mean of ``wholes`` is not above 0 with that confidence.
    """
    if estimate(wholes).interval(confidence).low <= 0:
        return None
    random, tail = np.random.default_rng(0), (1 - confidence) / 2
    counts = random.multinomial(len(parts), np.full(len(parts), 1 / len(parts)), RESAMPLES)
    low, high = np.quantile((counts @ parts) / (counts @ wholes), (tail, 1 - tail))
    return Interval(float(parts.mean() / wholes.mean()), float(low), float(high))


def jackknife(left_out: Floats, whole: float, freedom: float | None = None) -> Estimate:
    """Return the ``whole`` value with the jackknife's standard error, from G leave-one-cluster-out values.

    Source: Tukey 1958; Miller 1974, "The jackknife – a review".

    Args:
        left_out: the statistic without each cluster, [G].
        whole: the statistic of all data.
        freedom: degrees of freedom of the standard error; None: G − 1.
    """
    count = len(left_out)
    error = float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))
    return Estimate(whole, error, count - 1.0 if freedom is None else freedom)


def wins(ours: NDArray[np.floating], theirs: NDArray[np.floating]) -> Floats:
    """Return, in their common shape, 1 where ``ours`` is larger than ``theirs``, 0.5 where equal, 0 elsewhere."""
    won: Floats = (ours > theirs) + 0.5 * (ours == theirs)
    return won


def profile(
    scores: Floats, tau: Sequence[float] | Floats, clusters: Clusters | None = None, confidence: float = 0.95
) -> Floats:
    """Return the share of ``scores`` [E] above each of ``tau`` [T], its lower, and its upper bound, as rows of [3, T].

    Bounds are Jeffreys's, at ``confidence`` (0 to 1), for scores dependent on each other within ``clusters`` [E] (None:
    independent). Source: Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice".
    """
    above = (scores[None] > np.asarray(tau)[:, None]).astype(np.float64)
    return np.array([share_interval(row, clusters, confidence) for row in above]).T


# Margin of practical equivalence: the smallest difference in return that counts.
#
# The same for promotions and for evaluation levels, of every kind. Differences are paired means with confidence
# intervals; larger is better. With a margin m, a share of the reference's mean return:
#
# - *at least as good*: the interval's lower end is at least −m, so that equality suffices;
# - *better*: the whole interval lies above m, so that equality does not suffice;
# - *worse*: the whole interval lies below −m.
#
# Otherwise the difference is negligible, or not known precisely enough. (Equivalence and non-inferiority testing:
# Lakens 2017, "Equivalence tests".)


MARGIN = 0.01
ROUNDING = 1e-7  # relative rounding error of returns, which are summed in single precision


@dataclass(frozen=True)
class Equivalence:
    """Margin of practical equivalence.

    Attributes:
        share: margin as a share of the reference's magnitude, 0 or more.
        reference: mean return of the best baseline, of any sign.
    """

    share: float
    reference: float

    @property
    def margin(self) -> float:
        """Largest difference in return that still counts as equal, in units of return."""
        return self.share * abs(self.reference)

    def as_good(self, difference: Mapping[str, float]) -> bool:
        """Return whether an interval of differences (``mean``, ``low``, ``high``) has low ≥ −margin."""
        return difference["low"] >= -self._rounded_margin

    def better(self, difference: Mapping[str, float]) -> bool:
        """Return whether an interval of differences (``mean``, ``low``, ``high``) lies wholly above the margin."""
        return difference["low"] > self._rounded_margin

    def worse(self, difference: Mapping[str, float]) -> bool:
        """Return whether an interval of differences (``mean``, ``low``, ``high``) lies wholly below −margin."""
        return difference["high"] < -self._rounded_margin

    @property
    def _rounded_margin(self) -> float:
        return self.margin + ROUNDING * abs(self.reference)

    def __str__(self) -> str:
        if not self.share:
            return "any difference counts"
        return f"tolerance {number(self.margin, 2)}, {percent(self.share)} of the best heuristic's return"


# Results of an evaluation so far: one record for each unit of work, and their serialisation.


@dataclass(frozen=True, eq=False)
class Record:
    """Result of one unit of an evaluation's work.

    Attributes:
        returns: undiscounted returns of E episodes, [E]; None for a unit without episodes.
        outcomes: O outcomes in users' units, [E, O]; None for a unit without episodes.
        heat: sums and counts in the Y × X bins of a heat map, [2, Y, X]; None without one.
        details: further results as plain JSON values.
    """

    returns: NDArray[np.float32] | None = None
    outcomes: NDArray[np.float32] | None = None
    heat: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Records:
    """Records in the order of their units, with the seconds worked so far; serialisable.

    Args:
        signature: plain JSON values that identify the evaluation.
        data: bytes from ``to_bytes`` with the same signature; None: no records yet.

    Raises:
        ValueError: ``data`` belongs to another evaluation.
    """

    def __init__(self, signature: Any, data: bytes | None = None) -> None:
        self.signature = json.dumps(signature)
        self.seconds = 0.0
        self._records: list[Record] = []
        if data:
            self._read(data)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, place: int) -> Record:
        return self._records[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def append(self, record: Record) -> None:
        """Append the record of the next unit of work."""
        self._records.append(record)

    def to_bytes(self) -> bytes:
        """Serialise all records, seconds and the signature to safetensors bytes."""
        arrays = {f"returns.{i}": r.returns for i, r in enumerate(self) if r.returns is not None}
        arrays |= {f"outcomes.{i}": r.outcomes for i, r in enumerate(self) if r.outcomes is not None}
        maps = {f"heat.{i}": r.heat for i, r in enumerate(self) if r.heat is not None}
        header = {"told": [r.details for r in self], "seconds": self.seconds, "signature": self.signature}
        return write_tensors({**arrays, **maps}, {"header": json.dumps(header)})

    def _read(self, data: bytes) -> None:
        header = json.loads(read_header(data)["header"])
        if header["signature"] != self.signature:
            raise ValueError(f"the checkpoint is of another evaluation: {header['signature']}, not {self.signature}")
        arrays = safetensors_numpy.load(data)
        self.seconds = header["seconds"]
        for i, details in enumerate(header["told"]):
            returns, outcomes, heat = (arrays.get(f"{part}.{i}") for part in ("returns", "outcomes", "heat"))
            self.append(Record(returns, outcomes, heat, details))


# Levels of the evaluation: sources of randomness, added one after another.
#
# After the progressive randomisation of Schaarschmidt's work on RL for systems: an agent that is good at one level only
# has overfitted to it.


class Level(IntEnum):
    """How random an evaluation's episodes are: from one fixed episode (L0) on, each level adds sources of randomness.

    L1 adds seeds, L2 parameters, L3 models of held-out executions, L4 noise, drift, lost capacity and failures.
    ``TRAIN`` has the randomness of L1, under seeds that no other level uses.
    """

    TRAIN = -1
    FIXED = 0
    SEEDS = 1
    PARAMETERS = 2
    COMPOSITION = 3
    ENVIRONMENT = 4

    @property
    def label(self) -> str:
        """Name of the level in reports: ``train``, or ``L0`` to ``L4``."""
        return "train" if self is Level.TRAIN else f"L{int(self)}"


CLASSES = tuple(level for level in Level if level is not Level.TRAIN)

TITLES = {
    Level.TRAIN: ("training distribution", "As L1, under seeds that no test uses."),
    Level.FIXED: ("everything fixed", "One episode, the same for everybody and every time: learning as optimisation."),
    Level.SEEDS: ("seeds and order", "What a seed decides: the run's effect, its features, its noise, the order."),
    Level.PARAMETERS: ("parameters", "Targets, weights, prices and the spread of run effects change too."),
    Level.COMPOSITION: ("composition", "Episodes follow a model of executions that were held out."),
    Level.ENVIRONMENT: ("environment", "Heavier noise, drift, lost capacity and failures come on top."),
}
