"""Strategies and learned schedulers on traces: mean bounded slowdown with 95 % intervals, paired by sequence.

``STEWARD_DATA=… python -m benchmarks workflow_quality``. Lublin-1: the ten published sequences, and 40 of 1,024 jobs
between job 1,981 and the end (what is shipped learned from jobs before; the 40 overlap one another and the ten, for the
log is short, so their intervals are too narrow). KTH-SP2: the whole log with users' estimates, and 40 pieces of 700
jobs; SDSC-SP2: the same after job 27,000. What ships was searched for and chosen without them; but the base strategy
that it adds to had been settled with a look at KTH-SP2 and the ten. The portfolio is fitted on what was learned from,
and played on others.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies.artifact import SHIPPED, load
from app.kinds.workflow.policies.combined import Member, PortfolioPolicy
from app.kinds.workflow.policies.members import StrategyPolicy
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, RLS
from app.kinds.workflow.scheduling.observation import STATE_WIDTH
from app.kinds.workflow.scheduling.rules import RULES
from app.kinds.workflow.trace import Trace
from workers.evaluation.statistics import mean_interval as interval
from workers.kinds.workflow.simulator.agents import play_agent
from workers.kinds.workflow.simulator.pool import opened
from workers.kinds.workflow.training.gate import fitted, forked
from workers.kinds.workflow.training.judge import compiled, measured, rule
from workers.kinds.workflow.training.pretrain import LUBLIN_JOBS, SDSC_JOBS
from workers.kinds.workflow.training.sequences import WHOLE, Sequence, Source, drawn, piece

TEN = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
MANY, FORKED = 40, 12
GOALS = (("Lublin-1, ten published, none", 232.5), ("Lublin-1, ten published, rls", 48.3), ("KTH-SP2, whole", 45.80))
Row = dict[str, Any]


class Case(NamedTuple):
    """A row of the table: sequences under a mechanism."""

    name: str
    sequences: list[Sequence]


def cut(trace: Trace, first: int, length: int) -> Trace:
    """Jobs at the times of their log: F1 to F4 look at the clock."""
    return piece(trace, first, length)._replace(submit=trace.submit[first : first + length])


def spread(trace: Trace, first: int, length: int) -> list[Trace]:
    """40 pieces between ``first`` and the end, as far from one another as can be."""
    starts = np.linspace(first, trace.tasks - length, MANY).astype(int)
    return [cut(trace, int(start), length) for start in starts]


def cases(data: Path) -> list[Case]:
    """What is played."""
    log = read_swf(data / "lublin_256.swf.gz").trace
    ten, many = [cut(log, start, 1024) for start in TEN], spread(log, LUBLIN_JOBS, 1024)
    found = [
        Case(f"Lublin-1, {name}, {MECHANISMS[mechanism]}", [Sequence(trace, 256, mechanism) for trace in part])
        for mechanism in (NONE, RLS, EASY)
        for name, part in (("ten published", ten), (f"{MANY} later", many))
    ]
    for title, processors, first, length in (("KTH-SP2", 100, 0, 700), ("SDSC-SP2", 128, SDSC_JOBS, 640)):
        log = read_swf(data / "pyss-schedules" / f"{title}.EASY.swf.gz", sort=True).trace
        whole = cut(log, first, log.tasks - first)
        found.append(Case(f"{title}, whole from job {first}, easy", [Sequence(whole, processors, EASY)]))
        pieces = [Sequence(part, processors, EASY) for part in spread(log, first, length)]
        found.append(Case(f"{title}, {MANY} pieces, easy", pieces))
    return found


def gated(data: Path) -> dict[str, Any]:
    """A portfolio of the learned scheduler and the rules that did best on what was learned from.

    Its gate is fitted on that; it plays mixed traces that nothing was learned from.
    """
    lublin = read_swf(data / "lublin_256.swf.gz").trace
    sdsc = read_swf(data / "pyss-schedules" / "SDSC-SP2.EASY.swf.gz", sort=True).trace
    sources = [
        Source(piece(lublin, 0, LUBLIN_JOBS), 256, whole=False),
        Source(piece(sdsc, 0, SDSC_JOBS), 128, whole=True),
    ]

    def draw(rng: np.random.Generator) -> list[Sequence]:
        how = ((0, NONE), (0, RLS), (0, EASY), (1, EASY), (1, RLS), (1, NONE))
        return [Sequence(drawn(sources[s], 512, rng), sources[s].processors, m) for s, m in how for _ in range(FORKED)]

    members: list[Member] = [StrategyPolicy({"rule": name}) for name in ("saf", "sjf", "f2", "f3")]
    members.insert(0, load(SHIPPED.read_bytes()))  # type: ignore[arg-type] # what ships is a scorer
    nothing = np.zeros(len(members))
    ungated = PortfolioPolicy(tuple(members), np.zeros((len(members), STATE_WIDTH)), nothing)
    forks = [forked(draw(np.random.default_rng(seed)), compiled(ungated)) for seed in (0, 1)]
    gate = fitted(*forks)
    portfolio = compiled(PortfolioPolicy(tuple(members), gate.weights, gate.margin))
    held_out = [
        Sequence(part, processors, mechanism)
        for log, processors, first in ((lublin, 256, LUBLIN_JOBS), (sdsc, 128, SDSC_JOBS))
        for part in spread(log, first, 640)[::2]
        for mechanism in (NONE, RLS, EASY)
    ]
    alone = {member.name: measured(compiled(member), held_out) for member in members}
    best = min(alone, key=lambda name: float(alone[name].mean()))
    found, asked = measured(portfolio, held_out), np.zeros(len(members) + 1)
    for sequence in held_out:
        play, member = opened(sequence.trace, sequence.processors), np.full(sequence.trace.tasks, -1, np.int64)
        asked += play_agent(play, portfolio, sequence.mechanism, sequence.fill, sequence.processors, WHOLE, member)
    return {
        "sequences": len(held_out),
        "calibration": gate.calibration,
        "asked": dict(zip(alone, (asked[:-1] / asked[:-1].sum()).tolist(), strict=True)),
        "alone": {name: interval(values) for name, values in alone.items()},
        "portfolio": interval(found),
        "best": best,
        "gain": interval(alone[best] - found),
        "log_ratio": interval(np.log(alone[best] / found)),
    }


def results() -> list[Row]:
    """Every strategy on every trace, and the portfolio."""
    folder = os.environ.get("STEWARD_DATA")
    if not folder:
        return []  # the logs are no part of the project
    data = Path(folder) / "swf"
    return [found for case in cases(data) for found in rows(case)] + portfolio_rows(gated(data))


def rows(case: Case) -> list[Row]:
    """A case's rules, and the learned scheduler beside the best of them."""
    found = {name: measured(rule(name), case.sequences) for name in RULES}
    best = min(found, key=lambda name: float(found[name].mean()))
    learned = measured(compiled(load(SHIPPED.read_bytes())), case.sequences)
    told = [
        _row(f"{case.name}: {name} {spread_of(values)}", values, best, found[best]) for name, values in found.items()
    ]
    ahead = f"ahead of the best rule by {spread_of(found[best] - learned)}"
    return [*told, {**_row(f"{case.name}: learned, {ahead}", learned, best, found[best]), "goal": _goal(case, learned)}]


def _goal(case: Case, learned: NDArray[np.float64]) -> str | None:
    limit = next((limit for name, limit in GOALS if case.name.startswith(name)), None)
    return None if limit is None else f"< {limit:g}: {'met' if learned.mean() < limit else 'missed'}"


def _row(name: str, values: NDArray[np.float64], peer: str, theirs: NDArray[np.float64]) -> Row:
    return {
        "name": name,
        "value": float(values.mean()),
        "unit": "slowdown",
        "peer": peer,
        "peer_value": float(theirs.mean()),
        "ratio": float(values.mean() / theirs.mean()),
        "goal": None,
    }


def spread_of(values: NDArray[np.float64]) -> str:
    """Mean and 95 % interval; one log has none."""
    told = interval(values)
    return f"{told['mean']:.2f} [{told['low']:.2f}, {told['high']:.2f}]" if len(values) > 1 else f"{told['mean']:.2f}"


def portfolio_rows(told: dict[str, Any]) -> list[Row]:
    """The portfolio beside its best member on mixed traces."""
    asked = ", ".join(f"{name} {100 * share:.1f} %" for name, share in told["asked"].items())
    gain, best = told["gain"], told["alone"][told["best"]]["mean"]
    ahead = f"ahead by {gain['mean']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}]"
    return [
        {
            "name": f"portfolio on {told['sequences']} mixed sequences, {ahead}; asked: {asked}",
            "value": told["portfolio"]["mean"],
            "unit": "slowdown",
            "peer": f"its best member, {told['best']}",
            "peer_value": best,
            "ratio": told["portfolio"]["mean"] / best,
            "goal": f"not worse by more than the noise: {'met' if gain['high'] >= 0 else 'missed'}",
        }
    ]


if __name__ == "__main__":
    for found in results():
        print(f"{found['name']:100} {found['value']:9.2f} {found['goal'] or ''}")
