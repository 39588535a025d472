"""Learners on small systems of kind `inference`, beside the exact optimum.

``python -m benchmarks inference_small`` (``inference_small:crowded-vtrace`` and so on runs and records one algorithm on
one system): one server, two users, two variants, queues of up to 8: the optimum by semi-Markov policy iteration. Told
first (parts ``…-rules``): what the best static and the best rule leave of it, for where that is nothing, a high score
means nothing; and how many decisions must be counted ahead, exactly, by value iteration from nothing, before the choice
that is best by them stays within ``GOAL`` of the optimum.

Ten seeds of each algorithm, alone: no contest, no validation. Settings of algorithms were chosen on ``balanced``, the
rule that shows learners what waiting requests are worth looking at ``uneven``, too. How far ahead learners look was
chosen on ``balanced`` and the three systems after it, drawn at random, after the choices that PPO got wrong on
``uneven`` had been seen: the accurate variant, where queues would soon overflow. Recorded are the others.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy
from app.kinds.inference.heuristics import BASELINES, statics
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from app.policies.artifact import SHARED
from workers.evaluation.arena import Bare, play
from workers.evaluation.statistics import Level
from workers.inputs import Conditions
from workers.kinds.inference.evaluation.optimum import System, solve
from workers.kinds.inference.kind import KIND
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.learning.execution.serial import Plan, Serial
from workers.learning.simulator import with_standardisation
from workers.learning.training.request import COMPETING, Request, config_for

ENVIRONMENTS, EPISODES, TEST_SEED, SEEDS = 512, 256, 2_027, 10
GOAL, GOAL_SERVED = 0.03, 0.01
SYSTEMS = {
    "balanced": (0.75, 1.6, 1.4),
    "strained": (0.66, 2.2, 0.9),
    "reversed": (0.76, 0.7, 3.0),
    "lopsided": (0.78, 2.5, 0.4),
    "crowded": (0.6, 2.2, 2.2),
    "uneven": (0.85, 2.4, 0.7),
}
RECORDED = ("crowded", "uneven")
RULES = "rules"
STEPS = {
    "vtrace": 500_000,
    "a2c": 500_000,
    "ppo": 500_000,
    "dqn": 250_000,
    "double_dqn": 250_000,
    "dueling_dqn": 250_000,
    "dueling_double_dqn": 250_000,
    "tabular_q": 2_000_000,
}
"""Steps that are learned from; a3c learns here as a2c does."""
PARTS = tuple(f"{system}-{part}" for system in RECORDED for part in (RULES, *STEPS))
PLAYED, AHEAD = 300, 400  # decisions of an episode; and the most that are counted ahead
Floats = NDArray[np.float64]
Row = dict[str, Any]


def trained(
    make: Callable[[], InferenceWorld], name: str, steps: int, seed: int, entries: tuple[int, ...] = ()
) -> Policy:
    """What an algorithm learns in a world of learners; ``entries``: by which a table is cut."""
    config = config_for(name, Request(name, steps), entries, continuing=KIND.continuing)
    config, world = with_standardisation(config, make(), seed), make()
    runner = Serial(config, world, Plan(steps, 1 << 17), seed)
    while not runner.done:
        runner.advance()
    kind, described, arrays = runner.agent.export()
    policy: Policy = SHARED[kind].build({"algorithm": name, **described}, dict(arrays))
    return policy


def planted(share: float, first: float, second: float) -> tuple[Layout, ServiceModel]:
    """A system whose fast variant is worth ``share``; users' requests come ``first`` and ``second`` times a second."""
    quality = {"full_until": 300, "zero_at": 600}
    spec = {
        "name": "small",
        "kind": "inference",
        "variants": [{"name": "fast", "accuracy": share}, {"name": "accurate", "accuracy": 1.0}],
        "servers": [{"name": "cpu", "maximum": 1, "switch_seconds": 0.1}],
        "users": [{"name": "a", "weight": 3, "quality": quality}, {"name": "b", "quality": quality}],
        "batches": [1, 2, 4],
        "queue_limit": 8,
        "episode_seconds": 300,
        "weights": {"cost": 0, "fairness": 0, "switching": 0.05},
    }
    layout = Layout(InferenceSpec.model_validate(spec))
    log = np.log([[[0.3, 0.42, 0.65], [0.7, 1.05, 1.8]]])
    rate, measured = np.array([[first], [second]]), np.ones((1, 2), np.bool_)
    return layout, ServiceModel(log[None], np.full(2, 0.2), rate, np.zeros(2), measured)


class Judged(NamedTuple):
    """A system, and what its optimum returns in each test episode."""

    name: str
    layout: Layout
    model: ServiceModel
    best: Floats

    @classmethod
    def of(cls, name: str) -> "Judged":
        """The system of this name."""
        layout, model = planted(*SYSTEMS[name])
        result = cls(name, layout, model, np.zeros(0))
        return result._replace(best=result.returns(solve(layout, model).policy(layout)))

    def returns(self, policy: Policy) -> Floats:
        """What a policy returns in each test episode."""
        world = InferenceWorld(self.layout, [self.model], Conditions(EPISODES, TEST_SEED))
        return play(world, Level.SEEDS, TEST_SEED, Bare(policy)).returns.astype(np.float64)

    def gap(self, policy: Policy) -> float:
        """How much more it loses than the optimum does, as a share of that."""
        return float((self.best.mean() - self.returns(policy).mean()) / abs(self.best.mean()))


def rules(judged: Judged) -> list[Row]:
    """What is left by who learns nothing, and how far one has to look ahead."""
    every = {"best static": list(statics(judged.layout).values()), "best rule": list(BASELINES)}
    rows = []
    for title, policies in every.items():
        best = min(policies, key=judged.gap)
        rows.append(_row(f"{judged.name}: gap of the {title} ({best.name})", judged.gap(best), ""))
    ahead = foresight(judged.layout, judged.model)
    text = f"{judged.name}: decisions that must be counted ahead to choose within {GOAL:.0%} of the optimum"
    return [*rows, _row(text, ahead, "", "decisions")]


class Decided(NamedTuple):
    """What decisions lead to, by state and action: loss and seconds [S, N], chances of states then [S, N, S]."""

    loss: Floats
    seconds: Floats
    chance: Floats
    begin: Floats

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel) -> "Decided":
        """Of a system whose episodes begin with the first request."""
        states = System(layout, model)
        shape = len(states.states), layout.actions
        result = cls(np.full(shape, np.inf), np.zeros(shape), np.zeros((*shape, shape[0])), np.zeros(shape[0]))
        for row, state in enumerate(states.states):
            for one in states.outcomes(state):
                result.loss[row, one.action], result.seconds[row, one.action] = one.loss, one.seconds
                result.chance[row, one.action] = one.chance
        first = [states.place[1, 0, states.variants], states.place[0, 1, states.variants]]
        result.begin[first] = states.rate / states.rate.sum()
        return result

    def lost(self, choice: NDArray[np.integer]) -> float:
        """Loss per second over an episode's decisions, of an action for each state."""
        rows, at, total = np.arange(len(choice)), self.begin, np.zeros(2)
        for _ in range(PLAYED):
            total += at @ np.stack([self.loss[rows, choice], self.seconds[rows, choice]], axis=1)
            at = at @ self.chance[rows, choice]
        return float(total[0] / total[1])


def foresight(layout: Layout, model: ServiceModel) -> int:
    """After how many rounds of value iteration from nothing the greedy policy stays within ``GOAL`` of the optimum."""
    optimum, decided = solve(layout, model), Decided.of(layout, model)
    most = (1 + GOAL) * decided.lost(optimum.values.argmin(axis=1))
    value, last = np.zeros(len(decided.loss)), 0
    for ahead in range(1, AHEAD + 1):
        result = decided.loss - optimum.loss * decided.seconds + decided.chance @ value
        value = result.min(axis=1)
        last = ahead if decided.lost(result.argmin(axis=1)) > most else last
    return last + 1


def learner(judged: Judged, name: str, steps: int, seeds: int) -> Row:
    """Gaps to the optimum of what an algorithm learns with each seed."""
    entries, gaps = (0, 1, judged.layout.entries.index("loaded.fast")), []
    for seed in range(seeds):
        conditions = Conditions(ENVIRONMENTS, seed, "learning")
        function = partial(InferenceWorld, judged.layout, [judged.model], conditions)
        gaps.append(judged.gap(trained(function, name, steps, seed, entries)))
    spread = f"{min(gaps):.3f} to {max(gaps):.3f}, {seeds} seeds, {steps:,} steps"
    aim = GOAL_SERVED if name in COMPETING else GOAL
    goal = f"≤ {aim:.0%} in all: {'met' if max(gaps) <= aim else 'missed'}"
    return _row(f"{judged.name}: gap of {name} ({spread})", float(np.mean(gaps)), goal)


def _row(name: str, value: float, goal: str, unit: str = "") -> Row:
    print(name, f"{value:.4f}", goal, flush=True)
    return {"name": name, "value": value, "unit": unit, "peer": None, "peer_value": None, "ratio": None, "goal": goal}


def results(parts: Sequence[str] = PARTS, seeds: int = SEEDS) -> list[Row]:
    """Rows of each part: a system's name, and ``rules`` or an algorithm."""
    results = []
    for system, part in (one.split("-", 1) for one in parts):
        judged = Judged.of(system)
        results += rules(judged) if part == RULES else [learner(judged, part, STEPS[part], seeds)]
    return results


def main() -> None:
    """Run what is asked for, of any system, and record nothing."""
    parser = argparse.ArgumentParser(description="Learners on small systems, beside the exact optimum.")
    parser.add_argument("parts", nargs="*", default=list(PARTS), help="such as balanced-vtrace")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    wanted = parser.parse_args()
    results(wanted.parts, wanted.seeds)


if __name__ == "__main__":
    main()
