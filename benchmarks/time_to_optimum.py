"""How soon PPO is within 5 % of the exact optimum, ours beside stable-baselines3's: like for like.

``STEWARD_DATA=… taskset -c 0 python -m benchmarks time_to_optimum`` (``time_to_optimum:PROBLEM`` for one problem).
Seconds of processor time on one core, median of seven seeds, until the greedy policy's mean return over 2,048 fresh
episodes is within 5 % of the exact optimum's. Building counts, evaluation does not. Both see the same observations and
masks, are paid in expectation (`ExpectedSimulator`), have two 64-64 networks, and are looked at after every rollout
with which another ``LOOK`` steps, and 2 % of all steps, are done.
Both are set by the same ``TRIALS``: each runs with ``TUNING_SEEDS`` on a problem that is not reported on, and that of
the least geometric mean is chosen.
A learner that does not get there is counted at its limit, so that its ratio is a bound.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import itertools
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.layout import Layout
from app.policies.network import NetworkPolicy
from benchmarks.problems import Problem, alone
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import solve
from workers.kinds.iterative.simulator import ExpectedSimulator, describe_simulator
from workers.learning.algorithms.config import PPO, DeviceConfig, Entropy
from workers.learning.execution import Plan, make_executor

CHOSEN = ("ellis-kmeans", "pollux-bert", "pollux-yolov3", "pollux-ncf")
TUNED_ON, TUNING_SEEDS, TUNING_SECONDS, TUNING_EPISODES = "planted-1", (100, 101), 3.0, 512
WITHIN, EPISODES, SEEDS = 0.05, 2_048, 7
ENTROPY = 0.01
LOOK = 2_560  # least number of environment steps between two looks
APART = 1.02  # least ratio of the steps at two looks, so that looking does not take longest where nobody gets there
LIMIT_SECONDS, LIMIT_STEPS = 20.0, 10_000_000
GOAL = 5.0
PARTS = CHOSEN
Row = dict[str, Any]


class Settings(NamedTuple):
    """What is tried: learning rate, environments, slabs of a rollout, minibatches of a pass over it, and passes."""

    rate: float
    environments: int
    rollout: int
    minibatches: int
    epochs: int

    @property
    def steps(self) -> int:
        """Environment steps of a rollout."""
        return self.environments * self.rollout


TRIALS = [Settings(*match) for match in itertools.product((1e-3, 3e-3, 1e-2), (128, 512), (5, 10), (5,), (1, 2, 4))]


class Bar:
    """A problem, and whether a policy is within 5 % of its optimum; who is not there by the limit is stopped."""

    def __init__(self, chosen: Problem, limit: float = LIMIT_SECONDS, episodes: int = EPISODES) -> None:
        self.problem, self.limit = chosen, limit
        self.evaluator = Evaluator(chosen.spec, chosen.table, 77, episodes)
        self.optimum = self.mean(solve(self.evaluator.layout, self.evaluator.table).policy)

    def mean(self, policy: Any) -> float:
        """Its mean return."""
        return float(self.evaluator.score(policy).returns.mean())

    def reached(self, policy: Any) -> bool:
        """Whether it is near enough."""
        return self.mean(policy) >= self.optimum - WITHIN * abs(self.optimum)


Timed = Callable[[Bar, Settings, int], float]


def results(names: list[str] | None = None) -> list[Row]:
    """Per problem: ours beside the peer's, both with the settings that were the soonest on another problem."""
    return [compared(Bar(alone(name)), {learner: tuned(learner) for learner in LEARNERS}) for name in names or PARTS]


@cache
def tuned(learner: Timed) -> Settings:
    """The settings with which a learner is the soonest on a problem and with seeds that are not reported on."""
    bar = Bar(alone(TUNED_ON), TUNING_SECONDS, TUNING_EPISODES)

    def score(settings: Settings) -> float:
        learners = [learner(bar, settings, seed) for seed in TUNING_SEEDS]
        print(learner.__name__, settings, " ".join(f"{each:.2f}" for each in learners), flush=True)
        return statistics.geometric_mean(learners)

    learner(bar, TRIALS[0], 0)  # what is imported at first use is not counted
    return min(TRIALS, key=score)


def compared(bar: Bar, chosen: dict[Timed, Settings]) -> Row:
    """The figures of one problem."""
    ours, theirs = ([learner(bar, chosen[learner], seed) for seed in range(SEEDS)] for learner in (our_time, peer_time))
    value, peer_value = statistics.median(ours), statistics.median(theirs)
    ratio = peer_value / value
    return {
        "name": f"{bar.problem.name}: PPO {seconds(ours)}, {chosen[our_time]}",
        "value": value,
        "unit": "s",
        "peer": f"stable-baselines3 PPO {seconds(theirs)}, {chosen[peer_time]}",
        "peer_value": peer_value,
        "ratio": ratio,
        "goal": f"≥ {GOAL:g} × sooner: {'met' if ratio >= GOAL else 'missed'}",
    }


def seconds(times: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(times):.2f} s [{min(times):.2f}, {max(times):.2f}]"


def our_time(bar: Bar, settings: Settings, seed: int) -> float:
    """Seconds of processor time until our learner is there, or its limit."""
    config = msgspec.structs.replace(
        PPO,
        rollout=settings.rollout,
        batch=settings.steps // settings.minibatches,
        epochs=settings.epochs,
        entropy=Entropy(start=ENTROPY, end=ENTROPY),
        optimiser=msgspec.structs.replace(PPO.optimiser, rate=settings.rate, hold=1.0),
        average=0.0,
        place=DeviceConfig(device="cpu"),
    )
    start = time.process_time()
    simulator = describe_simulator(bar.problem.spec, bar.problem.table, settings.environments, seed, expected=True)
    learner = make_executor("serial", config, simulator, Plan(LIMIT_STEPS, look(settings)), seed, time.process_time)
    spent, due = time.process_time() - start, 0.0
    while spent < bar.limit and not learner.done:
        start = time.process_time()
        learner.advance()
        spent += time.process_time() - start
        if learner.steps < due:
            continue
        due = learner.steps * APART
        _, policy, arrays = learner.agent.export()
        if bar.reached(NetworkPolicy.build({"algorithm": "ppo", **policy}, dict(arrays))):
            return spent
    return bar.limit


def look(settings: Settings) -> int:
    """The environment steps between two looks: whole rollouts."""
    return -(-LOOK // settings.steps) * settings.steps


def peer_time(bar: Bar, settings: Settings, seed: int) -> float:
    """Seconds of processor time until the peer is there, or its limit."""
    import stable_baselines3
    import torch

    from benchmarks.peer_environment import MaskedPolicy, PeerEnvironment, Unmasked

    torch.set_num_threads(1)
    layout = Layout(bar.problem.spec)
    start = time.process_time()
    simulator = ExpectedSimulator(layout, bar.problem.table, settings.environments, seed)
    extractor = {"features_extractor_class": Unmasked, "features_extractor_kwargs": {"actions": len(layout.deltas)}}
    peer = stable_baselines3.PPO(
        MaskedPolicy,
        PeerEnvironment(simulator, masks=True),
        learning_rate=settings.rate,
        n_steps=settings.rollout,
        batch_size=settings.steps // settings.minibatches,
        n_epochs=settings.epochs,
        gamma=1.0,
        ent_coef=ENTROPY,
        policy_kwargs={"net_arch": [64, 64], "activation_fn": torch.nn.ReLU, **extractor},
        seed=seed,
    )
    spent, due = time.process_time() - start, 0.0
    while spent < bar.limit and peer.num_timesteps < LIMIT_STEPS:
        start = time.process_time()
        peer.learn(look(settings), reset_num_timesteps=False)
        spent += time.process_time() - start
        if peer.num_timesteps < due:
            continue
        due = peer.num_timesteps * APART
        if bar.reached(PeerPolicy(peer)):
            return spent
    return bar.limit


LEARNERS: tuple[Timed, ...] = (our_time, peer_time)


class PeerPolicy:
    """The peer as one of our policies: its likeliest legal action."""

    name = "stable-baselines3"

    def __init__(self, model: Any) -> None:
        self.model = model

    def act(self, situation: Situation) -> Choice:
        """The best of the masked logits."""
        import torch

        observation, mask = situation.view.observation, situation.view.mask
        shown = np.concatenate([observation, mask], axis=1, dtype=np.float32)
        with torch.no_grad():
            logits = self.model.policy.get_distribution(torch.from_numpy(shown)).distribution.logits
        return Choice(np.where(mask, logits.numpy(), -np.inf).argmax(axis=1))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("time to optimum", results(sys.argv[1:] or None))
