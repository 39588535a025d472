"""Workflows on nodes of several speeds: the agent's makespan beside HEFT's, a genetic algorithm's and a lower bound.

``STEWARD_DATA=… python -m benchmarks workflow_dags``. The shared WfInstances, planned with their true run times, one
processor per node. The agent's rules were chosen on generated workflows, and its search was tuned on those of the
applications ``TUNED`` alone: the others are reported, and generated workflows of other seeds. Nodes: speeds 0.5, 1, 1,
2, again and again (or all 1), links of 125 MB/s with the files' own sizes (``recorded``), or links on which data take
so many times as long as work on the average (``ratio 1``), as in Coleman and Krishnamachari's comparisons. The genetic
algorithm has the processor time that the agent took, its rules' plans to begin with, and its evaluator. Part
``parametric``: the 72 list schedulers of ``parametric_plans`` on the same workflows; part ``adversarial``: small
workflows on which others are worst beside the best of the 72. Intervals: 95 %, by Student's t over the instances'
logarithms.

*The agent* is the one of simulations (``steward simulate --strategy agent``): data travel as soon as they exist, as in
the published schedulers' model. *What is served* is what a live run of an agent follows: a plan of
``workers.kinds.workflow.plan_search``, or HEFT's starts where no plan is 1 % shorter; data travel when a task starts,
and the task holds its node meanwhile. The 72 that stand beside it place tasks by the same transfers. That run times and
data come true is assumed; ``workflow_live`` plays whole runs.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.plans import Remaining
from app.kinds.workflow.queue import Nodes, nodes_of
from app.kinds.workflow.scheduling.placement import Floats
from app.kinds.workflow.scheduling.planning import Problem, length, problem_of, rules
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import Trace
from benchmarks.genetic_plans import genetic
from benchmarks.parametric_plans import ALL, HEFT, parametric, shortest, worst
from tests.workers.kinds.workflow.generated import generated
from workers.kinds.workflow.plan_search import search_plan
from workers.kinds.workflow.simulator.annealing import SearchObjective, agent, bound, plan, rest
from workers.kinds.workflow.simulator.dag import agent_plan, follow_plan, plan_and_follow
from workers.kinds.workflow.simulator.simulate import Schedule, figures

SPEEDS = {"mixed": (0.5, 1.0, 1.0, 2.0), "equal": (1.0,)}
SETTINGS = (("mixed", None), ("mixed", 0.5), ("mixed", 1.0), ("mixed", 2.0), ("mixed", 5.0), ("equal", 1.0))
SIZES = (8, 16)
TUNED = ("1000genome", "bacass", "bwa", "cycles", "hic", "montage", "scrnaseq", "soykb")
GENERATED, FIRST_SEED = 40, 7_000  # workflows; no rule or search was chosen on these seeds
GIGABIT = 125.0  # megabytes per second
GOAL = 0.95  # times HEFT's, where data weigh at least as much as work
HALF_WAY = 0.5  # from HEFT to the lower bound, elsewhere
STEPS = 5  # aims between HEFT's plan and the cheapest one
MORE = 1.05  # times the cheapest plan's cost
MORE_THAN = 0.01  # by which a list scheduler's plan must be shorter to count
PARTS = ("makespans", "front", "parametric", "adversarial")
Row = dict[str, Any]


class Ratio(NamedTuple):
    """A geometric mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.4f} [{self.low:.4f}, {self.high:.4f}]"


def instances() -> list[Trace]:
    """The shared workflows of the applications that nothing was tuned on."""
    folder = Path(os.environ.get("STEWARD_DATA", "")) / "wfinstances"
    paths = [path for path in sorted(folder.glob("*/*.json.gz")) if path.parent.name != "helloworld"]
    if not paths:
        sys.exit("STEWARD_DATA does not name a folder with wfinstances/*/*.json.gz")
    return [alone(read_wfformat(path).trace) for path in paths if path.name.split("-")[0] not in TUNED]


def alone(trace: Trace) -> Trace:
    """With the run times and transfers alone: tasks take one processor, and any memory."""
    return trace._replace(processors=np.ones(trace.tasks, np.int64), memory=np.full(trace.tasks, np.nan))


def nodes(trace: Trace, speeds: tuple[float, ...], ratio: float | None, count: int) -> Nodes:
    """So many nodes that run all the time, with links on which data and work have this ``ratio``."""
    speed = np.resize(np.array(speeds), count)
    data, work = np.nan_to_num(trace.data).mean() / 1e6, trace.runtime.mean() / speed.mean()
    megabytes = GIGABIT if ratio is None or data == 0 else data / (ratio * work)
    return nodes_of(tuple(machine(f"n{i}", s, megabytes, rented=False) for i, s in enumerate(speed)))


def machine(name: str, speed: float, megabytes: float, rented: bool) -> NodeType:
    """A node of one processor; twice the speed costs 2.5 times as much."""
    return NodeType(
        name=name,
        processors=1,
        speed=speed,
        price_per_hour=2.5 ** np.log2(speed) if rented else 0.0,
        billing_seconds=60.0 if rented else 1.0,
        startup_seconds=60.0 if rented else 0.0,
        minimum=0 if rented else 1,
        maximum=1,
        bandwidth_mbps=megabytes,
    )


def over(mine: Floats, theirs: Floats) -> Ratio:
    """Geometric mean of ``mine / theirs``, [W] each."""
    logs = np.log(mine / theirs)
    half = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return Ratio(*np.exp([logs.mean(), logs.mean() - half, logs.mean() + half]))


class Raced(NamedTuple):
    """One workflow in one setting, seconds; ``cost``: of processor time, for the agent's plan."""

    heft: float
    bound: float
    longest: float
    rules: float
    genetic: float
    agent: float
    cost: float


def raced(problem: Problem, number: int) -> Raced:
    """HEFT's makespan, lower bounds, the best rule's, and what the genetic algorithm and the agent reach."""
    begun = process_time()
    reached = length(agent(problem, np.random.default_rng(number)))
    cost = process_time() - begun
    tried = [length(plan(problem, rule)) for rule in rules(problem)]
    other = genetic(problem, np.random.default_rng(number), cost)
    return Raced(tried[0], bound(problem), simple_bound(problem), min(tried), other, reached, cost)


def simple_bound(problem: Problem) -> float:
    """The longest way on the quickest nodes, or all work on all nodes at once."""
    work = problem.work
    rates = (work.cost.min(axis=1)[:, None] / np.where(work.cost > 0, work.cost, 1.0)).max(axis=0)
    least = work.cost.min(axis=1)
    longest = float((rest(problem) + least).max())
    return max(longest, float(least.sum() / rates.sum()))


def makespan_rows(traces: list[Trace]) -> list[Row]:
    """One row for each setting and number of nodes, of what the agent reaches over HEFT."""
    rows = []
    for kind, ratio in SETTINGS:
        for count in SIZES:
            all_raced = [raced(problem_of(t, nodes(t, SPEEDS[kind], ratio, count)), k) for k, t in enumerate(traces)]
            link = "recorded" if ratio is None else f"ratio {ratio:g}"
            rows.append(_row(f"{kind} speeds, {link}, {count} nodes", all_raced, heavy=(ratio or 0.0) >= 1))
    result = [generated(np.random.default_rng(FIRST_SEED + k), 15 + 6 * k) for k in range(GENERATED)]
    rows.append(_row(f"{GENERATED} generated workflows", [raced(g, k) for k, g in enumerate(result)], heavy=False))
    return rows


def _row(name: str, all_raced: list[Raced], *, heavy: bool) -> Row:
    times = np.array(all_raced).T
    own, peer, bounded, simple, best = (over(times[k], times[0]) for k in (5, 4, 1, 2, 3))
    against = over(times[5], times[4])
    way = np.log(own.mean) / np.log(bounded.mean) if bounded.mean < 1 else 1.0
    goal = f"≤ {GOAL:g} x HEFT" if heavy else f"≥ {HALF_WAY:.0%} of the way to the bound"
    met = own.mean <= GOAL if heavy else way >= HALF_WAY
    text = (
        f"{name}: {own}; rules {best.mean:.3f}, genetic {peer.mean:.3f}, agent over genetic {against}; bound "
        f"{bounded.mean:.3f} (simple {simple.mean:.3f}), {way:.0%} of the way; "
        f"{times[6].mean():.2f} s a plan, at most {times[6].max():.2f}"
    )
    print(text, file=sys.stderr, flush=True)
    return {
        "name": text,
        "value": own.mean,
        "unit": "x HEFT",
        "peer": "genetic algorithm",
        "peer_value": peer.mean,
        "ratio": own.mean / peer.mean,
        "goal": f"{goal}: {'met' if met else 'missed'}",
    }


def served(problem: Problem, number: int = 0) -> float:
    """Seconds of what a live run follows: the searched plan, or HEFT's starts where none is 1 % shorter."""
    sequence, fleet, work = problem.graph.sequence, problem.fleet, problem.work
    left = Remaining(
        parent_start=problem.graph.parent_start, parents=problem.graph.parents, data=work.data, cost=work.cost,
        processors=work.processors, end=np.zeros(0), node=np.full(len(sequence), -1), order=sequence,
        slots=fleet.processors, available=fleet.available, pace=fleet.pace,
    )  # fmt: skip
    return float(search_plan(left, number).end.max())


def parametric_rows(traces: list[Trace]) -> list[Row]:
    """What is served, and the agent of simulations, over the best of the 72 on each workflow, in every setting."""
    rows = []
    for kind, ratio in SETTINGS:
        for count in SIZES:
            problems = [problem_of(t, nodes(t, SPEEDS[kind], ratio, count)) for t in traces]
            live = np.array([[length(plan) for plan in parametric(one, fetched=True)] for one in problems])
            best, heft, fixed = live.min(axis=1), live[:, ALL.index(HEFT)], int(np.log(live).mean(axis=0).argmin())
            own = np.array([served(one, k) for k, one in enumerate(problems)])
            simulated = np.array([length(agent(one, np.random.default_rng(k))) for k, one in enumerate(problems)])
            link = "recorded" if ratio is None else f"ratio {ratio:g}"
            ahead, beaten = over(own, best), int((best < own * (1 - MORE_THAN)).sum())
            text = (
                f"{kind} speeds, {link}, {count} nodes, 72 list schedulers: served over the best of them {ahead}, "
                f"behind by more than {MORE_THAN:.0%} in {beaten} of {len(own)}; best of them over HEFT "
                f"{over(best, heft).mean:.3f}; the one that is best on all ({ALL[fixed]}) over HEFT "
                f"{over(live[:, fixed], heft).mean:.3f}; in simulations the agent over the best of them "
                f"{over(simulated, np.array([shortest(one) for one in problems]))}"
            )
            print(text, file=sys.stderr, flush=True)
            rows.append(_yardstick(text, ahead.mean, "best of 72", f"<= {1 + MORE_THAN:g} x", ahead.mean))
    return rows


def _yardstick(text: str, value: float, peer: str, goal: str, ratio: float) -> Row:
    met = "met" if ratio <= 1 + MORE_THAN else "missed"
    return {"name": text, "value": value, "unit": "x", "peer": peer, "peer_value": 1.0, "ratio": ratio,
            "goal": f"{goal}: {met}"}  # fmt: skip


def adversarial_rows() -> list[Row]:
    """Small workflows on which HEFT, the agent, and what is served, are worst beside the best of the 72."""
    live, rows = partial(shortest, fetched=True), list[Row]()
    for name, makespan, least_of, starts, steps in (
        ("HEFT", lambda one: length(parametric(one, [HEFT])[0]), shortest, 5, 1_000),
        (
            "the first rules of the search",
            lambda one: min(length(plan(one, rule)) for rule in rules(one)),
            shortest,
            5,
            300,
        ),
        ("the agent in simulations", lambda one: length(agent(one, np.random.default_rng(0))), shortest, 3, 200),
        ("what is served", served, live, 3, 200),
    ):
        ratios = [worst(makespan, np.random.default_rng(FIRST_SEED + k), steps, least_of) for k in range(starts)]
        most, problem = max(ratios, key=lambda one: one[0])
        tasks, count = problem.work.cost.shape
        text = (
            f"adversarial workflows, {name}: {starts} searches of {steps} steps; the worst has {tasks} tasks, {count} "
            f"nodes (others {', '.join(f'{ratio:.2f}' for ratio, _ in ratios)})"
        )
        print(text, most, file=sys.stderr, flush=True)
        rows.append(_yardstick(text, most, "best of 72", f"<= {1 + MORE_THAN:g} x", most))
    return rows


def front(trace: Trace, number: int) -> Floats:
    """Seconds and money of HEFT's plan, the cheapest-node plan, and the agent's for every aim: [3 + STEPS, 2].

    Aims lie between the two plans, and at the cheapest one's with a little more money.
    """
    types = tuple(machine(f"n{i}", s, GIGABIT, rented=True) for i, s in enumerate(np.resize(SPEEDS["mixed"], 8)))
    on = nodes_of(types)

    def measure(schedule: Schedule) -> tuple[float, float]:
        worth = figures(trace, on, schedule)
        return worth.makespan, worth.cost

    both = np.array([measure(plan_and_follow(trace, on, name)) for name in ("heft", "cheapest")])
    shares = np.linspace(0, 1, STEPS)[:, None]
    wanted = np.exp((1 - shares) * np.log(both[0]) + shares * np.log(both[1]))
    wanted = np.concatenate((wanted, both[1:] * [1.0, MORE]))
    plans = [agent_plan(trace, on, SearchObjective(1 / seconds, 1 / money), seed=number) for seconds, money in wanted]
    return np.concatenate((both, [measure(follow_plan(trace, on, plan)) for plan in plans]))


def front_rows(traces: list[Trace]) -> list[Row]:
    """How often the agent's plans are neither slower nor dearer than a peer's, and better at one; by how much."""
    reported = np.array([front(trace, k) for k, trace in enumerate(traces)])  # [W, 3 + STEPS, 2]
    rows = []
    for peer, name in enumerate(("HEFT", "cheapest first")):
        theirs, mine = reported[:, peer], reported[:, 2:]
        faster = least(mine, theirs, by=0, limit=1, more=1.0)
        cheaper = least(mine, theirs, by=1, limit=0, more=1.0)
        little = least(mine, theirs, by=0, limit=1, more=MORE)
        no_worse = np.all(mine <= theirs[:, None] * (1 + 1e-9), axis=2)
        better = no_worse & np.any(mine < theirs[:, None] * (1 - 1e-9), axis=2)
        beaten = np.all(theirs[:, None] <= mine, axis=2) & np.any(theirs[:, None] < mine * (1 - 1e-9), axis=2)
        text = f"cost no slower {cheaper}, time no dearer {faster}, time for 5 % more {little}"
        rows.append(
            {
                "name": f"front, 8 rented nodes: plans of the agent's dominate {name}'s; {text}",
                "value": float(np.mean(np.any(better, axis=1))),
                "unit": "of instances",
                "peer": f"{name} dominates all",
                "peer_value": float(np.mean(np.all(beaten, axis=1))),
                "ratio": None,
                "goal": f"never worse: {'met' if np.all(np.any(no_worse, axis=1)) else 'missed'}",
            }
        )
        print(rows[-1]["name"], rows[-1]["value"], rows[-1]["goal"], file=sys.stderr, flush=True)
    return rows


def least(mine: Floats, theirs: Floats, by: int, limit: int, more: float) -> Ratio:
    """The least of column ``by`` of plans [W, K, 2] that keep to ``more`` times theirs in the other, over theirs."""
    fits = mine[:, :, limit] <= theirs[:, None, limit] * more * (1 + 1e-9)
    best = np.where(fits, mine[:, :, by], theirs[:, None, by]).min(axis=1)
    return over(best, theirs[:, by])


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """The rows of all parts."""
    traces = instances()
    raced(problem_of(traces[0], nodes(traces[0], SPEEDS["mixed"], 1.0, 8)), 0)  # compiles
    result = {"makespans": makespan_rows, "front": front_rows, "parametric": parametric_rows}
    return [row for part in parts for row in (adversarial_rows() if part == "adversarial" else result[part](traces))]


if __name__ == "__main__":
    for line in results():
        print(line["name"], line["goal"])
