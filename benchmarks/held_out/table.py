"""What was played as a table: the users' units first, paired differences last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from app.kinds.iterative.observation import miss
from benchmarks.held_out.play import Played
from benchmarks.held_out.world import Profile
from workers.evaluation.statistics import Interval, mean_interval

EQUIVALENT = 0.01  # of the peer's return: a difference within it is none in practice


class Missed(NamedTuple):
    """How a metric did: share of runs (of iterations, where its target is for each) that miss it, and by how much on
    average over all of them, in its unit; ``allowed`` is the share that may, where a probability is asked for, and
    ``noise`` what 95 % of such shares are off by, over episodes.
    """

    metric: str
    share: float
    by: float
    unit: str
    allowed: float | None = None
    noise: float = 0.0


class Coverage(NamedTuple):
    """Share of announced bands that held, of iterations and of time; not a number where none was announced."""

    iterations: float
    time: float


def missed(played: Played) -> list[Missed]:
    """Every targeted metric."""
    results = []
    for m, metric in enumerate(played.spec.metrics):
        if metric.target is not None:
            values = played.metrics[:, :, m]
            values = values.sum(axis=1) if metric.scope == "run" else values
            excess = miss(metric.goal, values / metric.target)
            unit = metric.unit or metric.name
            late = (excess > 0).reshape(len(excess), -1).mean(axis=1)
            allowed = None if metric.probability is None else 1 - metric.probability
            noise = 1.96 * float(late.std() / np.sqrt(len(late)))
            by = float(excess.mean() * metric.target)
            results.append(Missed(metric.name, float(late.mean()), by, unit, allowed, noise))
    return results


def coverage(played: Played, profile: Profile, *, inside: bool) -> Coverage:
    """Of the bands of ``iteration_seconds`` at allocations within (or beyond) the range that the profile holds."""
    sampled, m = profile.allocations, [metric.name for metric in played.spec.metrics].index("iteration_seconds")
    at, seconds = played.allocations, played.metrics[:, :, m]
    within = ((at >= sampled.min(axis=0)) & (at <= sampled.max(axis=0))).all(axis=2)
    counted = (within == inside) & np.isfinite(played.low[:, :, m])
    current = (played.low[:, :, m] <= seconds) & (seconds <= played.high[:, :, m])
    if not counted.any():
        return Coverage(np.nan, np.nan)
    return Coverage(float(current[counted].mean()), float((current * seconds)[counted].sum() / seconds[counted].sum()))


def best_static(played: Sequence[Played]) -> Played:
    """The one with the highest mean return on these very episodes."""
    return max(played, key=lambda one: float(one.returns.mean()))


def as_punctual(one: Played, statics: Sequence[Played]) -> Played | None:
    """The cheapest static that misses no more often; None where each misses more."""
    enough = [static for static in statics if _worst(static) <= _worst(one)]
    return min(enough, key=lambda static: float(static.money.mean()), default=None)


def difference(one: Played, other: Played) -> Interval:
    """Mean of the paired differences of the returns and its 95 % interval, over episodes."""
    return Interval(**mean_interval(one.returns - other.returns))


def verdict(interval: Interval, peer: Played) -> str:
    """How a difference stands to the margin of practical equivalence m: ``ahead`` or ``behind`` where its whole
    interval lies above m or below −m, ``level`` where it lies above −m, else ``undecided``.
    """
    return _standing(interval, float(peer.returns.mean()))


def thrift(one: Played, other: Played) -> tuple[Interval, str]:
    """By how much less money ``one`` took, paired, and how that stands, as in ``verdict``."""
    interval = Interval(**mean_interval(other.money - one.money))
    return interval, _standing(interval, float(other.money.mean()))


def _standing(interval: Interval, size: float) -> str:
    margin = EQUIVALENT * abs(size)
    if interval.low > margin:
        return "ahead"
    if interval.low >= -margin:
        return "level"
    return "behind" if interval.high < -margin else "undecided"


class Line(NamedTuple):
    """One policy in one world; ``least`` is the smallest share of misses that any sampled static has."""

    played: Played
    rule: Played
    static: Played
    punctual: Played | None
    profile: Profile
    least: float

    def row(self) -> dict[str, Any]:
        """Plain numbers by name."""
        played = self.played
        return {
            "policy": played.policy,
            "missed": [one._asdict() for one in missed(played)],
            "least_missed": self.least,
            "cost": float(played.money.mean()),
            "punctual_static": None if self.punctual is None else self.punctual.policy,
            "punctual_cost": None if self.punctual is None else float(self.punctual.money.mean()),
            "changes": float(played.changes.mean()),
            "return": float(played.returns.mean()),
            "less_rule": difference(played, self.rule).as_dict() | {"verdict": self._against(self.rule)},
            "less_static": difference(played, self.static).as_dict() | {"verdict": self._against(self.static)},
            "coverage_inside": coverage(played, self.profile, inside=True)._asdict(),
            "coverage_outside": coverage(played, self.profile, inside=False)._asdict(),
        }

    def _against(self, peer: Played) -> str:
        return "itself" if peer is self.played else verdict(difference(self.played, peer), peer)

    def text(self) -> str:
        """The row for people; ``LEGEND`` says what its columns are."""
        row = self.row()
        late = "; ".join(map(_late, row["missed"]))
        peer = f"({row['punctual_cost']:.4g})" if self.punctual else "(–)"
        figures = f"{row['cost']:8.4g} {peer:8}  {row['changes']:5.1f}  {row['return']:+8.4f}"
        less = "  ".join(_signed(row[name]) for name in ("less_rule", "less_static"))
        coverages = "  ".join(_percents(row[f"coverage_{where}"]) for where in ("inside", "outside"))
        return f"  {self.played.policy:28} {late}  {figures}  {less}  {coverages}"


LEGEND = (
    "policy; targets missed (share of runs or iterations, of what a probability allows; mean miss over all of them); "
    "cost (that of the cheapest sampled static with as few misses); changes a run; return; "
    "return less the plain rule's and less the best static's, paired [95 %]; bands that held, % of iterations/of time, "
    "inside and outside of the range that was measured"
)


def table(played: Sequence[Played], profile: Profile, rule: Played, statics: Sequence[Played]) -> list[Line]:
    """A line for each of ``played``, for the rule and for the best static."""
    best, least = best_static(statics), min(_worst(static) for static in statics)
    return [Line(one, rule, best, as_punctual(one, statics), profile, least) for one in (*played, rule, best)]


def _worst(one: Played) -> float:
    """Share of misses of the metric that is missed most; 0 without targets."""
    return max((part.share for part in missed(one)), default=0.0)


def _signed(result: dict[str, Any]) -> str:
    if result["verdict"] == "itself":
        return f"{'':35}"
    return f"{result['mean']:+.4f} [{result['low']:+.4f}, {result['high']:+.4f}] {result['verdict']:9}"


def _late(one: dict[str, Any]) -> str:
    allowed = "" if one["allowed"] is None else f" of {one['allowed']:.0%}"
    return f"{one['share']:6.1%}{allowed} by {one['by']:7.4g} {one['unit']}"


def _percents(values: dict[str, float]) -> str:
    if np.isnan(values["iterations"]):
        return "  –/–  "
    return f"{100 * values['iterations']:3.0f}/{100 * values['time']:3.0f}"
