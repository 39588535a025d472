"""A whole batch log under EASY, on one core, beside a careful loop in plain Python that makes the same schedule.

``python -m benchmarks.workflow_speed``. The log is KTH-SP2 (28,481 jobs) as pyss played it, found under STEWARD_DATA;
both sides take events one by one and are compared job by job, with each other and with pyss.
"""

import gzip
import heapq
import os
import statistics
import time
from bisect import bisect_right, insort
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.dispatch import EASY, Head, Pool, Tasks, decide
from app.kinds.workflow.scheduling.rules import FCFS
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.pool import initial_play, play_rules

GOAL_MS, PROCESSORS, REPEATS, QUEUE = 20.0, 100, 21, 5000
Floats = NDArray[np.float64]


def log() -> tuple[Trace, Floats]:
    """The jobs in order of submission, and when pyss starts them, [N]."""
    path = Path(os.environ["STEWARD_DATA"]) / "swf" / "pyss-schedules" / "KTH-SP2.EASY.swf.gz"
    with gzip.open(path, "rt") as lines:
        rows = np.array([line.split() for line in lines if line.strip() and not line.startswith(";")], np.float64)
    rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
    processors, nobody = rows[:, 4].astype(np.int64), np.full(len(rows), -1)
    trace = independent_jobs(rows[:, 1].copy(), rows[:, 3].copy(), rows[:, 8].copy(), processors, nobody)
    return trace, rows[:, 1] + rows[:, 2]


def results() -> list[dict[str, Any]]:
    """Medians of several repeats, in turn, of processor time."""
    trace, expected = log()
    start, plain = compiled(trace)[0], peer(trace)[0]
    times = [(compiled(trace)[1] * 1e3, peer(trace)[1] * 1e3) for _ in range(REPEATS)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    spread = f"{min(t for t, _ in times):.1f}–{max(t for t, _ in times):.1f} ms over {REPEATS} runs"
    same = f"{(start == expected).mean():.2%} of starts as pyss, {(start == plain).mean():.2%} as the loop"
    row = {"name": f"KTH-SP2 under EASY ({spread}; {same})", "value": ours, "unit": "ms", "peer": "plain Python, ms"}
    row |= {"peer_value": theirs, "ratio": theirs / ours, "goal": f"≤ {GOAL_MS} ms: {_met(ours, GOAL_MS)}"}
    return [row, _decision()]


def _met(value: float, goal: float) -> str:
    return "met" if value <= goal else "missed"


def _decision() -> dict[str, Any]:
    """One decision of the service: a queue of 5,000, as plain code."""
    values = [queue_of(seed) for seed in range(REPEATS)]
    value = statistics.median(values) * 1e3
    row = {"name": f"EASY on a queue of {QUEUE:,}, not compiled (worst {max(values) * 1e3:.1f} ms)", "value": value}
    return row | {"unit": "ms", "peer": None, "peer_value": None, "ratio": None, "goal": f"< 20 ms: {_met(value, 20)}"}


def queue_of(seed: int) -> float:
    """Seconds of processor time for one decision, the longest there is.

    The first task waits for the whole machine, on which 500 run; of the others none may overtake, though all would fit.
    """
    random = np.random.default_rng(seed)
    need, length = random.integers(1, 64, QUEUE), random.uniform(7200, 86400, QUEUE)
    nobody, unlimited = np.full(QUEUE, -1), np.full(1, 1 << 60)
    tasks = Tasks(np.arange(QUEUE, dtype=float), length, need, nobody, np.ones(QUEUE, np.bool_))
    level, processors = np.array([64, 500]), random.integers(1, 64, 500)
    need[0] = 64 + processors.sum()
    ends = np.sort(random.uniform(QUEUE, QUEUE + 3600, 500))
    pool = Pool(level, ends, processors, np.arange(500), unlimited.copy(), unlimited.copy())
    order, fill, chosen = np.arange(QUEUE), np.argsort(length, kind="stable"), np.zeros(QUEUE, np.int64)
    begun = time.process_time()
    decide(EASY, float(QUEUE), Head(-1, np.inf, 0), order, fill, tasks, pool, chosen)
    return time.process_time() - begun


def compiled(trace: Trace) -> tuple[Floats, float]:
    """Starts, and seconds of processor time."""
    play = initial_play(trace, PROCESSORS)
    begun = time.process_time()
    play_rules(play, EASY, FCFS, FCFS)
    return play.start, time.process_time() - begun


def peer(trace: Trace) -> tuple[Floats, float]:
    """Starts, and seconds of processor time, of plain Python over lists."""
    columns = (trace.submit.tolist(), trace.runtime.tolist(), trace.estimate.tolist(), trace.processors.tolist())
    begun = time.process_time()
    start = easy(*columns)
    return np.array(start), time.process_time() - begun


def easy(submit: list[float], runtime: list[float], estimate: list[float], need: list[int]) -> list[float]:
    """EASY with what the language offers: a heap of ends, a sorted list of expected ends, no work that can't help."""
    jobs, start, free, arriving, order = len(submit), [0.0] * len(submit), PROCESSORS, 0, 0
    ends: list[tuple[float, int, int]] = []
    expected: list[tuple[float, int]] = []
    queue: list[int] = []
    gone: set[int] = set()
    while arriving < jobs or ends:
        if arriving < jobs and (not ends or submit[arriving] <= ends[0][0]):
            now, newcomer = submit[arriving], arriving
            queue.append(newcomer)
            arriving += 1
        else:
            now, _, job = heapq.heappop(ends)
            newcomer = -1
            if job in gone:
                gone.remove(job)
            else:
                free += need[job]
                del expected[bisect_right(expected, (start[job] + estimate[job], job)) - 1]
        while expected and expected[0][0] <= now:  # those that end at this second as expected
            job = expected.pop(0)[1]
            free += need[job]
            gone.add(job)
        if not queue or (newcomer >= 0 and need[newcomer] > free):
            continue
        started = _starts(now, free, queue, expected, estimate, need)
        for job in started:
            start[job] = now
            order += 1
            heapq.heappush(ends, (now + runtime[job], order, job))
            insort(expected, (now + estimate[job], job))
            free -= need[job]
        if started:
            taken = set(started)
            queue = [job for job in queue if job not in taken]
    return start


def _starts(
    now: float, free: int, queue: list[int], expected: list[tuple[float, int]], estimate: list[float], need: list[int]
) -> list[int]:
    started: list[int] = []
    for job in queue:
        if need[job] > free:
            break
        free -= need[job]
        started.append(job)
    if len(started) == len(queue) or not free:
        return started
    head, later = queue[len(started)], queue[len(started) + 1 :]
    running = sorted([*expected, *((now + estimate[job], job) for job in started)]) if started else expected
    spare, until = free - need[head], now
    for end, job in running:
        if spare >= 0 and end > until:
            break
        spare, until = spare + need[job], end
    for job in later:
        if need[job] <= free and (now + estimate[job] <= until or need[job] <= spare):
            spare -= 0 if now + estimate[job] <= until else need[job]
            free -= need[job]
            started.append(job)
    return started


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("workflow_speed", results())
