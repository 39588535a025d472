"""The DQN family: graph of components, and learner.

Shapes: B environments, n examples, D observation entries, N actions, K quantiles, P parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import buffers
from workers.learning.algorithms.base import (
    ActResult,
    Batch,
    Buffer,
    Experience,
    Exported,
    Host,
    LearnStats,
    Masks,
    Observations,
    State,
)
from workers.learning.algorithms.buffers import ReplayBuffer
from workers.learning.algorithms.config import DQN
from workers.learning.algorithms.network import FLAT, NetworkLearner, learning_rate
from workers.learning.algorithms.q_table import centre_rewards, ladder
from workers.learning.backends import Array, Backend
from workers.learning.build import Sets
from workers.learning.components.base import Component, Node, Space, Spaces, reals, unit
from workers.learning.components.exploration import EpsilonGreedy, GeometricSchedule, Schedule, Softmax
from workers.learning.components.network import Adam, DuelingHead, LinearHead, Pick, QNetwork, Synchroniser, Trunk
from workers.learning.components.replay import TRANSITION, PrioritisedReplay, Replay
from workers.learning.components.value import (
    STEP,
    DuelingQuantileHead,
    Huber,
    Joined,
    LargeMargin,
    NStep,
    PickQuantiles,
    QuantileHead,
    QuantileHuber,
    QuantileNetwork,
    QuantileTarget,
    Target,
    mean_of_quantiles,
    spread,
)

# Graph of the value-based agent: one set of components, wired by the switches of its config.


INPUTS = (*STEP, "epsilon", "noise", *FLAT, "expert")


def root_spaces(observation: Space, actions: spaces.Discrete, noise: int = 2) -> Spaces:
    """Return the spaces of the graph's root inputs by name; ``noise`` is the number of random numbers per choice."""
    mask = spaces.MultiBinary(int(actions.n))
    return {
        "observation": observation,
        "action": actions,
        "done": spaces.MultiBinary(()),
        "next_observation": observation,
        "next_mask": mask,
        "mask": mask,
        "epsilon": unit(),
        "noise": unit(noise),
        **{name: reals() for name in (*FLAT, "reward", "expert")},
    }


def network(config: DQN, actions: int, advice: slice | None) -> Component:
    """Return the Q-network of a config: observation, mask [N] → values [N] of N actions (and K quantiles, [N, K]).

    ``advice`` is the slice of the feature with the environment's score of each candidate; None: no such feature.

    Raises:
        ValueError: a scorer together with quantiles or a dueling head.
    """
    if config.network.scorer is not None:
        if config.quantiles or config.network.dueling:
            raise ValueError("a scorer of candidates has one plain head: without quantiles and not dueling")
        return buffers.scorer(config.network.scorer, config.network, advice)
    trunk = Trunk(config.network.layers, config.network.activation)
    if config.quantiles:
        many = (DuelingQuantileHead if config.network.dueling else QuantileHead)(actions, config.quantiles)
        return QuantileNetwork(trunk, many)
    head = DuelingHead(actions) if config.network.dueling else LinearHead(actions)
    return QNetwork(trunk, head)


def nodes(
    config: DQN,
    actions: spaces.Discrete,
    advice: slice | None,
    targets: Callable[[DQN, Component], list[Node]],
) -> list[Node]:
    """Return the graph's nodes: Q-network, action choice, memory, target, loss, optimiser and synchroniser.

    ``targets`` builds the nodes of the regression target from config and Q-network. Raises ValueError for a scorer with
    quantiles or a dueling head.
    """
    q, wanted = network(config, int(actions.n), advice), config.memory
    kind, softmax = "quantiles" if config.quantiles else "values", config.exploration.schedule == "softmax"
    replay = Replay(wanted.capacity)
    if wanted.prioritised:
        replay = PrioritisedReplay(wanted.capacity, wanted.alpha, wanted.beta)
    pick, loss = (PickQuantiles(), QuantileHuber(config.huber)) if config.quantiles else (Pick(), Huber(config.huber))
    chosen = {"values": "q.values", "mask": "mask", "epsilon": "epsilon", "noise": "noise"}
    judged = {"predicted": "pick.taken", "target": "target.target", "weight": "memory.weight"}
    both = {"online": "parameters", "target": "target_parameters", "share": "share"}
    return [
        Node("q", q, {"observation": "observation", "mask": "mask"}),
        Node("explore", Softmax(actions) if softmax else EpsilonGreedy(actions), chosen),
        Node("n_step", NStep(config.n_step, config.gamma), {port: port for port in STEP}),
        Node("memory", replay, {port: f"n_step.{port}" for port in TRANSITION}),
        *targets(config, q),
        Node("q_learn", q, {"observation": "memory.observation", "mask": "memory.mask"}),
        Node("pick", pick, {kind: f"q_learn.{kind}", "action": "memory.action"}),
        Node("loss", loss, judged),
        *_imitating(config),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), both),
    ]


def bellman(config: DQN, q: Component) -> list[Node]:
    """Return the nodes that compute the regression target: reward + discount · target network's next-state value."""
    following = {"observation": "memory.next_observation", "mask": "memory.next_mask"}
    chosen = [Node("q_next", q, following)] if config.double else []
    kind = "quantiles" if config.quantiles else "values"
    wires = {
        **{port: f"memory.{port}" for port in ("reward", "discount")},
        "mask": "memory.next_mask",
        "select": "q_next.values" if config.double else "q_target.values",
        "evaluate": f"q_target.{kind}",
    }
    target = Node("target", QuantileTarget() if config.quantiles else Target(), wires)
    return [Node("q_target", q, following, variables="target"), *chosen, target]


def _imitating(config: DQN) -> list[Node]:
    """Return the nodes of the demonstrations' memory and the large-margin loss; none without imitation."""
    wanted = config.imitation
    if wanted is None:
        return []
    observation = {"mask": "memory.mask", "action": "memory.action", "expert": "expert"}
    return [
        Node("demonstrations", Replay(wanted.capacity), {port: f"n_step.{port}" for port in TRANSITION}),
        Node("margin", LargeMargin(wanted.margin), {"values": "q_learn.values", **observation}),
        Node("joined", Joined(wanted.weight), {"loss": "loss.loss", "other": "margin.loss"}),
    ]


# Value-based learner: DQN and its switches (double, dueling, n-step, priorities, quantiles, soft target).


Targets = Callable[[DQN, Component], list[Node]]
"""Function from config and Q-network to the nodes that compute `target.target` of a batch from the memory."""


class ValueLearner(NetworkLearner):
    """Learner by Q-learning with replay memory and target network.

    `targets` builds the nodes of the regression target; by default the Bellman target. Raises BuildError for spaces
    that the config does not fit, ValueError for a scorer with quantiles or a dueling head.
    """

    shared: tuple[str, ...] = ("online", "target")

    def __init__(
        self,
        config: DQN,
        observation: Space,
        actions: spaces.Discrete,
        advice: slice | None,
        backend: Backend,
        targets: Targets = bellman,
    ) -> None:
        self.config, wanted = config, config.exploration
        softmax = wanted.schedule == "softmax"
        self.schedule: Schedule = GeometricSchedule(wanted.start, wanted.end) if softmax else ladder(wanted)
        self.noise = int(actions.n) if softmax else 2
        self.loss = "loss.loss" if config.imitation is None else "joined.loss"
        graph = nodes(config, actions, advice, targets)
        super().__init__(config, INPUTS, graph, root_spaces(observation, actions, self.noise), advice, backend)

    def buffer(self, rng: np.random.Generator) -> ReplayBuffer:
        """Return a new empty replay buffer, with a memory of demonstrations if the config has imitation."""
        shown = None if self.config.imitation is None else self.memory("demonstrations", rng)
        return ReplayBuffer(self.config, self.memory("n_step", rng), self.memory("memory", rng), shown)

    def act(
        self,
        state: State,
        observation: Observations,
        mask: Masks,
        exploration: NDArray[np.float32],
        rng: np.random.Generator,
        carry: NDArray[np.float32] | None = None,
    ) -> ActResult:
        """Choose the actions [B] of B environments by the online network, with ε or temperature ``exploration`` [B].

        Observations are [B, D], ``mask`` of legal actions [B, N]; the returned `log_prob` [B] is 0.
        """
        del carry
        batch, give = len(observation), self.backend.asarray
        feeds = {
            "observation": give(observation),
            "mask": give(mask),
            "noise": give(rng.random((batch, self.noise), np.float32)),
            "epsilon": give(exploration),
        }
        with self.backend.without_gradient():
            action = self.bound.run(("explore.action",), feeds, {"online": self.views(state, "online")})
        return ActResult(self.backend.to_numpy(action["explore.action"]), np.zeros(batch, np.float32))

    def values(self, state: State, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Return Q-values [B, N] by the exported parameters for ``observation`` [B, D], with legal actions ``mask``."""
        feeds = {"observation": self.backend.asarray(observation), "mask": self.backend.asarray(mask)}
        with self.backend.without_gradient():
            outputs = self.bound.run(("q.values",), feeds, {"online": self.exported(state)})
        return self.backend.to_numpy(outputs["q.values"])

    def update(self, state: State, batch: Batch, rng: np.random.Generator) -> tuple[State, LearnStats]:
        """Take one optimiser step on a batch; return the new state, and statistics with the TD errors [n]."""
        del rng
        gradient, stats = self.gradient(state, batch)
        return self.apply(state, gradient, batch.progress), stats

    def gradient(self, state: State, batch: Batch) -> tuple[Array, LearnStats]:
        """Return the gradient [P] of the mean loss by P online parameters, and statistics with the TD errors [n]."""
        feeds = {name: self.backend.asarray(value) for name, value in batch.arrays.items()}
        variables = self.variables(state)
        with self.backend.without_gradient():
            feeds["target.target"] = self._target(feeds, variables)
        result, gradient = self.bound.gradient(self.loss, (self.loss, "loss.error"), feeds, variables)
        rate, errors = learning_rate(self.config.optimiser, batch.progress), self.backend.to_numpy(result["loss.error"])
        return gradient, LearnStats(1, float(result[self.loss].mean()), rate, None, errors)

    def _target(self, feeds: dict[str, Array], variables: Sets) -> Array:
        """Return the regression targets of a batch of n examples: [n], or [n, K] for K quantiles."""
        if not self.config.centred:
            return self.bound.run(("target.target",), feeds, variables)["target.target"]
        outputs = self.bound.run(("target.target", "pick.taken"), feeds, variables)
        target = outputs["target.target"]
        ends = (1.0 - feeds["memory.discount"]).reshape(-1, *[1] * (target.ndim - 1))
        return centre_rewards(self.backend.xp, target, ends, target - outputs["pick.taken"])

    def apply(self, state: State, gradient: Array, progress: float) -> State:
        """Return the state after a step along a gradient [P]; ``progress`` (0 to 1) sets the learning rate.

        Target network and running average are updated too.
        """
        state = self.step_optimiser(state, gradient, learning_rate(self.config.optimiser, progress))
        if state.values["updates"] % self.config.target_every == 0:
            state = self.blend_into(state, "target", self.config.target_share)
        return self.update_average(state, progress)

    def imitate(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> tuple[State, LearnStats]:
        """Store an expert's transitions, and run the config's number of updates on them; return state and statistics.

        Raises:
            ValueError: the config has no imitation, or there are too few steps for an n-step transition.
        """
        assert isinstance(buffer, ReplayBuffer)  # noqa: S101  (narrows the type)
        buffer.show(slabs, rng)
        updates, losses = self.config.imitation.updates if self.config.imitation else 0, []
        for _ in range(updates):
            state, stats = self.update(state, buffer.draw(self.config.batch, 0.0), rng)
            losses.append(stats.loss)
        return state, LearnStats(updates, float(np.mean(losses)) if losses else 0.0, self.config.optimiser.rate)

    def export(self, state: State) -> Exported:
        """Return type (`network`, or `scorer` of candidates), config and arrays by name; quantiles as their mean."""
        kind, described = self.described()
        views = {name: self.backend.to_numpy(view) for name, view in self.exported(state).items()}
        if self.config.quantiles:
            return kind, described, mean_of_quantiles(views, self.config.quantiles)
        return kind, described, {name: view.copy() for name, view in views.items()}

    def start(self, state: State, arrays: Host, config: Mapping[str, Any] | None = None) -> State:
        """Warm-start online and target network from published arrays; ``config`` is checked unless None.

        Quantiles all start at the published mean, optimiser moments and update count at 0.

        Raises:
            ValueError: the arrays are of another network.
        """
        self.compare(config)
        values = spread(arrays, self.config.quantiles) if self.config.quantiles else arrays
        flat = self.started(state, values)
        result = {name: self.backend.asarray(flat.copy()) for name in self.shared}
        result |= {name: self.backend.asarray(np.zeros_like(flat)) for name in ("first", "second")}
        return state.but(result, updates=0, averaging=0)
