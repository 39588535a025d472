"""How fast we learn, beside stable-baselines3 on the same problem, observation and 64-64 network.

``python -m benchmarks.learning_speed``. The problem is planted (33 allocations, 9 actions, 30 iterations, a deadline,
a run effect to be read); environment steps a second of processor time on one core, so that
neighbours do not count, and both learn from as many examples for each step that they take: eight (DQN), ten (PPO).

Our DQN (2,048 environments in lock-step, 16 updates of 1,024 transitions a slab) against stable-baselines3's as it
comes (batch 32, an update every 4 steps) on one environment. Its wrapper is a bare VecEnv, cheaper than Monitor +
DummyVecEnv; the simulator's own time for one environment is also measured, and taken off in the second figure. Our PPO
(2,048 environments, 16 slabs a rollout, 10 epochs) against theirs as it comes (rollouts of 2,048 steps, 10 epochs of
batches of 64), on one environment and on 64 with rollouts of the same size; both have two separate 64-64 networks, for
actor and critic.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
from typing import Any

import msgspec
import numpy as np

from app.kinds.iterative.layout import Layout
from benchmarks.problems import planted_one
from workers.kinds.iterative.simulator import ExpectedSimulator, IterativeSimulator
from workers.learning.algorithms.config import DQN, built_in_config
from workers.learning.execution.serial import Plan, Serial

SPEED_GOAL, PPO_GOAL = 100.0, 20.0
ENVIRONMENTS, BATCH, EXAMPLES = 2_048, 1_024, 8
OUR_STEPS, PEER_STEPS, SEEDS = 1_500_000, 8_000, 3
PEER_SPEED_ENVIRONMENTS = 64
Row = dict[str, Any]


def results() -> list[Row]:
    """Environment steps a second of processor time, with the peer's."""
    ours = statistics.median(our_speed(seed) for seed in range(SEEDS))
    theirs, simulating = peer_speed()
    bare = 1.0 / (1.0 / theirs - simulating)
    policy = statistics.median(our_speed(seed, "ppo") for seed in range(SEEDS))
    as_it_comes, many = peer_ppo_speed(1), peer_ppo_speed(PEER_SPEED_ENVIRONMENTS)
    double = statistics.median(our_speed(seed, "dueling_double_dqn") for seed in range(SEEDS))
    return [
        row("DQN training, 64-64", ours, "steps/s", "stable-baselines3 DQN", theirs, SPEED_GOAL),
        row(
            "DQN training; the peer's simulator for nothing", ours, "steps/s", "stable-baselines3 DQN", bare, SPEED_GOAL
        ),
        row("dueling double DQN training", double, "steps/s", "stable-baselines3 DQN", theirs, None),
        row("PPO training, 64-64", policy, "steps/s", "stable-baselines3 PPO", as_it_comes, PPO_GOAL),
        row(
            f"PPO training; the peer on {PEER_SPEED_ENVIRONMENTS} environments",
            policy,
            "steps/s",
            "stable-baselines3 PPO",
            many,
            PPO_GOAL,
        ),
    ]


def our_speed(seed: int, algorithm: str = "dqn") -> float:
    """Steps a second of our learner, after its memory has been filled once."""
    problem, config = planted_one(), built_in_config(algorithm)
    if isinstance(config, DQN):
        config = msgspec.structs.replace(config, batch=BATCH, updates_per_slab=EXAMPLES * ENVIRONMENTS // BATCH)
    else:
        config = msgspec.structs.replace(config, epochs=10)
    simulator = IterativeSimulator(Layout(problem.spec), problem.table, ENVIRONMENTS, seed)
    learner = Serial(config, simulator, Plan(OUR_STEPS, OUR_STEPS // 3), seed, time.process_time)
    learner.advance()
    return statistics.median(learner.advance().steps_per_second for _ in range(2))


def peer_speed() -> tuple[float, float]:
    """Steps a second of the peer's DQN, and seconds of the simulator in each."""
    import stable_baselines3

    environments = vectorised(1, 0, expected=False)
    peer = stable_baselines3.DQN(
        "MlpPolicy", environments, policy_kwargs={"net_arch": [64, 64]}, learning_starts=500, gamma=1.0, seed=0
    )
    peer.learn(1_000)
    start = time.process_time()
    peer.learn(PEER_STEPS, reset_num_timesteps=False)
    theirs = PEER_STEPS / (time.process_time() - start)
    environments.reset()
    start = time.process_time()
    for _ in range(1_000):
        environments.step(np.array([4]))
    return theirs, (time.process_time() - start) / 1_000


def peer_ppo_speed(count: int) -> float:
    """Steps a second of the peer's PPO as it comes (2,048 steps a rollout, 10 epochs, batch 64), on `count` of them."""
    import stable_baselines3

    kwargs: dict[str, Any] = {"policy_kwargs": {"net_arch": [64, 64]}, "gamma": 1.0, "n_steps": 2_048 // count}
    peer = stable_baselines3.PPO("MlpPolicy", vectorised(count, 0, expected=False), seed=0, **kwargs)
    peer.learn(2_048)
    start = time.process_time()
    peer.learn(PEER_STEPS, reset_num_timesteps=False)
    return 4 * 2_048 / (time.process_time() - start)


def vectorised(batch: int, seed: int, *, expected: bool) -> Any:
    """The problem as the peer's environments."""
    from benchmarks.peer_environment import PeerEnvironment

    problem = planted_one()
    kind = ExpectedSimulator if expected else IterativeSimulator
    return PeerEnvironment(kind(Layout(problem.spec), problem.table, batch, seed))


def row(name: str, value: float, unit: str, peer: str, peer_value: float, goal: float | None) -> Row:
    """A figure beside the peer's."""
    ratio = value / peer_value
    verdict = None if goal is None else f"≥ {goal:g} ×: {'met' if ratio >= goal else 'missed'}"
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": peer,
        "peer_value": peer_value,
        "ratio": ratio,
        "goal": verdict,
    }


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("learning_speed", results())
