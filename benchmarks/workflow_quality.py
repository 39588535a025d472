"""Strategies and learned schedulers on traces: mean bounded slowdown with 95 % intervals, paired by sequence.

    python -m benchmarks.workflow_quality --data ../shared/data/swf [--traces lublin,kth] [--json]
    python -m benchmarks.workflow_quality --data ../shared/data/swf --gate

Lublin-1: the ten published sequences, and 40 of 1,024 jobs between job 1,981 and the end (what is shipped learned from
jobs before; the 40 overlap one another and the ten, as the log is short). KTH-SP2: the whole log, users' estimates,
nothing of it was learned from; and 40 pieces of 700 jobs. SDSC-SP2: 40 pieces of 640 jobs after job 27,000.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from app.kinds.workflow.dispatch import EASY, MECHANISMS, NONE, RLS
from app.kinds.workflow.observation import STATE_WIDTH
from app.kinds.workflow.rules import RULES
from app.kinds.workflow.swf import read_swf
from app.kinds.workflow.trace import Trace
from app.policies.workflow.artifact import SHIPPED, load
from app.policies.workflow.combined import Member, PortfolioPolicy
from app.policies.workflow.members import StrategyPolicy
from workers.learning.workflow.gate import fitted, forked
from workers.learning.workflow.judge import compiled, interval, measured, rule
from workers.learning.workflow.pretrain import LUBLIN_JOBS, SDSC_JOBS
from workers.learning.workflow.sequences import WHOLE, Sequence, Source, drawn, piece
from workers.simulators.workflow.agents import play_agent
from workers.simulators.workflow.pool import opened

TEN = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
MANY = 40
LEARNED = "learned"


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


def cases(data: Path, wanted: list[str]) -> list[Case]:
    """What is played."""
    found = []
    if "lublin" in wanted:
        log = read_swf(data / "lublin_256.swf.gz").trace
        ten, many = [cut(log, start, 1024) for start in TEN], spread(log, LUBLIN_JOBS, 1024)
        for mechanism in (NONE, RLS, EASY):
            for name, part in (("ten published", ten), (f"{MANY} later", many)):
                title = f"Lublin-1, {name}, {MECHANISMS[mechanism]}"
                found.append(Case(title, [Sequence(trace, 256, mechanism) for trace in part]))
    for key, title, processors, first, length in (
        ("kth", "KTH-SP2", 100, 0, 700),
        ("sdsc", "SDSC-SP2", 128, SDSC_JOBS, 640),
    ):
        if key in wanted:
            log = read_swf(data / "pyss-schedules" / f"{title}.EASY.swf.gz", sort=True).trace
            whole = cut(log, first, log.tasks - first)
            found.append(Case(f"{title}, whole from job {first}, easy", [Sequence(whole, processors, EASY)]))
            pieces = [Sequence(part, processors, EASY) for part in spread(log, first, length)]
            found.append(Case(f"{title}, {MANY} pieces, easy", pieces))
    return found


def row(case: Case, agent: Path, names: list[str]) -> dict[str, Any]:
    """Means and intervals of all strategies, and of the best one's excess over the learned scheduler."""
    started = perf_counter()
    found = {name: measured(rule(name), case.sequences) for name in names}
    found[LEARNED] = measured(compiled(load(agent.read_bytes())), case.sequences)
    best = min(names, key=lambda name: float(found[name].mean()))
    return {
        "case": case.name,
        "sequences": len(case.sequences),
        "best": best,
        "slowdown": {name: interval(values) for name, values in found.items()},
        "gain": interval(found[best] - found[LEARNED]),
        "seconds": perf_counter() - started,
    }


def gated(data: Path, agent: Path) -> dict[str, Any]:
    """A portfolio of the learned scheduler and three rules: fitted on what was learned from, played on mixed traces."""
    lublin = read_swf(data / "lublin_256.swf.gz").trace
    sdsc = read_swf(data / "pyss-schedules" / "SDSC-SP2.EASY.swf.gz", sort=True).trace
    sources = [
        Source(piece(lublin, 0, LUBLIN_JOBS), 256, whole=False),
        Source(piece(sdsc, 0, SDSC_JOBS), 128, whole=True),
    ]

    def draw(rng: np.random.Generator) -> list[Sequence]:
        how = ((0, NONE), (0, RLS), (0, EASY), (1, EASY), (1, RLS), (1, NONE))
        return [Sequence(drawn(sources[s], 512, rng), sources[s].processors, m) for s, m in how for _ in range(5)]

    members: list[Member] = [StrategyPolicy({"rule": name}) for name in ("saf", "sjf", "f4")]
    members.insert(0, load(agent.read_bytes()))  # type: ignore[arg-type] # what ships is a scorer
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


def main() -> None:
    """Play, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflow_quality")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--agent", type=Path, default=SHIPPED)
    parser.add_argument("--traces", default="lublin,kth,sdsc")
    parser.add_argument("--strategies", default=",".join(RULES))
    parser.add_argument("--gate", action="store_true", help="fit and play a portfolio instead")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.gate:
        print(json.dumps(gated(asked.data, asked.agent), indent=1))
        return
    names = asked.strategies.split(",")
    rows = []
    for case in cases(asked.data, asked.traces.split(",")):
        rows.append(row(case, asked.agent, names))
        if not asked.json:
            told = ", ".join(f"{name} {value['mean']:.2f}" for name, value in rows[-1]["slowdown"].items())
            gain = "{mean:.2f} ({low:.2f} to {high:.2f})".format(**rows[-1]["gain"])
            print(f"{case.name}: {told}; {rows[-1]['best']} less learned {gain}", flush=True)
    if asked.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
