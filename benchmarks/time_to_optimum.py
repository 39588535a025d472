"""How soon a learner is within 5 % of the exact optimum, beside stable-baselines3, on four shared problems.

``STEWARD_DATA=… taskset -c 0 python -m benchmarks.time_to_optimum [PROBLEM …]``. Seconds of processor time on one core,
median of ten seeds, until the greedy policy's mean return over 2,048 fresh episodes is within 5 % of the exact
optimum's. What a learner needs before its first step (building, compiling) counts; evaluation does not. Everybody is
paid in expectation (`ExpectedSimulator`) on the same simulator with fixed targets, and sees the same observation, the
model's projections included.

Our PPO is set
for an early start (`QUICK`, the best of 24 settings on two of these problems); the peers have the settings below, the
best of ten (PPO) and five (DQN) on a planted problem. Both peers are tried with three seeds, and the better one goes on
to ten. A learner that does not get there is counted at its limit, so that its
ratio is a bound; once most of its seeds have not, the rest is not tried, for the median is known.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.layout import Layout
from app.policies.network import NetworkPolicy
from benchmarks.problems import Problem, problem
from workers.kinds.iterative.evaluation.judge import Evaluator
from workers.kinds.iterative.evaluation.optimum import solve
from workers.kinds.iterative.expected import ExpectedSimulator
from workers.kinds.iterative.simulator import described
from workers.learning.algorithms.config import Config, DeviceConfig, named
from workers.learning.algorithms.config.policy import PPO
from workers.learning.execution import Plan, make_executor

CHOSEN = ("ellis-kmeans", "ellis-logisticregression", "pollux-bert", "pollux-yolov3")
WITHIN, EPISODES, SEEDS, TRIED = 0.05, 2_048, 10, 3
LIMIT_SECONDS = 30.0
GOAL = 10.0

QUICK = msgspec.structs.replace(
    PPO, rollout=8, epochs=8, batch=256, optimiser=msgspec.structs.replace(PPO.optimiser, rate=1e-2)
)
OURS: dict[str, tuple[Config, int, int]] = {
    "dueling double DQN": (named("dueling_double_dqn"), 512, 10_240),
    "PPO": (QUICK, 128, 2_048),
}
"""Config, environments, and environment steps between two looks."""
PEERS: dict[str, dict[str, Any]] = {
    "DQN": {
        "learning_rate": 1e-3,
        "buffer_size": 100_000,
        "learning_starts": 4_000,
        "batch_size": 256,
        "train_freq": 1,
        "gradient_steps": 4,
        "target_update_interval": 500,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.02,
    },
    "PPO": {
        "learning_rate": 3e-3,
        "n_steps": 30,
        "batch_size": 1920,
        "n_epochs": 10,
        "gae_lambda": 0.95,
        "ent_coef": 0.0,
    },
}
PEER_ENVIRONMENTS = {"DQN": 64, "PPO": 128}
PEER_STEPS = {"DQN": 300_000, "PPO": 1_000_000}
PEER_CHECKS = 40
Row = dict[str, Any]


def results(names: list[str] | None = None) -> list[Row]:
    """Per problem: our learners, as served and by the network alone, beside the better peer."""
    return [row for name in names or CHOSEN for row in compared(Bar(problem(name)))]


class Bar:
    """A problem, and whether a policy is within 5 % of its optimum."""

    def __init__(self, chosen: Problem) -> None:
        self.problem = chosen
        self.evaluator = Evaluator(chosen.spec, chosen.table, 77, EPISODES)
        self.optimum = self.mean(solve(self.evaluator.layout, self.evaluator.table).policy)

    def mean(self, policy: Any) -> float:
        """Its mean return."""
        return float(self.evaluator.score(policy).returns.mean())

    def reached(self, policy: Any) -> bool:
        """Whether it is near enough."""
        return self.mean(policy) >= self.optimum - WITHIN * abs(self.optimum)


def compared(bar: Bar) -> list[Row]:
    """All figures of one problem."""
    tried = {name: timed(partial(peer_time, bar, name), TRIED) for name in PEERS}
    best = min(tried, key=lambda name: statistics.median(tried[name]))
    times = timed(partial(peer_time, bar, best), SEEDS, tried[best])
    told = ", ".join(f"{name} {seconds(tried[name])}" for name in PEERS)
    peer = (f"stable-baselines3 {best}", times, told)
    return [ours(bar, algorithm, peer) for algorithm in OURS]


def timed(once: Callable[[int], float], seeds: int, known: Sequence[float] = ()) -> list[float]:
    """Seconds by seed; no more once most are at the limit."""
    times = list(known)
    while len(times) < seeds and sum(t >= LIMIT_SECONDS for t in times) <= seeds // 2:
        times.append(once(len(times)))
    return times


def seconds(times: list[float]) -> str:
    """Median and range."""
    return f"{statistics.median(times):.2f} s [{min(times):.2f}, {max(times):.2f}]"


def ours(bar: Bar, algorithm: str, peer: tuple[str, list[float], str]) -> Row:
    """One of our learners beside the peer."""
    times = timed(partial(our_time, bar, algorithm), SEEDS)
    name, theirs, tried = peer
    value, peer_value = statistics.median(times), statistics.median(theirs)
    ratio = peer_value / value
    return {
        "name": f"{bar.problem.name}: {algorithm}, {seconds(times)} (three seeds each: {tried})",
        "value": value,
        "unit": "s",
        "peer": f"{name} {seconds(theirs)}",
        "peer_value": peer_value,
        "ratio": ratio,
        "goal": f"≥ {GOAL:g} × sooner: {'met' if ratio >= GOAL else 'missed'}",
    }


def our_time(bar: Bar, algorithm: str, seed: int) -> float:
    """Seconds of processor time until our learner is there, or its limit."""
    chosen, (config, environments, chunk) = bar.problem, OURS[algorithm]
    config = msgspec.structs.replace(config, place=DeviceConfig(device="cpu"))
    start = time.process_time()
    simulator = described(chosen.spec, chosen.table, environments, seed, expected=True)
    learner = make_executor("serial", config, simulator, Plan(10**9, chunk), seed, time.process_time)
    spent = time.process_time() - start
    while spent < LIMIT_SECONDS:
        start = time.process_time()
        learner.advance()
        spent += time.process_time() - start
        _, policy, arrays = learner.agent.export()
        if bar.reached(NetworkPolicy.build({"algorithm": algorithm, **policy}, dict(arrays))):
            return spent
    return LIMIT_SECONDS


def peer_time(bar: Bar, name: str, seed: int) -> float:
    """Seconds of processor time until the peer is there, evaluated some forty times."""
    import stable_baselines3
    import torch

    from benchmarks.peer_environment import PeerEnvironment

    torch.set_num_threads(1)
    steps = PEER_STEPS[name]
    state = {"start": time.process_time(), "next": steps // PEER_CHECKS, "found": LIMIT_SECONDS}

    def watch(_: dict[str, Any], __: dict[str, Any]) -> bool:
        if peer.num_timesteps < state["next"]:
            return True
        spent = time.process_time() - state["start"]
        if bar.reached(PeerPolicy(peer, name)):
            state["found"] = min(spent, LIMIT_SECONDS)
            return False
        state["next"] += steps // PEER_CHECKS
        state["start"] = time.process_time() - spent
        return spent < LIMIT_SECONDS

    layout = Layout(bar.problem.spec)
    simulator = ExpectedSimulator(layout, bar.problem.table, PEER_ENVIRONMENTS[name], seed)
    kwargs = {"policy_kwargs": {"net_arch": [64, 64]}, "gamma": 1.0, "seed": seed, **PEERS[name]}
    peer = getattr(stable_baselines3, name)("MlpPolicy", PeerEnvironment(simulator), **kwargs)
    peer.learn(steps, callback=watch)
    return float(state["found"])


class PeerPolicy:
    """A stable-baselines3 model as one of our policies: its best legal action."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name

    def act(self, situation: Situation) -> Choice:
        """Mask its values (DQN) or logits (PPO), and take the best."""
        import torch

        with torch.no_grad():
            seen = torch.from_numpy(np.ascontiguousarray(situation.view.observation, np.float32))
            policy = self.model.policy
            scores = policy.q_net(seen) if self.name == "DQN" else policy.get_distribution(seen).distribution.logits
        return Choice(np.where(situation.view.mask, scores.numpy(), -np.inf).argmax(axis=1))


if __name__ == "__main__":
    from benchmarks.__main__ import show

    for chosen in sys.argv[1:] or CHOSEN:
        show(f"time to optimum: {chosen}", results([chosen]))
