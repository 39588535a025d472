"""Batch queues: predicted run times against the rule of the last two, and simulating ahead against the order alone.

``STEWARD_DATA=… python -m benchmarks.workflow_ahead [PART …]``. Part ``predictor`` plays whole logs under EASY, ordered
by the smallest predicted area: with the regression that is updated at every end, and with the mean of the user's last
two run times (Tsafrir, Etsion and Feitelson 2007). Part ``ahead`` plays windows by the same order with and without
simulating ahead; the quantiles of run times are those of the other logs. Of the windows of a log every other one was
used while the method was built (``--built``); the rest is reported. The same windows by the default strategy, ``sjf``
with backfilling by submission, say whether simulating ahead could take its place. Part ``served`` plays a window over
HTTP. Part ``orders`` chooses the powers of the predicted share and of the processors in the order that simulating
ahead starts from under EASY, each log left out in turn, on whole logs and on longer windows, in the places of those
that the method was built with. Part ``agent`` plays the shipped agent alone. Part ``uncommitted`` plays the default's
order without a committed job. Part ``whole`` plays whole logs, also by the starting order alone. Part ``speed`` times
decisions.
"""

import argparse
import heapq
import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from steward_demos.service import Steward, own_service

from app.kinds.workflow.ahead import MOST, Outlook
from app.kinds.workflow.policies import SHIPPED, Waiting, load
from app.kinds.workflow.queue import MOST_PAST
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS, NONE, UNCOMMITTED
from app.kinds.workflow.scheduling.planning import SHARE_POWER, SIZE_POWER
from app.kinds.workflow.scheduling.rules import FCFS, SAF, SJF
from app.kinds.workflow.trace import Trace
from benchmarks.workflow_generalisation import FILLING, Row, logs, resampled, slowdown
from workers.kinds.workflow.simulator.ahead import SCENARIOS, SHARE_EDGES, TABLE, play_ahead, share_of, simulate_ahead
from workers.kinds.workflow.simulator.pool import (
    ARRIVED,
    ARRIVING,
    DECISIONS,
    QUEUED,
    Play,
    initial_play,
    is_futile,
    next_event,
    play_rules,
    predict_seconds,
    settle,
    without_reference_counts,
)
from workers.kinds.workflow.simulator.simulate import play_agent
from workers.kinds.workflow.simulator.world import kernel
from workers.kinds.workflow.training.sequences import piece

Floats = NDArray[np.float64]
Figure = dict[str, Any]
PARTS = ("speed", "orders", "agent", "uncommitted", "served", "ahead", "whole", "predictor")
POWERS = [(trust, width) for trust in (0.5, 0.75, 1.0) for width in (0.0, 0.25, 0.5, 0.75, 1.0)]
LENGTH, WINDOWS = 800, 2  # jobs of a window, and windows of a row
PIECES = 12
QUANTILES = (np.arange(12) + 0.5) / 12
TAU = 60.0  # seconds; of the tail's bounded slowdown
WHOLE = {"KTH-SP2": 37.0, "SDSC-SP2": 70.0}  # goals for whole logs under EASY
GOALS = {"predictor": 0.88, "ahead": 0.95, "cell": 1.05, "tail": 0.97, "ms": 5.0}
SERVED = 400  # jobs of the window that is played over HTTP


@kernel
def play_predicted(play: Play, mechanism: int, last_two: bool, shares: Floats) -> None:
    """Play by the smallest predicted area first; ``shares`` [L] receives each job's predicted share at submission."""
    state = without_reference_counts(play)
    counts, tasks, history = state.counts, state.tasks, state.regression.history
    while next_event(state, mechanism):
        if counts[ARRIVED]:
            shares[counts[ARRIVING] - 1] = share_of(state, counts[ARRIVING] - 1)
        if counts[QUEUED] == 0 or is_futile(state, mechanism, SAF):
            continue
        line = state.queue[: counts[QUEUED]].copy()
        length = predict_seconds(state, 1.0)
        if last_two:
            for i in range(len(line)):
                own = history[tasks.user[line[i]]]
                length[i] = state.length[line[i]]
                if own[1, 2] > 0.0:
                    length[i] = min(length[i], np.log((np.exp(own[0, 3]) + np.exp(own[1, 3])) / 2.0))
                elif own[0, 2] > 0.0:
                    length[i] = min(length[i], own[0, 3])
        order = line[np.argsort(length + np.log(tasks.processors[line] * 1.0), kind="mergesort")]
        settle(state, mechanism, order, order)


@kernel
def play_powers(play: Play, mechanism: int, trust: float, width: float) -> None:
    """Play by powers of the predicted share of the estimate and of the processors."""
    state = without_reference_counts(play)
    counts, tasks = state.counts, state.tasks
    while next_event(state, mechanism):
        if counts[QUEUED] == 0 or is_futile(state, mechanism, SAF):
            continue
        line = state.queue[: counts[QUEUED]].copy()
        score = predict_seconds(state, trust) + width * np.log(tasks.processors[line] * 1.0)
        order = line[np.argsort(score, kind="mergesort")]
        settle(state, mechanism, order, order)


def orders() -> Iterator[Figure]:
    """Each log that has estimates, by the powers that are best on the others."""
    known, mean, values, left_out = with_estimates(), dict[str, Floats](), dict[str, Floats](), list[float]()
    for name, (trace, machine) in known.items():
        ratios = []
        length = min(2 * LENGTH, trace.tasks // PIECES)
        starts = np.linspace(0, trace.tasks - min(LENGTH, length), PIECES).astype(int)[::2]
        for jobs, filling in (([trace], 0.0), ([piece(trace, int(at), length) for at in starts], FILLING)):
            means = np.zeros(len(POWERS))
            for k, (trust, width) in enumerate(POWERS):
                for one in jobs:
                    play = initial_play(one, machine, predicts=True)
                    play_powers(play, EASY, trust, width)
                    means[k] += slowdown(one, play.start, filling) / len(jobs)
            ratios.append(np.log(means / means[-1]))
            values.setdefault(name, means)
        mean[name] = np.mean(ratios, axis=0)
    for name, means in values.items():
        chosen = int(np.mean([mean[other] for other in known if other != name], axis=0).argmin())
        left_out.append(float(np.log(means[chosen] / means[-1])))
        trust, width = POWERS[chosen]
        text = f"easy, {name}, whole log, powers that the others choose (share {trust:g}, processors {width:g})"
        yield against(text, float(means[chosen]), "predicted area", float(means[-1]), 1.0)
    trust, width = POWERS[int(np.mean(list(mean.values()), axis=0).argmin())]
    text = f"easy, whole logs, left out in turn, geometric mean; all together choose {trust:g} and {width:g}"
    yield against(text, float(np.exp(np.mean(left_out))), "predicted area", 1.0, GOALS["ahead"])


def agent() -> Iterator[Figure]:
    """The shipped agent alone, which was chosen on these logs, in every cell, and its time."""
    policy, ratios, spent, times = load(SHIPPED.read_bytes()), list[float](), 0.0, 200
    for row in rows(built=False):
        for mechanism in (NONE, EASY):
            theirs = [slowdown(w, played(w, row.machine, mechanism)[0]) for w in row.windows]
            ours = [slowdown(w, play_agent(policy, w, row.machine, mechanism, FCFS)) for w in row.windows]
            ratios.append(float(np.log(np.mean(ours) / np.mean(theirs))))
    rng = np.random.default_rng(0)
    for _ in range(times):
        need, length = rng.integers(1, 64, 1_000), rng.uniform(60, 36_000, 1_000)
        waiting = Waiting(1e6, np.sort(rng.uniform(0, 1e6, 1_000)), length, length, -rng.random(1_000), need, 128, EASY)
        begun = time.process_time()
        policy.orders(waiting)
        spent += time.process_time() - begun
    worst, took = float(np.exp(max(ratios))), f"{1e3 * spent / times:.2f} ms a decision on 1,000 waiting jobs"
    name = f"the shipped agent alone, geometric mean of {len(ratios)} cells, worst {worst:.3f}; {took}"
    yield against(name, float(np.exp(np.mean(ratios))), "predicted area", 1.0, 1.0)


@cache
def known_logs() -> dict[str, tuple[Trace, int]]:
    """The shared logs and the processors of their machines."""
    return logs(Path(os.environ["STEWARD_DATA"]) / "swf")


def played(trace: Trace, machine: int, mechanism: int, *, last_two: bool = False) -> tuple[Floats, Floats]:
    """Starts by the predicted area, and predicted shares at submission, [N] each."""
    play = initial_play(trace, machine, predicts=bool(np.isfinite(trace.estimate).any()))
    shares = np.zeros(trace.tasks)
    play_predicted(play, mechanism, last_two, shares)
    return play.start, shares


def with_estimates() -> dict[str, tuple[Trace, int]]:
    """The logs whose jobs have estimates."""
    return {
        name: (trace, machine) for name, (trace, machine) in known_logs().items() if np.isfinite(trace.estimate).all()
    }


@cache
def whole(name: str) -> tuple[Floats, Floats]:
    """``played`` of a whole log under EASY."""
    return played(*with_estimates()[name], EASY)


@cache
def quantiles(name: str) -> Floats:
    """Quantiles of the logarithm of the share of its estimate that a job of a log took, by predicted share."""
    trace = with_estimates()[name][0]
    share = np.log(np.maximum(trace.runtime, 10.0)) - np.log(np.maximum(trace.estimate, 10.0))
    row = np.searchsorted(SHARE_EDGES, whole(name)[1])
    return np.array([np.quantile(share[row == k], QUANTILES) for k in range(len(SHARE_EDGES) + 1)])


def table_of(names: list[str]) -> Floats:
    """Means of ``quantiles`` over logs."""
    return np.mean([quantiles(name) for name in names], axis=0).round(2)


def predictor() -> Iterator[Figure]:
    """Each log as a whole, and the geometric mean."""
    ratios = []
    for name, (trace, machine) in with_estimates().items():
        ours = slowdown(trace, whole(name)[0], 0.0)
        theirs = slowdown(trace, played(trace, machine, EASY, last_two=True)[0], 0.0)
        ratios.append(ours / theirs)
        yield against(f"easy, {name}, whole log, predicted area", ours, "last two run times", theirs, 1.0)
    mean = float(np.exp(np.log(ratios).mean()))
    yield against("easy, whole logs, predicted area, geometric mean", mean, "last two", 1.0, GOALS["predictor"])


def against(name: str, ours: float, peer: str, theirs: float, goal: float) -> Figure:
    """A row with its ratio to the peer's, which should be at most ``goal``."""
    ratio = ours / theirs
    text = f"<= {goal:g} x: {'met' if ratio <= goal else 'missed'}"
    return {
        "name": name, "value": ours, "unit": "slowdown", "peer": peer, "peer_value": theirs, "ratio": ratio,
        "goal": text,
    }  # fmt: skip


def windows(trace: Trace, *, built: bool) -> list[Trace]:
    """Windows of a log that the method was built with, or the others; none of them overlap."""
    length = min(LENGTH, trace.tasks // PIECES)
    starts = np.linspace(0, trace.tasks - length, PIECES).astype(int)
    mine = starts[0 if built else 1 :: 2]
    mine = mine[np.linspace(0, len(mine) - 1, WINDOWS + 2).astype(int)[1:-1]]
    return [piece(trace, int(start), length) for start in mine]


def rows(*, built: bool) -> Iterator[Row]:
    """Every log with users' estimates, where it has them, and with exact run times."""
    for name, (trace, machine) in known_logs().items():
        cut = windows(trace, built=built)
        if np.isfinite(trace.estimate).all():
            yield Row(name, name, exact=False, machine=machine, windows=cut)
        yield Row(
            name, name, exact=True, machine=machine,
            windows=[one._replace(estimate=np.full(one.tasks, np.nan)) for one in cut],
        )  # fmt: skip


def tail(trace: Trace, begun: Floats) -> float:
    """95th percentile of bounded slowdowns with ``TAU``, after a quarter of the window."""
    taken = np.maximum(1.0, (begun - trace.submit + trace.runtime) / np.maximum(trace.runtime, TAU))
    return float(np.quantile(taken[len(taken) // 4 :], 0.95))


def ahead(*, built: bool = False) -> Iterator[Figure]:
    """Each cell of mechanism, log and kind of times; then geometric means with intervals over logs drawn anew."""
    rng, known = np.random.default_rng(0), list(with_estimates())
    ratios: dict[str, list[float]] = {}
    tails, decisions, spent, defaults = [], 0, 0.0, dict[str, float]()
    for row in rows(built=built):
        table = table_of([name for name in known if name != row.log])
        for mechanism in (NONE, EASY):
            ours, theirs = np.zeros(len(row.windows)), np.zeros(len(row.windows))
            for k, window in enumerate(row.windows):
                base = played(window, row.machine, mechanism)[0]
                play = initial_play(window, row.machine, predicts=not row.exact)
                begun = time.process_time()
                play_ahead(play, mechanism, table)
                spent += time.process_time() - begun
                decisions += int(play.counts[DECISIONS])
                ours[k], theirs[k] = slowdown(window, play.start), slowdown(window, base)
                tails.append(np.log(tail(window, play.start) / tail(window, base)))
            low, high = np.quantile(resampled(ours, theirs, rng), (0.025, 0.975))
            times = "exact times" if row.exact else "users' estimates"
            name = f"{MECHANISMS[mechanism]}, {row.name}, {times} [{low:.3f}, {high:.3f}]"
            ratios.setdefault(row.log, []).append(float(np.log(ours.mean() / theirs.mean())))
            yield against(name, float(ours.mean()), "predicted area", float(theirs.mean()), GOALS["cell"])
            sjf = np.mean([slowdown(w, by_sjf(w, row.machine, mechanism)) for w in row.windows])
            defaults[name.partition(" [")[0]] = float(ours.mean() / sjf)
    values = [np.array(each) for each in ratios.values()]
    drawn = [
        np.exp(np.concatenate([values[i] for i in rng.integers(0, len(values), len(values))]).mean())
        for _ in range(2_000)
    ]
    mean, high = float(np.exp(np.concatenate(values).mean())), float(np.quantile(drawn, 0.975))
    name = f"all cells, geometric mean, 95 % below {high:.3f}; {1e3 * spent / decisions:.2f} ms a decision"
    yield against(name, mean, "predicted area", 1.0, GOALS["ahead"])
    yield against(
        "all windows, p95 at 60 s, geometric mean", float(np.exp(np.mean(tails))), "predicted area", 1.0, GOALS["tail"]
    )
    over, worst = np.array(list(defaults.values())), max(defaults, key=lambda cell: defaults[cell])
    name = f"all cells beside the default, geometric mean; worse in {(over > 1).sum()} of {len(over)}"
    yield against(name, float(np.exp(np.log(over).mean())), "sjf", 1.0, GOALS["ahead"])
    yield against(f"the worst cell beside the default: {worst}", defaults[worst], "sjf", 1.0, 1.0)


def by_sjf(trace: Trace, machine: int, mechanism: int) -> Floats:
    """Starts by the default strategy, [N]."""
    play = initial_play(trace, machine)
    play_rules(play, mechanism, SJF, FCFS)
    return play.start


def uncommitted() -> Iterator[Figure]:
    """The default's order with a committed job and without: slowdowns, and the longest wait of any job."""
    means, longest = list[float](), list[float]()
    for row in rows(built=False):
        begun = [[by_sjf(window, row.machine, how) for how in (NONE, UNCOMMITTED)] for window in row.windows]
        mean = [np.mean([slowdown(w, one[k]) for w, one in zip(row.windows, begun, strict=True)]) for k in (0, 1)]
        wait = [max((one[k] - w.submit).max() for w, one in zip(row.windows, begun, strict=True)) for k in (0, 1)]
        means.append(float(np.log(mean[1] / mean[0])))
        longest.append(float(np.log(max(wait[1], 1.0) / max(wait[0], 1.0))))
    price = f"the longest wait {np.exp(np.mean(longest)):.2f} x, at most {np.exp(max(longest)):.1f} x"
    name = f"sjf, uncommitted, geometric mean of {len(means)}, at most {np.exp(max(means)):.2f} x; {price}"
    yield against(name, float(np.exp(np.mean(means))), "none", 1.0, 1.0)


def served() -> Iterator[Figure]:
    """One window over HTTP, every event reported alone, as the simulator plays it."""
    trace, machine = with_estimates()["KTH-SP2"]
    window = windows(trace, built=False)[0]
    window = piece(window, 0, SERVED)
    play = initial_play(window, machine, predicts=True)
    changes = play_ahead(play, EASY, TABLE)
    nodes = [{"name": "pool", "processors": machine, "minimum": 1, "maximum": 1}]
    with own_service() as steward:
        steward.register({"name": "queue", "kind": "workflow", "nodes": nodes, "strategy": "lookahead"})
        trial = [{"id": f"t{i}", "processors": machine, "estimate": 60.0 + i} for i in range(2)]
        text = "starting"
        while "starting" in text:
            text = steward.report(steward.start("queue")["id"], 0, {"now": 0, "queued": trial})["reason"]["text"]
            time.sleep(1.0)
        begun, texts, seconds = live(steward, window)
    same, absent = int((begun == play.start).sum()), sum("not simulated" in text for text in texts)
    moved = sum(f" in {SCENARIOS} scenarios" in text and "as it is" not in text for text in texts)
    name = f"easy, KTH-SP2, {SERVED} jobs over HTTP: {same} start as simulated, {moved} of {changes} changes"
    reported = f"{name}, {absent} decisions without; {1e3 * seconds / len(texts):.0f} ms a report"
    ours, theirs = slowdown(window, begun), slowdown(window, play.start)
    met = "met" if same == SERVED else "missed"
    yield against(reported, ours, "simulated", theirs, 1.0) | {"goal": f"every job starts as simulated: {met}"}


def live(steward: Steward, trace: Trace) -> tuple[Floats, list[str], float]:
    """Starts [N] by a launcher that does what it is answered, texts of the reasons, and seconds of all reports."""
    run, texts, begun = steward.start("queue")["id"], list[str](), np.full(trace.tasks, np.nan)
    events, started = [(float(at), 0, i) for i, at in enumerate(trace.submit)], list[int]()
    took = 0.0
    while events:
        now, ends, i = heapq.heappop(events)
        runs = {k: {"id": f"j{k}", "node": "pool-0", "start": float(begun[k])} for k in started}
        report: Figure = {"now": now, "delta": True}
        if ends:
            report["finished"] = [{"id": f"j{i}", "end": now} | runs.pop(i, {})]
        else:
            user = {"user": f"u{trace.user[i]}"} if trace.user[i] >= 0 else {}
            job = {"id": f"j{i}", "processors": int(trace.processors[i]), "estimate": float(trace.estimate[i])}
            report["queued"] = [job | user | {"submit": now}]
        since = time.perf_counter()
        decision = steward.report(run, len(texts), report | {"running": [*runs.values()]})
        took += time.perf_counter() - since
        texts.append(decision["reason"]["text"])
        started = [int(one["task"][1:]) for one in decision["placements"]]
        for k in started:
            begun[k] = now
            heapq.heappush(events, (now + float(trace.runtime[k]), 1, k))
    return begun, texts, took


def whole_logs() -> Iterator[Figure]:
    """Whole logs under EASY with users' estimates."""
    for name, (trace, machine) in sorted(with_estimates().items(), key=lambda one: one[1][0].tasks):
        play = initial_play(trace, machine, predicts=True)
        play_ahead(play, EASY, table_of([other for other in with_estimates() if other != name]))
        ours, theirs = slowdown(trace, play.start, 0.0), slowdown(trace, whole(name)[0], 0.0)
        goal = f"<= {WHOLE[name]:g}: {'met' if ours <= WHOLE[name] else 'missed'}" if name in WHOLE else None
        row = against(f"easy, {name}, whole log", ours, "predicted area", theirs, GOALS["cell"])
        yield row | ({"goal": goal} if goal else {})
        default = slowdown(trace, by_sjf(trace, machine, EASY), 0.0)
        yield against(f"easy, {name}, whole log, beside the default", ours, "sjf", default, 1.0)
        alone = initial_play(trace, machine, predicts=True)
        play_powers(alone, EASY, SHARE_POWER, SIZE_POWER)
        order = slowdown(trace, alone.start, 0.0)
        yield against(f"easy, {name}, whole log, beside its starting order", ours, "starting order", order, 1.0)


def speed() -> Iterator[Figure]:
    """Processor time of one comparison with the most jobs that a scenario has."""
    spent = []
    for seed in range(21):
        rng = np.random.default_rng(seed)
        count, running = MOST + MOST_PAST, 60
        plan, ends = rng.uniform(600, 36_000, 1_000), np.sort(rng.uniform(60, 20_000, running))
        first = np.concatenate([np.argsort(plan)[:MOST], rng.integers(0, len(plan), MOST_PAST)])
        length = np.log(plan[first])
        outlook = Outlook(
            need=rng.integers(1, 32, count), plan=plan[first], score=length, length=length, share=np.full(count, -1.0),
            processors=rng.integers(1, 8, running), planned=ends, ran=rng.uniform(0, 6_000, running),
            running_length=np.log(ends + 6_000), running_share=np.full(running, -1.0),
            past=np.cumsum(rng.exponential(300, MOST_PAST)), free=24, head=-1, waiting=MOST, mechanism=EASY, seed=seed,
        )  # fmt: skip
        simulate_ahead(outlook) if not seed else None
        begun = time.process_time()
        simulate_ahead(outlook)
        spent.append(1e3 * (time.process_time() - begun))
    value = float(np.median(spent))
    goal = f"<= {GOALS['ms']:g} ms: {'met' if value <= GOALS['ms'] else 'missed'}"
    name = f"simulating ahead with {MOST} waiting and {running} running jobs (worst {max(spent):.1f} ms)"
    yield {"name": name, "value": value, "unit": "ms", "goal": goal}


def results(parts: Sequence[str] = PARTS) -> list[Figure]:
    """Figures of all parts."""
    result = {"predictor": predictor, "ahead": ahead, "whole": whole_logs, "speed": speed}
    result |= {"served": served, "uncommitted": uncommitted, "orders": orders, "agent": agent}
    return [figure for part in parts for figure in result[part]()]


def main() -> None:
    """Print the figures of the named parts as they come."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflow_ahead")
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--built", action="store_true", help="the windows that the method was built with")
    arguments = parser.parse_args()
    for part in arguments.parts:
        for one in ahead(built=arguments.built) if part == "ahead" else results((part,)):
            ratio = f", {one['ratio']:.3f} x {one['peer']} {one['peer_value']:.2f}" if "ratio" in one else ""
            print(f"{one['name']}: {one['value']:.3f} {one['unit']}{ratio}; {one['goal']}", flush=True)


if __name__ == "__main__":
    main()
