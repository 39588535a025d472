"""The number of servers that the rule of kind `inference` keeps on, beside every other way to choose it.

``STEWARD_DATA=… python -m benchmarks inference_servers`` (``inference_servers:azure-8`` runs one part, in about half a
minute). Loads are those of ``inference_agents``, but three of four planted or Twitter's requests are left out; servers
have one core and take 0, 8 or 60 s to start; batches are of one or four. Windows of 180 s don't overlap, begin with one
server, and know the rates before them. What is learned from comes first: a third of Azure's hour, four of Twitter's
seven days, half of the planted loads. Figures are of windows after it, with 95 % intervals of paired differences.

Peers: the horizontal autoscaler, ⌈rate × p90 ÷ target⌉, a fixed number, and earliest deadline first with the
autoscaler's number. Of each, of the rule's numbers, and of a reference that ``knows`` how many requests come in each
quarter of the periods in which the rule judges, at most nine settings are tried, on four windows of what comes first.
Of planted bursts, who knows their ``law`` shows what a better forecast could bring: it is told whether a burst is on,
since when, how long bursts and the time between them last, and how much comes then, but not when the next one begins.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.dynamics import Projector, RuleNumbers, State
from app.kinds.inference.heuristics import BASELINES, Fixed, Utilisation, scale_by_pace, scaling_action
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.scaling import Dispatcher, ExpectedReturn, Lookahead, Scaler, periods
from benchmarks.inference_agents import (
    BEHIND,
    DAY,
    FEW_CORES,
    LOADS,
    SHARE,
    TEST_SEED,
    Load,
    azure,
    believed,
    bursts,
    load,
    planted,
    serving,
    twitter,
)
from benchmarks.inference_peers import Concurrency, EarliestDeadline
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level, mean_interval
from workers.inputs import Conditions
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld

Floats = NDArray[np.float64]
STARTS = (0, 8, 60)
PARTS = tuple(f"{load}-{start}" for load in LOADS for start in STARTS)
WINDOW, MOST, CHOOSING = 180.0, 12, 4
"""Seconds; windows that figures and choices are of, at most."""
BUDGET, KEPT, HALF = 9, 0.25, 0.5
PLANTED, SEEDS = (10_000, 20_000), {"poisson": 2, "bursty": 3}  # seconds at which training and later windows end
PIECES = 4  # of each period, whose requests are known
OWN, TUNED, KNOWS, LAW = "served", "tuned", "knows", "law"
SCENARIOS, LULL, LASTS, LOW, HIGH = 32, 80.0, 20.0, 30.0 * KEPT, 140.0 * KEPT  # of planted bursts, seconds and rates
Row = dict[str, Any]
ALONE: Row = {"peer": None, "peer_value": None, "ratio": None}


class Case(NamedTuple):
    """A load on a system whose servers take some seconds to start."""

    layout: Layout
    model: ServiceModel
    load: Load


class Numbered(ExpectedReturn):
    """The rule with other numbers, and perhaps told what comes.

    Args:
        numbers: natural logarithms of ``RuleNumbers``, [5].
        knows: whether it is told the requests of each period in which it judges.
    """

    def __init__(self, numbers: Sequence[float] = (0.0,) * 5, *, knows: bool = False) -> None:
        self.factors, self.knows = np.exp(np.array(numbers)), knows
        self.name = f"{KNOWS if knows else OWN}_{'_'.join(f'{one:.2g}' for one in self.factors)}"

    def target_servers(self, projector: Projector, state: State) -> NDArray[np.int64]:
        """See ``Scaler``."""
        each = np.broadcast_to(self.factors, (len(state.context), len(self.factors)))
        known = projector if self.knows else projector._replace(rates_ahead=None)
        return super().target_servers(known._replace(numbers=RuleNumbers(*each.T)), state)


class Lawful(Numbered):
    """The rule that is told scenarios of the rate, drawn by the law of planted bursts after the one that is on.

    Args:
        begins: when bursts begin, seconds since the log's begin.
    """

    def __init__(self, begins: Sequence[float]) -> None:
        super().__init__(knows=True)
        self.name, self.begins, self._random = LAW, np.asarray(begins, np.float64), np.random.default_rng(0)

    def rates(self, now: Floats, spans: Sequence[tuple[float, float]]) -> Floats:
        """Scenarios as ``Projector.rates_ahead``, at times ``now`` [B] of the log, P + 1 periods; [B, P + 1, 2, Q]."""
        since = now - self.begins[np.maximum(np.searchsorted(self.begins, now, side="right") - 1, 0)]
        left = np.where(since >= 0, np.maximum(LASTS - since, 0.0), 0.0)
        result = np.array([[self._rates(own, begin, end) for begin, end in spans] for own in left])
        return result[:, :, None] * np.array([SHARE, 1 - SHARE])[:, None]

    def _rates(self, left: float, begin: float, end: float) -> Floats:
        at = begin + (end - begin) * (np.arange(SCENARIOS) + 0.5) / SCENARIOS
        lulls = self._random.exponential(LULL, (SCENARIOS, 2 + int(end / LASTS)))
        after = left + np.cumsum(lulls, axis=1) + LASTS * np.arange(lulls.shape[1])
        on = ((after <= at[:, None]) & (at[:, None] < after + LASTS)).any(axis=1) | (at < left)
        return np.where(on, HIGH, LOW)


class Beside:
    """R scalers, each of which decides in every R-th of B episodes; one dispatcher starts the batches of all."""

    def __init__(self, dispatcher: Dispatcher, scalers: Sequence[Scaler], log: RecordedArrivals) -> None:
        self.dispatcher, self.scalers, self.log, self.name = dispatcher, scalers, log, dispatcher.name
        self._world: InferenceWorld | None = None

    def watch(self, world: InferenceWorld) -> None:
        """Play in ``world`` from now on, which replays the log."""
        self._world = world

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        projector, state, view = scale_by_pace(situation.projector), situation.state, situation.view
        layout = projector.layout
        action = self.dispatcher.start(projector, state, view.mask)
        turns = np.flatnonzero(view.mask[:, 1 + layout.dispatches :].any(axis=1))
        for place, scaler in enumerate(self.scalers):
            rows = turns[turns % len(self.scalers) == place]
            if len(rows):
                known = (projector if isinstance(scaler, ExpectedReturn) else situation.projector).of_runs(rows)
                if getattr(scaler, "knows", False):
                    known = known._replace(rates_ahead=self._told(scaler, layout, rows))
                own = State(*(part[rows] for part in state))
                action[rows] = scaling_action(layout, own, scaler, known, view.mask[rows])
        return Choice(action.astype(np.int64))

    def _told(self, scaler: Scaler, layout: Layout, rows: NDArray[np.int64]) -> Floats:
        """Requests per second as ``Projector.rates_ahead``, [B, P + 1, U, PIECES]."""
        assert self._world is not None  # noqa: S101 - ``watch`` comes first
        origin = self._world.load.origin[rows, None]
        now, cuts = origin + self._world.worlds.clock[rows, :1], np.arange(PIECES + 1) / PIECES
        if isinstance(scaler, Lawful):
            return scaler.rates(now[:, 0], [*periods(layout), (0.0, WINDOW)])
        spans = [(now + begin, end - begin) for begin, end in periods(layout)]
        each = [
            [np.diff(np.searchsorted(own, begin + cuts * lasts)) * PIECES / lasts for own in self.log.times]
            for begin, lasts in (*spans, (origin, WINDOW))
        ]
        return np.array(each).transpose(2, 0, 1, 3)


def results(names: Sequence[str] = PARTS) -> list[Row]:
    """Per part: by how much the rule is ahead of each peer, and what share of the headroom it wins."""
    return [row for name in names for row in rows(name)]


def case(name: str) -> Case:
    """That of a part."""
    named, _, start = name.partition("-")
    known, seconds = serving(Path(os.environ["STEWARD_DATA"]), FEW_CORES)
    servers = tuple(one.model_copy(update={"startup_seconds": float(start)}) for one in known.spec.servers)
    spec = {"episode_seconds": WINDOW, "servers": servers, "batches": (1, 4)}  # fewer, as each decision weighs them all
    layout = Layout(known.spec.model_copy(update=spec))
    seconds = seconds[..., [0, 2]]
    streams = stream(named, Path(os.environ["STEWARD_DATA"]))
    return Case(layout, believed(layout, seconds, streams.train), streams)


def stream(name: str, data: Path) -> Load:
    """What is learned from, and what comes later."""
    if name == "azure":
        times = azure(data)
        first, end = np.random.default_rng(4).random(len(times)) < 0.6, float(times[-1])
        cuts = (0.0, end / 3, end)
        return Load(
            *(
                RecordedArrivals([times[part & own] - a for own in (first, ~first)], 0.0, b - a - WINDOW)
                for a, b in pairwise(cuts)
                for part in [(times >= a) & (times < b)]
            )
        )
    if name == "twitter":
        return load(_thinned(twitter(data), 1), (4 * DAY, 7 * DAY), WINDOW, 1)
    return load(_thinned(planted(name, PLANTED[1], SEEDS[name]), SEEDS[name]), PLANTED, WINDOW, SEEDS[name])


def _thinned(counts: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).binomial(counts, KEPT)


def windows(one: Case, log: RecordedArrivals, most: int) -> RecordedArrivals:
    """A stream in at most so many windows evenly apart, which know the rates before them."""
    control = one.layout.spec.control_seconds
    last = min(float(max(own[-1] for own in log.times)) - WINDOW, log.last)
    several = min(most, int((last - control) // WINDOW) + 1)
    return log.beginning(np.linspace(control, last, several), control)


def returns(one: Case, log: RecordedArrivals, dispatcher: Dispatcher, scalers: Sequence[Scaler]) -> Floats:
    """What each of R scalers earns in each of W windows, [R, W]."""
    assert log.begins is not None  # noqa: S101 - of ``windows``
    count = len(log.begins)
    world = InferenceWorld(one.layout, [one.model], Conditions(count * len(scalers), TEST_SEED), log)
    got = play(world, Level.SEEDS, TEST_SEED, Bare(Beside(dispatcher, scalers, log))).returns
    return got.astype(np.float64).reshape(count, len(scalers)).T


def peers(layout: Layout) -> Mapping[str, tuple[Dispatcher, Sequence[Scaler]]]:
    """Every peer with all that is tried of it."""
    variants = range(len(layout.variants))
    aimed = [Utilisation(target, v) for target in (0.3, 0.5, 0.8) for v in variants]
    counted = [Concurrency(target, v) for target in (0.3, 1.0, 3.0) for v in variants]
    fixed = [Fixed((n,)) for n in range(int(layout.minimum[0]), int(layout.maximum[0]) + 1)]
    return {
        "HPA": (Lookahead(), aimed),
        "rate × p90 ÷ target": (Lookahead(), counted),
        "a fixed number": (Lookahead(), fixed),
        "earliest deadline first + utilisation": (EarliestDeadline(), aimed),
    }


def settings(seed: int = 5) -> Floats:
    """Logarithms of the rule's numbers that are tried, the served first; those of the look-ahead stay, [BUDGET, 5]."""
    drawn = np.random.default_rng(seed).normal(0.0, [0.2, 1.0, 0.3, 0.0, 0.0], (BUDGET, 5))
    drawn[0] = 0.0
    return drawn


def rows(name: str) -> list[Row]:
    """Of one part."""
    one = case(name)
    choosing, later = (windows(one, log, most) for log, most in zip(one.load, (CHOOSING, MOST), strict=True))
    tried = {
        OWN: (Lookahead(), [Numbered()]),
        TUNED: (Lookahead(), [Numbered(list(point)) for point in settings()]),
        KNOWS: (Lookahead(), [Numbered(list(point), knows=True) for point in settings()]),
        **peers(one.layout),
    }
    earned = _earned(one, choosing, tried)
    chosen = {who: (rule, [all_[int(earned[who].mean(axis=1).argmax())]]) for who, (rule, all_) in tried.items()}
    if name.startswith("bursty"):
        begins = bursts(PLANTED[1], np.random.default_rng(SEEDS["bursty"])) - PLANTED[0]
        chosen[LAW] = (Lookahead(), [Lawful(begins.tolist())])
    got = {who: theirs[0] for who, theirs in _earned(one, later, chosen).items()}
    return rates(name, got, {who: scaler.name for who, (_, (scaler,)) in chosen.items()})


def _earned(
    one: Case, log: RecordedArrivals, tried: Mapping[str, tuple[Dispatcher, Sequence[Scaler]]]
) -> dict[str, Floats]:
    """What all settings of each way earn in each window; those that dispatch alike are played at once."""
    values = dict[str, Floats]()
    for name in {rule.name for rule, _ in tried.values()}:
        alike = {who: each for who, (rule, each) in tried.items() if rule.name == name}
        rule = next(rule for rule, _ in tried.values() if rule.name == name)
        together = returns(one, log, rule, [scaler for each in alike.values() for scaler in each])
        cuts = np.cumsum([len(each) for each in alike.values()])[:-1]
        values |= dict(zip(alike, np.split(together, cuts), strict=True))
    return values


def rates(name: str, got: Mapping[str, Floats], settings: Mapping[str, str]) -> list[Row]:
    """Rows of what each way earned in each window."""
    matches, own = [], got[OWN]
    for who, theirs in got.items():
        if who != OWN:
            paired = mean_interval(own - theirs)
            text = (
                f"{name} s to start: {BASELINES[0].name} beside {who} ({settings[who]}; ahead by {paired['mean']:+.4f} "
            )
            text += f"[{paired['low']:+.4f}, {paired['high']:+.4f}], {len(own)} windows)"
            matches.append(_row(text, own.mean(), who, theirs.mean(), ""))
    rivals = {who: theirs.mean() for who, theirs in got.items() if who not in (OWN, TUNED, KNOWS, LAW)}
    best = max(rivals, key=lambda who: rivals[who])
    goal = f"at most {BEHIND:g} behind: {'met' if own.mean() >= rivals[best] - BEHIND else 'missed'}"
    matches.append(_row(f"{name} s to start: the best peer", own.mean(), best, rivals[best], goal))
    room = got[KNOWS].mean() - rivals[best]
    won = (own.mean() - rivals[best]) / room if room > BEHIND else np.nan
    goal = "" if room <= BEHIND else f"≥ 50 %: {'met' if won >= HALF else 'missed'}"
    left = "no headroom" if room <= BEHIND else f"{won:.0%} won"
    text = f"{name} s to start: headroom of knowing the requests over the best peer ({left})"
    matches.append(_row(text, room, "", np.nan, goal) | ALONE)
    if LAW in got:
        room = got[LAW].mean() - rivals[best]
        won = f"{(own.mean() - rivals[best]) / room:.0%} won"
        text = f"{name} s to start: headroom of knowing the bursts' law over the best peer ({won})"
        matches.append(_row(text, room, "", np.nan, "") | ALONE)
    return matches


def _row(name: str, value: float, peer: str, peer_value: float, goal: str) -> Row:
    row = {"name": name, "value": float(value), "unit": "return", "peer": peer, "peer_value": float(peer_value)}
    return {**row, "ratio": float(value / peer_value), "goal": goal}


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("inference_servers", results())
