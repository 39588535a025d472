"""Rules of kind `cluster` beside published ones: mean completion times, loads, priorities, small exact systems.

``STEWARD_DATA=… python -m benchmarks cluster_agents[:PART]``. 64 GPUs in the published simulator, where jobs choose
their batches; nobody is told what is left of a job, or how fast it will be.

**published**: the four shared workloads, beside Pollux's published completion times. What a job will need, and how fast
its application is, is known from the jobs of the *other three* workloads, played before, and from those of its own that
came before it. In these logs all jobs of an application need equally much, which is more regular than life; the rows
without throughput have no more than that from other jobs. The rule's three constants, too, are chosen without the
workload that is told of: of ``GRID`` those with the least mean completion time on logs drawn hour by hour from the
other three, played by the compiled simulator, in which needs are known.
**half**, **double**: logs of half and twice the load, drawn hour by hour from workloads 3 and 4; what is known is from
workloads 1 and 2. Equal share, FIFO, SRTF, Tiresias and Optimus as published, and SLAQ, at the batches that
were submitted; SRTF and Optimus are told in truth what is left, SLAQ how the validation metric goes on. Goodput's jobs
choose their batches.
**learned**: for each of the four workloads an agent that has learned, by PPO in the compiled simulator, on logs drawn
from the *other three*, once to four times as busy; then it answers on the one that was left out, as it is served, where
as much is known as under **published**, needs and throughput.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import json
import statistics
from collections.abc import Sequence
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.placement import Rule
from app.kinds.cluster.spec import ClusterSpec
from app.kinds.cluster.strategies import (
    USUAL,
    Constants,
    completing,
    equal_share,
    fifo,
    goodput,
    optimus,
    slaq,
    soonest,
    srtf,
    tiresias,
)
from app.policies.base import Published
from benchmarks.cluster_goodput import GOAL, WORKLOADS, interval
from benchmarks.cluster_learned import trained
from tests.pollux.adaptive import AdaptiveSimulator, Experience
from tests.pollux.measured import Application, read_applications
from tests.pollux.simulator import ClusterSimulator, Settings, Submission, draw, read_log
from tests.pollux.tables import LoggedSource, clusters, play, tabled
from workers.evaluation.statistics import mean_interval

LOADS = {"half": 0.5, "double": 2.0}
LEARNED = "learned"
PARTS = ("published", *LOADS, LEARNED)
GRID = ((0.6, 0.7, 0.75, 0.8), (0.7, 0.8, 0.9, 1.0), (300.0, 1000.0, 3000.0))
CHOSEN_ON = 12
DRAWS = {"half": 12, "double": 4}
STEPS, INTERVALS = 300_000, 240
FIXED: tuple[Rule, ...] = (equal_share, fifo, srtf, tiresias, optimus, slaq)
KNOWN, DRAWN = WORKLOADS[:2], WORKLOADS[2:]
Row = dict[str, Any]
LAYOUT = Layout(
    ClusterSpec.model_validate(
        {
            "name": "published",
            "kind": "cluster",
            "nodes": [{"name": "n", "count": 16, "gpus": 4}],
            "episode_intervals": INTERVALS,
            "weights": {"changes": 0},
        }
    )
)


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of each part."""
    known = {"published": _published, LEARNED: _learned}
    known |= {name: partial(_load, name, load) for name, load in LOADS.items()}
    return [row for part in parts for row in known[part]()]


@cache
def _folder() -> Path:
    return Path(os.environ["STEWARD_DATA"]) / "pollux-osdi21"


@cache
def _applications() -> dict[str, Application]:
    return read_applications(_folder() / "traces")


@cache
def _logs() -> dict[str, list[Submission]]:
    return {name: read_log(_folder() / "workloads" / f"{name}.csv") for name in WORKLOADS}


def _published() -> list[Row]:
    golden = json.loads((_folder() / "golden_jct.json").read_text())["pollux"]["jct"]
    rows = []
    constants = {name: chosen([_logs()[other] for other in WORKLOADS if other != name]) for name in WORKLOADS}
    for throughput, reported in ((False, "needs alone"), (True, "needs and throughput")):
        returns = [
            _held_out(name, golden[name], reported, constants[name], throughput=throughput) for name in WORKLOADS
        ]
        ratio = statistics.mean(row["ratio"] for row in returns)
        mean = {"name": f"soonest, {reported}, mean of the ratios", "value": ratio, "unit": "× Pollux", "peer": None}
        rows += [*returns, {**mean, "peer_value": None, "ratio": ratio, "goal": _goal(ratio, GOAL)}]
    return rows


def chosen(logs: Sequence[Sequence[Submission]]) -> Constants:
    """The constants that are best on logs drawn from these."""
    drawn = [draw(logs, 1.0, np.random.default_rng([seed, 5])) for seed in range(CHOSEN_ON)]
    rules = tabled(_applications(), Settings())

    def mean(constants: Constants) -> float:
        played = clusters(drawn, [*_applications()], Settings())
        play(rules._replace(constants=constants), played)
        return float(np.nanmean(played.completed, axis=1).mean())

    return min(itertools.starmap(Constants, itertools.product(*GRID)), key=mean)


def _learned() -> list[Row]:
    """What is learned on three workloads, on the fourth, beside the rule that it began from."""
    golden = json.loads((_folder() / "golden_jct.json").read_text())["pollux"]["jct"]
    rows = []
    for name in WORKLOADS:
        rule = LAYOUT.weighing(_agent(name), 0.0)
        plain = _held_out(name, golden[name], "needs and throughput", throughput=True)
        own = _held_out(name, golden[name], "needs and throughput", throughput=True, agent=rule)
        rows.append(own)
        beside = {"name": f"agent, {name}", "value": own["value"], "unit": "s", "peer": "soonest"}
        ratio = own["value"] / plain["value"]
        rows.append({**beside, "peer_value": plain["value"], "ratio": ratio, "goal": _goal(ratio, 1.0)})
    ratio = statistics.mean(row["ratio"] for row in rows[::2])
    mean = {"name": "agent, mean of the ratios", "value": ratio, "unit": "× Pollux", "peer": None, "peer_value": None}
    return [*rows, {**mean, "ratio": ratio, "goal": _goal(ratio, GOAL)}]


def _agent(left_out: str) -> Published:
    logs = [log for name, log in _logs().items() if name != left_out]
    source = LoggedSource(_applications(), logs, INTERVALS * LAYOUT.spec.interval_seconds)
    return trained(LAYOUT, source, STEPS, WORKLOADS.index(left_out))


def _held_out(
    workload: str,
    published: dict[str, float],
    text: str,
    constants: Constants = USUAL,
    *,
    throughput: bool,
    agent: Rule | None = None,
) -> Row:
    """One workload, by experience of the others."""
    experience, rule = Experience(throughput=throughput), completing([1.0], [np.inf], constants=constants)
    for other in WORKLOADS:
        if other != workload:
            AdaptiveSimulator(_applications(), _logs()[other], rule, experience=experience).run()
    log = _logs()[workload]
    who = "agent" if agent else f"soonest ({', '.join(f'{one:g}' for one in constants)})"
    times = AdaptiveSimulator(_applications(), log, agent or rule, experience=experience).run()
    ours, theirs = (np.array([by_name[job.name] for job in log]) for by_name in (times, published))
    ratio = float(ours.mean() / theirs.mean())
    low, high = interval(ours, theirs)
    return {
        "name": f"{who}, {text}, {workload} (ratio over resampled jobs {low:.3f}–{high:.3f})",
        "value": float(ours.mean()),
        "unit": "s",
        "peer": "Pollux, as published",
        "peer_value": float(theirs.mean()),
        "ratio": ratio,
        "goal": _goal(ratio, GOAL),
    }


def _load(part: str, load: float) -> list[Row]:
    """The served rule beside each published one on logs of a load, by paired differences over logs."""
    names, experience = [rule.__name__ for rule in FIXED], Experience()
    for known in KNOWN:
        AdaptiveSimulator(_applications(), _logs()[known], soonest, experience=experience).run()
    sources, matches = [_logs()[name] for name in DRAWN], []
    for seed in range(DRAWS[part]):
        log = draw(sources, load, np.random.default_rng(seed))
        played: list[ClusterSimulator] = [ClusterSimulator(_applications(), log, rule) for rule in FIXED]
        played += [AdaptiveSimulator(_applications(), log, goodput)]
        played += [AdaptiveSimulator(_applications(), log, soonest, experience=deepcopy(experience))]
        matches.append([statistics.mean(one.run().values()) for one in played])
    *others, own = np.array(matches).T
    return [_beside(part, name, own, other) for name, other in zip([*names, "goodput"], others, strict=True)]


def _beside(part: str, name: str, own: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Row:
    ahead = mean_interval(other - own)
    mean, low = ahead["mean"], ahead["low"]
    return {
        "name": f"soonest, {part} load, {len(own)} logs (ahead by {mean:,.0f} s, at least {low:,.0f})",
        "value": float(own.mean()),
        "unit": "s",
        "peer": name,
        "peer_value": float(other.mean()),
        "ratio": float(own.mean() / other.mean()),
        "goal": f"ahead with 95 %: {'met' if low > 0 else 'missed'}",
    }


def _goal(ratio: float, most: float) -> str:
    return f"≤ {most:g}: {'met' if ratio <= most else 'missed'}"


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("cluster_agents", results())
