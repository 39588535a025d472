"""Schedulers on logs that they were not chosen on: tuned priorities beside the best rule, leaving one log out.

``STEWARD_DATA=… python -m benchmarks.workflow_generalisation [--ship FILE] [MECHANISM …]``, about ten minutes of one
core. Seven logs under no, RLScheduler's and EASY backfilling, with exact run times and, where users gave any, their
estimates. Each is played in windows that do not overlap, the first quarter of which fills machine and queue and is not
counted. Then the whole logs of published learners under EASY, with run-time prediction and without.

For each log everything is chosen without it, by the mean logarithm of slowdowns on the others: the best rule, of all
rules and both orders of overtaking, and the best of a fixed draw of priorities (``drawn``), one for both kinds of
times. Ratios are those of mean bounded slowdowns, with 95 % intervals over windows drawn anew; that of the whole is
over logs drawn anew. NASA's log leaves its machine idle: it is played 1.9 times as fast, too.
"""

import argparse
import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.policies import PriorityPolicy, save
from app.kinds.workflow.scheduling.dispatch import EASY, MECHANISMS
from app.kinds.workflow.scheduling.planning import PREDICTION, SAF
from app.kinds.workflow.scheduling.rules import FCFS, RULES
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.pool import initial_play, play_rules
from workers.kinds.workflow.simulator.simulate import play_agent
from workers.kinds.workflow.training.sequences import piece

Floats = NDArray[np.float64]
Figure = dict[str, Any]
LENGTH, MOST, FEWEST_WINDOWS = 1_600, 8, 6
FILLING = 0.25  # share of a window that is played and not counted
CANDIDATES, SEED, RESAMPLES, SHORTLIST = 160, 20, 2_000, 8
METACENTRUM = 1_531  # processors: the log does not say; the most that it had in use at once
FASTER = 1.9
OVERTAKING = ("fcfs", "sjf")
WORSE, AHEAD = 0.03, 0.9  # goals: by how much a row may be behind, and the geometric mean of all
PEERS = {"KTH-SP2": 45.80, "SDSC-SP2": 65.02}  # predictsim's best learner, average bounded slowdown of the log


class Row(NamedTuple):
    """A log under one kind of times, in windows."""

    log: str
    name: str
    exact: bool
    machine: int
    windows: list[Trace]


def logs(data: Path) -> dict[str, tuple[Trace, int]]:
    """The shared logs and the processors of their machines."""
    with gzip.open(data / "MetaCentrum-wagap-2013-alea.swf.gz", "rt") as log:
        ran = [line for line in log if line.startswith(";") or float(line.split()[3]) > 0]  # two ran for negative times
    schedules = data / "pyss-schedules"
    return {
        "KTH-SP2": (read_swf(schedules / "KTH-SP2.EASY.swf.gz", sort=True).trace, 100),
        "SDSC-SP2": (read_swf(schedules / "SDSC-SP2.EASY.swf.gz", sort=True).trace, 128),
        "Curie": (read_swf(data / "CEA-Curie-sample.swf.gz", sort=True, clip=True).trace, 93_312),
        "HPC2N": (read_swf(data / "HPC2N-alea-cut.swf.gz", sort=True, clip=True).trace, 240),
        "MetaCentrum": (read_swf(ran, sort=True, clip=True).trace, METACENTRUM),
        "NASA": (read_swf(data / "NASA-iPSC-1993-3.1-cln.swf.gz", sort=True).trace, 128),
        "Lublin-1": (read_swf(data / "lublin_256.swf.gz").trace, 256),
    }


def cut(trace: Trace) -> list[Trace]:
    """Windows as far from one another as can be, none of which overlap."""
    length = min(LENGTH, trace.tasks // FEWEST_WINDOWS)
    starts = np.linspace(0, trace.tasks - length, min(MOST, trace.tasks // length)).astype(int)
    return [piece(trace, int(start), length) for start in starts]


def rows(data: Path) -> list[Row]:
    """Every log with exact times, and with estimates where it has them."""
    rows = []
    for name, (trace, machine) in logs(data).items():
        windows = cut(trace)
        exact = [window._replace(estimate=window.runtime) for window in windows]
        rows.append(Row(name, name, exact=True, machine=machine, windows=exact))
        if np.isfinite(trace.estimate).all():
            rows.append(Row(name, name, exact=False, machine=machine, windows=windows))
        if name == "NASA":
            fast = [window._replace(submit=np.floor(window.submit / FASTER)) for window in exact]
            rows.append(Row(name, f"{name} × {FASTER}", exact=True, machine=machine, windows=fast))
    return rows


def drawn(count: int = CANDIDATES, seed: int = SEED) -> Floats:
    """Priorities around the smallest area first, which is the first of them, [count, ``WEIGHTS``]."""
    rng = np.random.default_rng(seed)
    middle = np.array([0.85, 0.15, 0.1, 7.5, 0.2, 0.3, 0.8])
    spread = np.array([0.25, 0.25, 0.15, 1.5, 0.3, 0.4, 0.3])
    result = middle + spread * rng.normal(size=(count, len(middle)))
    result[:, 2] = np.maximum(result[:, 2], 0.0)
    result[:, 6] = np.clip(result[:, 6], 0.0, 1.2)
    result[0] = SAF
    return result


def slowdown(window: Trace, begun: Floats, filling: float = FILLING) -> float:
    """Mean bounded slowdown after the window has filled."""
    taken = np.maximum(1.0, (begun - window.submit + window.runtime) / np.maximum(window.runtime, 10.0))
    return float(taken[int(filling * len(taken)) :].mean())


def by_rule(row: Row, mechanism: int, rule: int, fill: int) -> Floats:
    """Mean bounded slowdown of each window under a rule, [W]."""
    matches = []
    for window in row.windows:
        play = initial_play(window, row.machine)
        play_rules(play, mechanism, rule, fill)
        matches.append(slowdown(window, play.start))
    return np.array(matches)


def by_priority(row: Row, mechanism: int, weights: Floats) -> Floats:
    """The same under a priority of the family."""
    policy = PriorityPolicy(np.tile(weights, (3, 1)))
    plain = [window._replace(estimate=np.full(window.tasks, np.nan)) if row.exact else window for window in row.windows]
    return np.array([slowdown(w, play_agent(policy, w, row.machine, mechanism, FCFS)) for w in plain])


def chosen(means: Floats, mask: NDArray[np.bool_]) -> int:
    """The candidate of least mean logarithm on the rows that are kept; ``means`` is [candidates, rows]."""
    return int(np.argmin(np.log(means[:, mask]).mean(axis=1)))


def resampled(ours: Floats, theirs: Floats, rng: np.random.Generator) -> Floats:
    """Ratio of means under windows drawn anew, [``RESAMPLES``]."""
    which = rng.integers(0, len(ours), (RESAMPLES, len(ours)))
    ratios: Floats = ours[which].mean(axis=1) / theirs[which].mean(axis=1)
    return ratios


class Compared(NamedTuple):
    """A row's outcome: who was chosen without its log, and the windows under both."""

    row: Row
    rule: str
    candidate: int
    ours: Floats
    theirs: Floats


class Outcome(NamedTuple):
    """All rows under a mechanism, and the mean logarithm of each candidate's slowdowns on all of them."""

    rows: list[Compared]
    means: Floats

    def without(self, log: str) -> int:
        """The candidate that was chosen without a log."""
        return next(one.candidate for one in self.rows if one.row.log == log)


def compared(table: list[Row], mechanism: int) -> Outcome:
    """Every row, with rule and priority chosen on the rows of other logs."""
    peers = [(rule, fill) for rule in range(len(RULES)) for fill in ((0, 1) if mechanism else (0,))]
    theirs = [[by_rule(row, mechanism, *peer) for row in table] for peer in peers]
    ours = [[by_priority(row, mechanism, weights) for row in table] for weights in drawn()]
    rule_means = np.array([[values.mean() for values in line] for line in theirs])
    own_means = np.array([[values.mean() for values in line] for line in ours])
    exact, matches = np.array([row.exact for row in table]), []
    for i, row in enumerate(table):
        others = np.array([other.log != row.log for other in table])
        peer, own = chosen(rule_means, others & (exact == row.exact)), chosen(own_means, others)
        name = f"{RULES[peers[peer][0]]}, {OVERTAKING[peers[peer][1]]}"
        matches.append(Compared(row, name, own, ours[own][i], theirs[peer][i]))
    return Outcome(matches, np.log(own_means).mean(axis=1))


def figures_of(results: list[Compared], mechanism: int) -> list[Figure]:
    """Each log and kind of times, with the interval of its ratio."""
    rng, matches = np.random.default_rng(0), []
    for one in results:
        low, high = np.quantile(resampled(one.ours, one.theirs, rng), (0.025, 0.975))
        times = "exact times" if one.row.exact else "users' estimates"
        value, peer = float(one.ours.mean()), float(one.theirs.mean())
        matches.append(
            {
                "name": f"{MECHANISMS[mechanism]}, {one.row.name}, {times}: {value / peer:.3f} [{low:.3f}, {high:.3f}]",
                "value": value,
                "unit": "slowdown",
                "peer": one.rule,
                "peer_value": peer,
                "ratio": value / peer,
                "goal": f"<= {1 + WORSE:g} x, with 95 %: {'met' if high <= 1 + WORSE else 'missed'}",
            }
        )
    return matches


def whole(name: str, figures: list[Figure], table: list[Row]) -> Figure:
    """Geometric mean of the ratios of ``figures``, in the order of ``table``, and its interval over logs drawn anew."""
    ratios = np.log([figure["ratio"] for figure in figures]).reshape(-1, len(table))
    logs_of = np.array([row.log for row in table])
    rng, by_log = np.random.default_rng(1), [ratios[:, logs_of == log].ravel() for log in dict.fromkeys(logs_of)]
    anew = [
        np.concatenate([by_log[i] for i in rng.integers(0, len(by_log), len(by_log))]).mean() for _ in range(RESAMPLES)
    ]
    low, high = np.exp(np.quantile(anew, (0.025, 0.975)))
    value = float(np.exp(ratios.mean()))
    return {
        "name": f"{name}, geometric mean of {ratios.size}: {value:.3f} [{low:.3f}, {high:.3f}]",
        "value": value,
        "unit": "x the best rule's slowdown",
        "goal": f"<= {AHEAD:g}: {'met' if high <= AHEAD else 'missed by its interval' if value <= AHEAD else 'missed'}",
    }


def shipped(data: Path, outcome: Outcome, mechanism: int) -> Floats:
    """The best on all rows; under EASY, of the first ``SHORTLIST``, that on rows and whole logs together.

    Without backfilling whole logs drown, and with a committed head they nearly do.
    """
    first = np.argsort(outcome.means)[: SHORTLIST if mechanism == EASY else 1]
    if len(first) == 1:
        values: Floats = drawn()[first[0]]
        return values
    scores = [float(outcome.means[i]) for i in first]
    known = logs(data)
    for name, (trace, machine) in known.items():
        jobs = trace._replace(submit=np.floor(trace.submit / FASTER)) if name == "NASA" else trace
        for place, i in enumerate(first):
            begun = play_agent(PriorityPolicy(np.tile(drawn()[i], (3, 1))), jobs, machine, mechanism, FCFS)
            scores[place] += np.log(slowdown(jobs, begun, 0.0)) / len(known)
    best: Floats = drawn()[first[int(np.argmin(scores))]]
    return best


def published(data: Path, outcome: Outcome) -> list[Figure]:
    """Whole logs under EASY with users' estimates, beside the best learner of Gaussier et al. 2015."""
    figures: list[Figure] = []
    for name, (trace, machine) in logs(data).items():
        if name not in PEERS:
            continue
        weights = drawn()[outcome.without(name)]
        believed = weights.copy()
        believed[PREDICTION] = 0.0
        for told_as, one in (("with run-time prediction", weights), ("without", believed)):
            begun = play_agent(PriorityPolicy(np.tile(one, (3, 1))), trace, machine, EASY, FCFS)
            value = float(slowdown(trace, begun, 0.0))
            figures.append(
                {
                    "name": f"easy, {name}, whole log, {told_as}",
                    "value": value,
                    "unit": "slowdown",
                    "peer": "best published learner",
                    "peer_value": PEERS[name],
                    "ratio": value / PEERS[name],
                    "goal": f"< 1 x: {'met' if value < PEERS[name] else 'missed'}",
                }
            )
    return figures


def results(names: Sequence[str] = MECHANISMS[:3], ship: Path | None = None) -> list[Figure]:
    """Every log under the mechanisms that are named; what is best on all logs is written to ``ship`` as an agent."""
    data = Path(os.environ["STEWARD_DATA"]) / "swf"
    table, figures, ratios = rows(data), [], []
    weights = np.tile(np.array(SAF), (3, 1))
    for mechanism in map(MECHANISMS.index, names):
        outcome = compared(table, mechanism)
        result = figures_of(outcome.rows, mechanism)
        ratios += result
        figures += [*result, whole(MECHANISMS[mechanism], result, table)]
        if mechanism == EASY:
            figures += published(data, outcome)
        if ship:
            weights[mechanism] = shipped(data, outcome, mechanism)
    if ship:
        ship.write_bytes(save(PriorityPolicy(weights)))
    return [*figures, whole("all", ratios, table)]


def main() -> None:
    """Print the figures of every mechanism that is named, or of all three."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflow_generalisation")
    parser.add_argument("mechanisms", nargs="*", choices=[*MECHANISMS[:3], []], default=[])
    parser.add_argument("--ship", type=Path, help="write what is best on all logs as an agent")
    arguments = parser.parse_args()
    for figure in results(arguments.mechanisms or MECHANISMS[:3], arguments.ship):
        peer = f"; {figure['peer']} {figure['peer_value']:.2f}" if "peer" in figure else ""
        print(f"{figure['name']} ({figure['value']:.2f}{peer}); {figure['goal']}")


if __name__ == "__main__":
    main()
