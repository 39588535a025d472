"""Improvement of the tuned rule for a workload: a network that corrects the rule's values of actions.

Before it learns, the network's corrections are zeros, and the policy is the rule. It learns from rollouts: at states
that the present policy visits, copies of a run try each action once and follow the present policy from then on, all
under the same noise, so that their returns differ by the actions alone (policy iteration by rollouts: Lagoudakis and
Parr 2003). The gradient is that of Σ_a π(a|s) A(s, a), over all actions and without a critic (Sutton et al. 2000,
eq. 2, with the advantage A in place of Q).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.iterative.heuristics import ImprovedRulePolicy, corrections
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.policies import load, save
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import State
from app.policies.base import Arrays
from workers.kinds.iterative.simulator import TRAINING, IterativeSimulator, Ranges, Truth

IMPROVED = "improved_rule"
ROUNDS = 24  # of rollouts and learning
WINDOW = 12  # rounds whose states are learned from
ROLLED = 27  # steps of rollouts for each environment step of the budget: they take so much less time than learning
FEWEST = 8  # states of a round at each iteration
LARGEST_BUDGET = 2_000_000  # of which use is made
CHEAP = 20  # actions above which a step's time is in proportion to their number
MOST_CALLS = 250_000  # steps of all branches at once: of runs longer than some 100 iterations they are too many
MOST_BRANCHED = 20_000_000  # entries of an array of all branches
MOST_KEPT = 50_000_000  # numbers of the states in the window
PASSES, MINIBATCH = 2, 512  # over as many states as a round has
WIDTH = 32  # of the two hidden layers
RATE, LAST_RATE, LONGEST = 2e-3, 0.05, 1.0  # of Adam: the rate, its share at the end, the largest norm of a gradient
TEMPERATURE = 0.2  # of the policy π while it learns, in hundredths of return
CONSTANT = 1e-4  # standard deviation below which an input is constant
ELSEWHERE = Ranges(targets=TRAINING.targets)  # every second episode, as runs may bring targets of their own


class Labelled(NamedTuple):
    """S states at which all actions were tried.

    Attributes:
        inputs: the network's D inputs, [S, D].
        values: the rule's values of N actions in hundredths of return, [S, N]; −∞ if illegal.
        advantages: return of each action less that of the policy's action, in hundredths, [S, N]; 0 if illegal.
    """

    inputs: NDArray[np.float32]
    values: NDArray[np.float32]
    advantages: NDArray[np.float32]

    @classmethod
    def joined(cls, parts: Sequence[Labelled]) -> Labelled:
        """Concatenate the states of one or more parts, in their order."""
        return cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def improve(spec: Spec, table: ModelTable, tuned: bytes, seed: int, budget: int) -> bytes | None:
    """Learn corrections of the rule in the artifact ``tuned``; return the improved rule's artifact.

    ``budget``: environment steps of the training, of which at most ``LARGEST_BUDGET`` count. None if they are too few,
    or runs too long, or actions too many: time and memory are bounded.

    Raises:
        IncompatibleArtifact: ``tuned`` can't be read.
    """
    layout, result = Layout(spec), load(tuned)
    decisions, members = layout.iterations - 1, 1 if table.members is None else len(table.members)
    actions, size = len(layout.deltas), layout.observation_size
    trials = actions * layout.iterations / 2 * members  # steps of the rollouts of all actions from a state
    rolled = ROLLED * min(budget, LARGEST_BUDGET) / max(1.0, actions / CHEAP)
    each = min(
        int(rolled / trials / ROUNDS) // max(decisions, 1),
        2 * MOST_BRANCHED // (actions * max(actions, size)),
        MOST_KEPT // (WINDOW * max(decisions, 1) * (size + 3 * actions)),
    )
    if each < FEWEST or decisions == 0 or ROUNDS * layout.iterations**2 > MOST_CALLS:
        return None
    torch.set_num_threads(1)  # more gain nothing for networks of this size
    first, *seeds = np.random.SeedSequence([seed, 2]).generate_state(1 + 2 * ROUNDS).tolist()
    random = np.random.default_rng(first)
    simulators = [Branching(layout, table, 1, seeds[0], ranges, shaped=False) for ranges in (Ranges(), ELSEWHERE)]
    config = {**result.policy.config, "algorithm": IMPROVED, "hysteresis": result.experience.hysteresis}
    window: list[Labelled] = []
    learner = Corrector(layout, random)
    policy = ImprovedRulePolicy.build(config, learner.arrays)
    for done in range(ROUNDS):
        parts = []
        for simulator, drawn in zip(simulators, seeds[2 * done :], strict=False):
            simulator.restart(each, drawn)
            parts.append(label(simulator, policy, each // 2, random))
        window = [*window, Labelled.joined(parts)][-WINDOW:]
        if done == 0:
            learner.standardise(window[0])
        learner.learn(window, done / ROUNDS, random)
        policy = ImprovedRulePolicy.build(config, learner.arrays)
    return save(policy, layout)


class Branching(IterativeSimulator):
    """A simulator whose runs can be copied, to try all actions from their states; runs that end aren't replaced.

    Attributes:
        copies: number of copies of each run; copy c of run r has index c · runs + r, and all have the same noise.
    """

    copies = 1

    def restart(self, batch: int, seed: int) -> None:
        """Begin ``batch`` runs, drawn from ``seed``."""
        self.batch, self.random = batch, np.random.Generator(np.random.SFC64(seed))
        self.reset()

    def branch(self, runs: NDArray[np.integer], copies: int) -> Self:
        """Return a simulator of ``copies`` copies of each of k ``runs`` (indices, [k]), with the same generator."""
        other = copy(self)
        other._copy(np.tile(runs, copies), copies)  # noqa: SLF001 - of its own class
        return other

    def _copy(self, rows: NDArray[np.integer], copies: int) -> None:
        self.copies, self.batch, now = copies, len(rows), self._current()
        self._episodes = self._observe(State(*(f[rows] for f in now.state)), Truth(*(f[rows] for f in now.truth)))

    @override
    def _normal(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        drawn = super()._normal((shape[0] // self.copies, *shape[1:]))
        return np.tile(drawn, (self.copies, *[1] * (len(shape) - 1)))

    @override
    def _renew(self, done: NDArray[np.bool_]) -> None:
        """Do nothing, as runs end together and are not replaced."""


def label(simulator: Branching, policy: ImprovedRulePolicy, count: int, random: np.random.Generator) -> Labelled:
    """Play all runs to their end by the policy, and try every action at states that they visit.

    Before each iteration after the first, ``count`` runs are drawn without replacement. A copy of each takes each of
    the N actions once, and follows the policy from then on.

    Args:
        simulator: runs that wait for the decision on their second iteration.
        policy: the policy to follow.
        count: number of runs drawn per iteration, at most ``simulator.batch``.
        random: source of the draws.

    Returns:
        The states of the drawn runs, S = count · (iterations − 1), in the order of iterations.
    """
    noop, last, results = simulator.layout.noop, simulator.layout.iterations, []
    for iteration in range(1, last):
        situation = simulator.situation
        chosen, (values, inputs) = policy.act(situation).action, policy.read(situation)
        picked = random.choice(simulator.batch, count, replace=False)
        legal = situation.view.mask[picked]  # [count, N]
        branches = simulator.branch(picked, legal.shape[1])
        actions = np.where(legal, np.arange(legal.shape[1]), noop).T.reshape(-1)
        returns = np.zeros(branches.batch)
        for following in range(iteration, last):
            returns += branches.step(actions).reward
            if following + 1 < last:
                actions = policy.act(branches.situation).action
        every = returns.reshape(-1, count).T
        advantages = np.where(legal, every - every[np.arange(count), chosen[picked], None], 0)
        results.append(Labelled(inputs[picked], values[picked].astype(np.float32), advantages.astype(np.float32)))
        simulator.step(chosen)
    return Labelled.joined(results)


class Corrector:
    """Learns the network by which ``ImprovedRulePolicy`` corrects a rule's values; ``random`` draws hidden layers."""

    def __init__(self, layout: Layout, random: np.random.Generator) -> None:
        actions = len(layout.deltas)
        size = layout.observation_size + actions + 3 * len(layout.metrics)
        self.fixed: Arrays = {"centre": np.zeros(size, np.float32), "scale": np.ones(size, np.float32)}
        begun: Arrays = {"correction.weight": np.zeros((actions, WIDTH), np.float32)}
        for name, read in (("hidden.0", size), ("hidden.1", WIDTH)):
            begun[f"{name}.weight"] = random.normal(0, read**-0.5, (WIDTH, read)).astype(np.float32)
        begun |= {name.replace("weight", "bias"): np.zeros(len(array), np.float32) for name, array in begun.items()}
        self.parameters = {name: torch.tensor(array, requires_grad=True) for name, array in begun.items()}
        self.optimiser = torch.optim.Adam(self.parameters.values(), RATE)

    @property
    def arrays(self) -> Arrays:
        """Arrays from which ``ImprovedRulePolicy.build`` makes the policy with the present parameters."""
        return {**self.fixed, **{name: array.detach().numpy().copy() for name, array in self.parameters.items()}}

    def standardise(self, states: Labelled) -> None:
        """Standardise the network's inputs by their mean and standard deviation over ``states``."""
        spread = states.inputs.std(axis=0)
        scale = np.where(spread < CONSTANT, 1, spread).astype(np.float32)
        self.fixed = {"centre": states.inputs.mean(axis=0), "scale": scale}

    def learn(self, window: Sequence[Labelled], progress: float, random: np.random.Generator) -> None:
        """Update the parameters on minibatches of states of ``window``; ``progress`` (0 to 1) lowers the step size."""
        states = Labelled.joined(window)
        for group in self.optimiser.param_groups:
            group["lr"] = RATE * (1 - progress * (1 - LAST_RATE))
        arrays: Mapping[str, torch.Tensor] = {
            **{name: torch.tensor(array) for name, array in self.fixed.items()},
            **self.parameters,
        }
        for _ in range(max(PASSES * len(window[-1].inputs) // MINIBATCH, 1)):
            rows = random.integers(0, len(states.inputs), MINIBATCH)
            inputs, values, advantages = (torch.tensor(part[rows]) for part in states)
            chances = torch.softmax((values + corrections(inputs, arrays)) / TEMPERATURE, 1)
            loss = -(chances * advantages).sum(1).mean()
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), LONGEST)
            self.optimiser.step()
