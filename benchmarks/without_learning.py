"""``steward run --deadline`` without and with ``--learn``: ``python -m benchmarks without_learning`` (some 5 minutes).

A command of 60 iterations that nothing is known of, eight allocations, and the weights of the launcher. Without
``--learn`` two iterations run on the largest allocation, and the rest is governed by the prior. With it, eight
allocations that cover the range are measured for three iterations each, as the launcher chooses them while no model is
ready; the rest of the same run, and the next run from its beginning, are governed by a model of these samples, whose
fit takes no time here. Iterations are alike, or as uneven as the stages of a Spark job. Played by the service's engine
in this process; intervals are over worlds.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from steward_client.launcher.learn.design import filling
from steward_client.launcher.learn.profile import LENGTH
from steward_client.launcher.learn.specification import WEIGHTS
from steward_client.launcher.wishes import Resource

from app.kinds.iterative.report import IterationRunStart
from app.kinds.iterative.spec import SECONDS
from benchmarks.held_out.engine import NOW, Engine
from benchmarks.held_out.planted import Plan, planted
from benchmarks.held_out.play import Advice, Played, Policy, Report, play
from benchmarks.held_out.world import Floats, Profile, World
from workers.evaluation.statistics import mean_interval
from workers.kinds.iterative.grid import Executions

SEEDS, EPISODES = range(7_000, 7_020), 4
PARTS = ("even", "uneven")
ITERATIONS, GOVERNED, MEASURED = 60, 2, 24
UNEVEN = 0.6  # standard deviation of the log of an iteration's length
CPU = Resource("cpu", 4.0, 32.0, 4.0, "")
DEARER = 0.1
Row = dict[str, Any]


def results(parts: Sequence[str] = PARTS) -> list[Row]:
    """Rows for each kind of iterations among ``parts``."""
    return [row for name in parts for row in _rows(name)]


def world(name: str, seed: int) -> World:
    """Return a command whose median run meets the deadline at 12 to 18 of 4 to 32, with a tenth to spare."""
    random = np.random.default_rng((seed, 0))
    length = 20 * np.exp((UNEVEN if name == "uneven" else 0.0) * random.standard_normal(ITERATIONS))
    parallel, units = random.uniform(0.6, 0.95), int(random.integers(12, 19))
    target = 1.1 * float(length.sum()) * (1 - parallel + parallel * 16 / units)
    amounts = {"minimum": CPU.minimum, "maximum": CPU.maximum, "step": CPU.step, "initial": CPU.maximum}
    spec = {
        "resources": [{"name": CPU.name, **amounts, "max_steps": len(CPU.levels) - 1}],  # as a first decision may move
        "metrics": [{"name": SECONDS, "unit": "s", "target": round(target, 1), "scope": "run"}],
        "iterations": ITERATIONS,
        "weights": WEIGHTS,
    }

    def law(i: int, values: Floats, _: Floats) -> Floats:
        return np.asarray(length[i] * (1 - parallel + parallel * 16 / values))

    return planted(f"{name}-{seed}", Plan(spec, law, np.zeros((0, 1))), seed)


class _Taking(Engine):
    """E runs that the service decides from a later iteration on."""

    def take(self, first: int, gone: Floats) -> Advice:
        """Start the runs at iteration ``first``, ``gone`` [E] seconds after their commands."""
        target = self.layout.targets[0]
        left = [{SECONDS: max(float(target - seconds), 1.0)} for seconds in gone]
        starts = [IterationRunStart(workload="world", first_iteration=first, targets=one) for one in left]
        return self._taken([self._engine.begin(self._compiled, "run", start, NOW) for start in starts])


class _Launched:
    """A launcher's run: given allocations first, then decisions by the engines that ``learn`` makes of them."""

    name = "steward run"

    def __init__(self, course: Sequence[float], learn: Callable[[list[Report]], list[_Taking]]) -> None:
        self._course, self._learn, self._reports = course, learn, list[Report]()
        self._engines: list[_Taking] = []

    def begin(self, features: Floats, upcoming: Floats) -> Advice:  # noqa: ARG002 - commands have no features
        """Return the first allocations."""
        self._runs = len(features)
        return Advice(np.full((self._runs, 1), self._course[0]))

    def next(self, report: Report) -> Advice:
        """Return the allocations after a report; the engines take over after the given ones."""
        self._reports.append(report)
        done = report.iteration + 1
        if done < len(self._course):
            return Advice(np.full((self._runs, 1), self._course[done]))
        if done == len(self._course):
            self._engines = self._learn(self._reports)
            gone = np.sum([one.metrics[:, 0] for one in self._reports], axis=0)
            taken = [one.take(done, gone[rows]) for one, rows in self._each()]
        else:
            taken = [
                one.next(Report(report.iteration, *(part[rows] for part in report[1:]))) for one, rows in self._each()
            ]
        return Advice(np.concatenate([one.allocation for one in taken]))

    def _each(self) -> list[tuple[_Taking, slice]]:
        """Return the engines with the runs of each: all, or one."""
        size = self._runs // len(self._engines)
        return [(one, slice(i * size, (i + 1) * size)) for i, one in enumerate(self._engines)]


def _unknown(profile: Profile) -> _Taking:
    return _Taking(Profile(profile.spec, Executions(())), model=b"")


def _learned(profile: Profile, reports: Sequence[Report]) -> list[_Taking]:
    """Return an engine for each run, of a model of what it measured: an execution for each allocation."""
    matches = []
    for run in range(len(reports[0].metrics)):
        rows = np.array([[one.iteration, one.allocation[run, 0], one.metrics[run, 0]] for one in reports])
        parts = [rows[at : at + LENGTH] for at in range(0, len(rows), LENGTH)]
        executions = Executions(tuple((f"measured-{n}", part) for n, part in enumerate(parts)))
        matches.append(_Taking(Profile(profile.spec, executions)))
    return matches


class _Next:
    """The next runs, each decided from its beginning by an engine of its own."""

    name = "the next run"

    def __init__(self, engines: Sequence[_Taking]) -> None:
        self._engines = engines

    def begin(self, features: Floats, upcoming: Floats) -> Advice:
        """Return the first allocations."""
        one = features[:1], upcoming[:1]
        return Advice(np.concatenate([engine.begin(*one).allocation for engine in self._engines]))

    def next(self, report: Report) -> Advice:
        """Return the allocations after a report."""
        runs = [Report(report.iteration, *(part[i : i + 1] for part in report[1:])) for i in range(len(self._engines))]
        taken = [engine.next(run) for engine, run in zip(self._engines, runs, strict=True)]
        return Advice(np.concatenate([one.allocation for one in taken]))


def commands(name: str, seeds: Iterable[int]) -> tuple[list[Played], list[Played], list[Played], list[Played]]:
    """Return what runs in worlds of ``seeds`` came to without ``--learn``, with it, and the next ones of both."""
    course = [one[CPU.name] for one in islice(filling([CPU]), MEASURED // LENGTH) for _ in range(LENGTH)]
    columns: tuple[list[Played], ...] = ([], [], [], [])
    for seed in seeds:
        planted_world, engines = world(name, seed), list[_Taking]()

        def learn(reports: list[Report], engines: list[_Taking] = engines, at: World = planted_world) -> list[_Taking]:
            engines += _learned(at.profile, reports)
            return engines

        def plain(profile: Profile) -> Policy:
            return _Launched([CPU.maximum] * GOVERNED, lambda _: [_unknown(profile)])

        def measuring(_: Profile, learn: Callable[[list[Report]], list[_Taking]] = learn) -> Policy:
            return _Launched(course, learn)

        def following(_: Profile, engines: list[_Taking] = engines) -> Policy:
            return _Next(engines)

        policies: tuple[Callable[[Profile], Policy], ...] = (plain, measuring, plain, following)
        for played, policy, draw in zip(columns, policies, (seed, seed, seed + 1, seed + 1), strict=True):
            played.append(play(planted_world, policy, EPISODES, draw))
    return columns[0], columns[1], columns[2], columns[3]


def _rows(name: str) -> list[Row]:
    without, learning, next_without, learned = commands(name, SEEDS)
    pairs = {"the run that measures included": (without, learning), "the next run": (next_without, learned)}
    return [row for what, (ours, peer) in pairs.items() for row in _compared(f"{name} iterations, {what}", ours, peer)]


def _compared(what: str, ours: Sequence[Played], peer: Sequence[Played]) -> list[Row]:
    money = [np.array([one.money.mean() for one in played]) for played in (ours, peer)]
    late = [np.array([(one.terms[:, 0] > 0).mean() for one in played]) for played in (ours, peer)]
    dearer, later = mean_interval(money[0] / money[1] - 1), mean_interval(late[0] - late[1])
    spread = f"95 % {100 * dearer['low']:+.0f} to {100 * dearer['high']:+.0f} % over {len(SEEDS)} worlds"
    common = {"peer": "--learn"}
    return [
        {
            "name": f"{what}: cost without --learn, {spread}",
            "value": round(float(money[0].mean()), 3),
            "unit": "money",
            "peer_value": round(float(money[1].mean()), 3),
            "ratio": round(float((money[0] / money[1]).mean()), 2),
            "goal": f"ratio <= {1 + DEARER}: {'met' if dearer['mean'] <= DEARER else 'missed'}",
            **common,
        },
        {
            "name": f"{what}: late runs without --learn, 95 % {100 * later['low']:+.0f} to {100 * later['high']:+.0f} "
            "points",
            "value": round(float(late[0].mean()), 3),
            "unit": "share",
            "peer_value": round(float(late[1].mean()), 3),
            "ratio": None,
            "goal": f"no later: {'met' if later['mean'] <= 0 else 'missed'}",
            **common,
        },
    ]


if __name__ == "__main__":
    for row in results():
        print(row)
