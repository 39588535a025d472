"""Scheduling decisions a second in training, on one core: the simulator's, and whole plays by the shipped network.

    taskset -c 1 python -m benchmarks.workflow_learning [--batch 2000] [--candidates 32]

Sequences of 256 generated jobs on 256 processors; picks are the base strategy's. Compiling is not counted. Time is that
of the processor, so that other programs on a shared machine count less.
"""

import argparse
import json
from time import process_time

import numpy as np

from app.kinds.workflow.dispatch import RLS
from app.kinds.workflow.rules import FCFS
from app.kinds.workflow.trace import Trace, independent
from app.policies.workflow.artifact import SHIPPED, load
from workers.learning.workflow.judge import compiled
from workers.learning.workflow.sequences import WHOLE
from workers.learning.workflow.train import network
from workers.learning.workflow.widths import JOINT, WIDE
from workers.simulators.workflow.agents import parameters, play_agent
from workers.simulators.workflow.environment import Episode, WorkflowSimulator
from workers.simulators.workflow.pool import opened

MACHINE, TASKS, SEQUENCES, STEPS = 256, 256, 64, 200


def generated(rng: np.random.Generator) -> Trace:
    """Log-uniform run times, powers of two of processors, and a queue of a dozen."""
    runtime = np.exp(rng.uniform(1.0, 9.5, TASKS)).round()
    submit = np.cumsum(rng.exponential(260.0, TASKS)).round()
    return independent(submit, runtime, runtime.copy(), 2 ** rng.integers(0, 8, TASKS), np.full(TASKS, -1))


def main() -> None:
    """Measure, print JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workflow_learning")
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--candidates", type=int, default=32)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    episodes = [Episode(generated(rng), MACHINE, RLS, FCFS) for _ in range(SEQUENCES)]
    base = network(np.zeros(parameters(WIDE, JOINT)))
    simulator = WorkflowSimulator(episodes, asked.batch, base, 0, candidates=asked.candidates)
    observation, mask = simulator.reset()
    simulator.step(np.zeros(asked.batch, np.int64))
    spent, shown = 0.0, 0
    for _ in range(STEPS):
        actions = np.where(mask, observation[:, :, 0], -np.inf).argmax(axis=1)
        begun = process_time()
        step = simulator.step(actions)
        spent += process_time() - begun
        observation, mask = step.observation, step.mask
        shown += int(mask.sum())
    agent, picks = compiled(load(SHIPPED.read_bytes())), 0
    plays = [opened(episode.trace, MACHINE) for episode in episodes]
    begun = process_time()
    for play in plays:
        picks += int(play_agent(play, agent, RLS, FCFS, MACHINE, WHOLE, np.full(TASKS, -1))[0])
    whole = process_time() - begun
    steps = STEPS * asked.batch
    told = {"batch": asked.batch, "candidates": asked.candidates, "queue": shown / steps, "per_second": steps / spent}
    print(json.dumps(told | {"picks_by_network_per_second": picks / whole}))


if __name__ == "__main__":
    main()
