"""Small vectorised environments whose exact solutions are known, kept to the simulators' contract."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.layout import Layout
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.judge import Evaluator
from workers.kinds.iterative.optimum import solve
from workers.kinds.iterative.simulator import TRAINING, ExpectedSimulator
from workers.learning.simulator import Step


class Planted:
    """A finite MDP over states, one-hot observed; states ≥ `terminal` end the episode."""

    def __init__(
        self,
        batch: int,
        seed: int,
        transitions: NDArray[np.float64],
        rewards: NDArray[np.float64],
        ends: NDArray[np.bool_],
        starts: NDArray[np.int64],
        legal: NDArray[np.bool_] | None = None,
    ) -> None:
        self.batch, self.rng = batch, np.random.default_rng(seed)
        self.transitions, self.rewards, self.ends, self.starts = transitions, rewards, ends, starts
        states, actions = rewards.shape
        self.legal = np.ones((states, actions), np.bool_) if legal is None else legal
        self.cumulative = transitions.cumsum(axis=2)
        self.observation_space: spaces.Box = spaces.Box(0.0, 1.0, (states,), np.float32)
        self.action_space = spaces.Discrete(actions)
        self.advice: slice | None = None
        self.state = np.zeros(batch, np.int64)

    def observe(self) -> NDArray[np.float32]:
        return np.eye(len(self.rewards), dtype=np.float32)[self.state]

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        self.state = self.rng.choice(self.starts, self.batch)
        return self.observe(), self.legal[self.state]

    def step(self, actions: NDArray[Any]) -> Step:
        assert self.legal[self.state, actions].all()
        reward = self.rewards[self.state, actions].astype(np.float32)
        chance = self.cumulative[self.state, actions]
        self.state = (self.rng.random((self.batch, 1)) > chance).sum(axis=1).clip(max=len(self.rewards) - 1)
        done, final = self.ends[self.state], self.observe()
        self.state = np.where(done, self.rng.choice(self.starts, self.batch), self.state)
        return Step(self.observe(), self.legal[self.state], reward, done, final)

    @property
    def situation(self) -> Situation:
        return Situation(None, self.state, None)

    def get_state(self) -> dict[str, Any]:
        return {"state": self.state, "rng": self.rng.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.state = state["state"].copy()
        self.rng.bit_generator.state = state["rng"]

    def exact(self, gamma: float = 1.0, sweeps: int = 500) -> NDArray[np.float64]:
        """Q by value iteration, [states, actions]; illegal ones −∞."""
        q = np.zeros(self.rewards.shape)
        for _ in range(sweeps):
            value = np.where(self.ends, 0.0, np.where(self.legal, q, -np.inf).max(axis=1))
            q = self.rewards + gamma * self.transitions @ value
        return np.where(self.legal, q, -np.inf)

    def best(self) -> float:
        """The exact optimum's return, mean over starts."""
        return float(self.exact()[self.starts].max(axis=1).mean())

    def worth(self, policy: NDArray[np.integer], steps: int = 100) -> float:
        """Exact return of a deterministic policy [states], mean over starts."""
        rows, value = np.arange(len(self.rewards)), np.zeros(len(self.rewards))
        for _ in range(steps):
            value = np.where(self.ends, 0.0, (self.rewards + self.transitions @ value)[rows, policy])
        return float(value[self.starts].mean())


@dataclass(frozen=True)
class Expert:
    """Acts by exact value iteration."""

    environment: Planted

    @property
    def name(self) -> str:
        return "exact"

    def act(self, situation: Situation) -> Choice:
        return Choice(self.environment.exact(sweeps=50)[situation.state].argmax(axis=1))


def grid(batch: int, seed: int) -> Planted:
    """RLgraph's 2×2 grid world: start S top left, a hole H top right, plain floor bottom left, goal G bottom right.

    Actions: up, right, down, left; walls hold. Each step costs 1; the hole pays −5 and ends, the goal pays +1 and ends.
    Moving onto a wall stays. Q(s0) = (−1, −5, 0, −1), Q(s1) = (−1, 1, 0, 0).
    """
    moves = np.array([[0, 2, 1, 0], [0, 3, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]])  # 0 start, 1 below, 2 hole, 3 goal
    pays = np.array([[-1.0, -5.0, -1.0, -1.0], [-1.0, 1.0, -1.0, -1.0], [0.0] * 4, [0.0] * 4])
    return Planted(batch, seed, np.eye(4)[moves], pays, np.array([False, False, True, True]), np.array([0]))


def identity(batch: int, seed: int, states: int = 5) -> Planted:
    """Pays 1 for the action that equals the state; every step is an episode of its own."""
    transitions = np.zeros((states + 1, states, states + 1))
    transitions[:, :, states] = 1.0
    ends = np.arange(states + 1) == states
    return Planted(batch, seed, transitions, np.eye(states + 1)[:, :states], ends, np.arange(states))


def finite_horizon(batch: int, seed: int, horizon: int = 6, places: int = 4, actions: int = 3) -> Planted:
    """A random MDP of `places` × time that ends after `horizon` steps; action 2 is illegal at place 0."""
    rng = np.random.default_rng(7)
    states = horizon * places + 1
    transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
    for time in range(horizon):
        here = slice(time * places, (time + 1) * places)
        rewards[here] = rng.normal(0.0, 1.0, (places, actions))
        if time == horizon - 1:
            transitions[here, :, -1] = 1.0
        else:
            following = slice((time + 1) * places, (time + 2) * places)
            transitions[here, :, following] = rng.dirichlet(np.full(places, 0.5), (places, actions))
    transitions[-1, :, -1] = 1.0
    legal = np.ones((states, actions), np.bool_)
    legal[0 : states - 1 : places, 2] = False
    return Planted(batch, seed, transitions, rewards, np.arange(states) == states - 1, np.arange(places), legal)


class Workload:
    """A planted `iterative` workload of 6 iterations on 9 allocations, with its exact optimum."""

    def __init__(self, episodes: int = 1_024, seed: int = 77) -> None:
        self.spec = planted_spec(
            resources=[
                {"name": "executors", "minimum": 4, "maximum": 36, "step": 4, "max_steps": 2, "change_seconds": 2.0}
            ],
            metrics=[{"name": "iteration_seconds", "target": 66.0, "scope": "run"}],
            iterations=6,
        )
        self.table = planted_table(self.spec, effect=0.3, noise=0.1)
        self.layout = Layout(self.spec)
        self.evaluator = Evaluator(self.spec, self.table, seed, episodes)
        self.optimum = float(self.evaluator.score(solve(self.layout, self.table).policy).returns.mean())

    def simulator(self, batch: int, seed: int) -> ExpectedSimulator:
        """Paid in expectation, as trainings are."""
        return ExpectedSimulator(self.layout, self.table, batch, seed, TRAINING)

    def gap(self, policy: Any) -> float:
        """What a policy leaves of the optimum's return, as a share of it, on the same episodes."""
        return (self.optimum - float(self.evaluator.score(policy).returns.mean())) / abs(self.optimum)
