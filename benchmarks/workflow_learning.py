"""Scheduling decisions a second in training, on one core: the simulator's, and whole plays by the shipped network.

``taskset -c 0 python -m benchmarks workflow_learning``. Sequences of 256 generated jobs on 256 processors; picks are
the base strategy's. Compiling is not counted. Time is that of the processor, and the median of all steps, so that other
programs count less.
"""

from statistics import median
from time import process_time
from typing import Any

import numpy as np

from app.kinds.workflow.policies.artifact import SHIPPED, load
from app.kinds.workflow.scheduling.dispatch import RLS
from app.kinds.workflow.scheduling.rules import FCFS
from app.kinds.workflow.trace import Trace, independent
from workers.kinds.workflow.simulator.agents import parameters, play_agent
from workers.kinds.workflow.simulator.environment import Episode, WorkflowSimulator
from workers.kinds.workflow.simulator.pool import opened
from workers.kinds.workflow.training.judge import compiled
from workers.kinds.workflow.training.sequences import WHOLE
from workers.kinds.workflow.training.train import network
from workers.kinds.workflow.training.widths import JOINT, WIDE

MACHINE, TASKS, SEQUENCES, STEPS = 256, 256, 64, 200
GOAL = 500_000.0
Row = dict[str, Any]


def generated(rng: np.random.Generator) -> Trace:
    """Log-uniform run times, powers of two of processors, and a queue of a dozen."""
    runtime = np.exp(rng.uniform(1.0, 9.5, TASKS)).round()
    submit = np.cumsum(rng.exponential(260.0, TASKS)).round()
    return independent(submit, runtime, runtime.copy(), 2 ** rng.integers(0, 8, TASKS), np.full(TASKS, -1))


def results() -> list[Row]:
    """The simulator's decisions, and a network's."""
    return [
        row("in lock-step, 2,000 sequences at a time, 32 candidates", stepped(), GOAL),
        row("whole plays", played()),
    ]


def stepped(batch: int = 2_000, candidates: int = 32) -> float:
    """Decisions a second of the simulator, its caller's choice not counted."""
    rng = np.random.default_rng(0)
    episodes = [Episode(generated(rng), MACHINE, RLS, FCFS) for _ in range(SEQUENCES)]
    base = network(np.zeros(parameters(WIDE, JOINT)))
    simulator = WorkflowSimulator(episodes, batch, base, 0, candidates=candidates)
    observation, mask = simulator.reset()
    simulator.step(np.zeros(batch, np.int64))
    spent = []
    for _ in range(STEPS):
        actions = np.where(mask, observation[:, :, 0], -np.inf).argmax(axis=1)
        begun = process_time()
        step = simulator.step(actions)
        spent.append(process_time() - begun)
        observation, mask = step.observation, step.mask
    return batch / median(spent)


def played() -> float:
    """Picks a second of the shipped network, sequence after sequence."""
    rng = np.random.default_rng(1)
    agent, picks = compiled(load(SHIPPED.read_bytes())), 0
    plays = [opened(generated(rng), MACHINE) for _ in range(SEQUENCES + 1)]
    chosen = np.full(TASKS, -1)
    play_agent(plays[0], agent, RLS, FCFS, MACHINE, WHOLE, chosen)  # compiles
    begun = process_time()
    for play in plays[1:]:
        picks += int(play_agent(play, agent, RLS, FCFS, MACHINE, WHOLE, chosen)[0])
    return picks / (process_time() - begun)


def row(name: str, value: float, goal: float | None = None) -> Row:
    """A speed."""
    told = None if goal is None else f"≥ {goal:,.0f}: {'met' if value >= goal else 'missed'}"
    return {"name": name, "value": value, "unit": "decisions/s", "goal": told}


if __name__ == "__main__":
    for found in results():
        print(f"{found['name']:60} {found['value']:12,.0f} {found['goal'] or ''}")
