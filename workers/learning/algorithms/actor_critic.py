"""The actor-critic family (A2C, A3C, PPO, V-trace): network inputs, graph, and learner.

Shapes: B environments, T steps of a rollout, D observation entries, N actions, H recurrent units, P parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.algorithms import buffers
from workers.learning.algorithms.base import (
    ActResult,
    Buffer,
    Experience,
    Exported,
    Host,
    LearnStats,
    Masks,
    Observations,
    State,
)
from workers.learning.algorithms.base import Batch as BaseBatch
from workers.learning.algorithms.buffers import RolloutBuffer
from workers.learning.algorithms.config import ActorCritic
from workers.learning.algorithms.network import FLAT, NetworkLearner, learning_rate
from workers.learning.algorithms.q_table import centre_rewards
from workers.learning.backends import Array, Backend
from workers.learning.build import Bound, Sets
from workers.learning.components.base import Component, Node, Space, Spaces, reals, unit
from workers.learning.components.exploration import Linear, Schedule
from workers.learning.components.network import GRU, Adam, Critic, LinearHead, PolicyNetwork, Synchroniser, Trunk
from workers.learning.components.policy import (
    GAE,
    ActorCriticLoss,
    ClippedSurrogate,
    Draw,
    Estimator,
    LogProbability,
    NegativeLogLikelihood,
    Normalise,
    Surrogate,
    ValueLoss,
    VTrace,
)
from workers.learning.components.replay import KEPT, SLAB, RecurrentRollout, Rollout, stack_space

# Network inputs of an actor-critic agent: single steps, or sequences with the memory of a recurrent core.


Batch = dict[str, Array]


class StepInputs:
    """Network inputs of a policy without memory: every example is a single step.

    Args:
        backend: creates the arrays.
        rollout: steps of a rollout, T.
    """

    fetches: tuple[str, ...] = ()
    """Names of further wires to fetch when acting, here none; a recurrent policy's memory in a subclass."""

    def __init__(self, backend: Backend, rollout: int) -> None:
        self.backend, self.rollout = backend, rollout

    def now(self, observation: Observations, carry: NDArray[np.float32] | None) -> Batch:
        """Return the network feeds to act on ``observation`` [B, D] of B environments; ``carry`` is ignored."""
        del carry
        return {"observation": self.backend.asarray(observation)}

    def before(self, experience: Experience, carry: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """Return the recurrent memory before a step, for the rollout to store: ``carry`` unchanged, here None."""
        del experience
        return carry

    def whole(self, slabs: Host) -> Batch:
        """Return the feeds that a full rollout adds to its examples; an empty dict without a recurrent memory."""
        del slabs
        return {}

    def feeds(self, batch: Batch) -> Batch:
        """Return the network feeds for a batch of n examples: `observation` [n, D]."""
        return {"observation": batch["observation"]}

    def last(self, batch: Batch, bound: Bound, variables: Sets) -> Batch:
        """Return the network feeds for the observations [B, D] after the rollout's last step."""
        del bound, variables
        return {"observation": batch["last_observation"]}

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Split the example indices 0 … ``count`` − 1 at random into arrays [≤ ``wanted``], one for each minibatch."""
        return np.array_split(rng.permutation(count), -(-count // wanted))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """Return the examples at the indices ``places`` [n] from the arrays in ``names``."""
        where = self.backend.asarray(places)
        return {name: self.backend.xp.take(batch[name], where, axis=0) for name in names}


class SequenceInputs(StepInputs):
    """Network inputs of a recurrent policy of H ``units``: every example is a whole trajectory of ``rollout`` steps."""

    fetches = ("core.memory",)

    def __init__(self, backend: Backend, rollout: int, units: int) -> None:
        super().__init__(backend, rollout)
        self.units = units

    def now(self, observation: Observations, carry: NDArray[np.float32] | None) -> Batch:
        """Return the feeds to act on observations [B, D]: sequences [B, 1, D] of one step, and memory [B, H].

        The memory is ``carry``, or zeros where that is None or of another number of environments.
        """
        give = self.backend.asarray
        return self._sequence(give(observation), give(self._hidden_state(len(observation), carry)))

    def before(self, experience: Experience, carry: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Return the memory [B, H] before a step (B environments, H units); zeros where ``carry`` is None."""
        return self._hidden_state(len(experience.reward), carry)

    def _hidden_state(self, batch: int, carry: NDArray[np.float32] | None) -> NDArray[np.float32]:
        return carry if carry is not None and len(carry) == batch else np.zeros((batch, self.units), np.float32)

    def _sequence(self, observation: Array, memory: Array) -> Batch:
        begins = self.backend.asarray(np.zeros((len(observation), 1), np.bool_))
        return {"sequence": observation[:, None], "begins": begins, "memory": memory}

    def whole(self, slabs: Host) -> Batch:
        """Return `begins` [B, T], true where an episode begins, and `memory` [B, H] before the rollout's first step."""
        begins = np.zeros(slabs["done"].shape, np.bool_)
        begins[:, 1:] = slabs["done"][:, :-1]
        return {"begins": self.backend.asarray(begins), "memory": self.backend.asarray(slabs["memory"])}

    def feeds(self, batch: Batch) -> Batch:
        """Return the network feeds: `sequence` [B, T, D], `begins` [B, T], initial `memory` [B, H]."""
        observation = batch["observation"]
        sequence = observation.reshape(-1, self.rollout, *observation.shape[1:])
        return {"sequence": sequence, "begins": batch["begins"], "memory": batch["memory"]}

    def last(self, batch: Batch, bound: Bound, variables: Sets) -> Batch:
        """Return the network feeds for the step after the trajectories, with the memory [B, H] after the last step."""
        memory = bound.run(("core.memory",), self.feeds(batch), variables)["core.memory"]
        return self._sequence(batch["last_observation"], memory)

    def split(self, count: int, wanted: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Split the trajectories' indices at random into arrays, each for a minibatch of about ``wanted`` steps."""
        trajectories = count // self.rollout
        return np.array_split(rng.permutation(trajectories), min(-(-count // wanted), trajectories))

    def pick(self, batch: Batch, names: tuple[str, ...], places: NDArray[np.int64]) -> Batch:
        """Return all steps, in order, of the trajectories at the indices ``places``, from the arrays in ``names``."""
        steps = (places[:, None] * self.rollout + np.arange(self.rollout)).reshape(-1)
        return {**super().pick(batch, names, steps), **super().pick(batch, ("begins", "memory"), places)}


# Graph of the actor-critic agent: one set of components, wired by the switches of its config.


EXAMPLE = ("observation", "mask", "action", "log_prob", "advantage", "target", "old")
"""Feeds of the loss, apart from the entropy weight."""
TRAJECTORY = ("rewards", "ends", "values", "last", "log_probs", "behaviours")
"""Feeds of the advantage estimator, [B, T] each; `last` is [B]."""
INPUTS = (*SLAB, "noise", *TRAJECTORY, "advantage", "target", "old", "entropy_weight", *FLAT)
UNROLLED = ("sequence", "begins", "memory")
"""Feeds of a recurrent core, replacing the observation."""
CORE, POLICY = "core.", "policy."
"""Name prefixes of the variables of the recurrent core and of the two networks in the flat vector."""
ACTOR = (CORE, POLICY)
"""Name prefixes of the variables that acting depends on."""


def root_spaces(config: ActorCritic, observation: Space, actions: spaces.Discrete) -> Spaces:
    """Return the spaces of the graph's root inputs, by name, for an environment's observation and action space."""
    mask, steps = spaces.MultiBinary(int(actions.n)), config.rollout
    numbers = ("reward", "log_prob", "last", "advantage", "target", "old", "entropy_weight", *FLAT)
    core: Spaces = {}
    if config.recurrent:
        bits = spaces.MultiBinary(config.rollout)
        core = {"sequence": stack_space(observation, config.rollout), "begins": bits, "memory": reals(config.recurrent)}
    return {
        **core,
        "observation": observation,
        "mask": mask,
        "action": actions,
        "done": spaces.MultiBinary(()),
        "next_observation": observation,
        "next_mask": mask,
        "noise": unit(int(actions.n)),
        "ends": spaces.MultiBinary(steps),
        **{name: reals(steps) for name in ("rewards", "values", "log_probs", "behaviours")},
        **{name: reals() for name in numbers},
    }


def nodes(config: ActorCritic, actions: spaces.Discrete, advice: slice | None) -> list[Node]:
    """Return the graph's nodes: actor, critic, choice, rollout, advantage estimator, losses, optimiser, average.

    Actor and critic share no network except a recurrent core.
    """
    count, wanted = int(actions.n), config.network
    actor: Component = PolicyNetwork(Trunk(wanted.layers, wanted.activation), LinearHead(count))
    critic: Component = Critic(Trunk(wanted.layers, wanted.activation))
    if wanted.scorer is not None:
        actor = buffers.scorer(wanted.scorer, wanted, advice, config.temperature, "logits")
        critic = buffers.critic(wanted.scorer, wanted)
    observation = {"observation": "core.observation" if config.recurrent else "observation", "mask": "mask"}
    core = [Node("core", GRU(config.recurrent), {port: port for port in UNROLLED})] if config.recurrent else []
    rollout = (RecurrentRollout if config.recurrent else Rollout)(config.rollout)
    estimate: Estimator = GAE(config.gamma, config.trace)
    if config.estimator == "vtrace":
        estimate = VTrace(config.gamma, config.trace, config.rho, config.cut)
    ports = dict(zip(("reward", "done", "value", "last", "log_prob", "behaviour"), TRAJECTORY, strict=True))
    surrogate = ClippedSurrogate(config.clip) if config.surrogate == "clipped" else Surrogate()
    moved = {"log_prob": "chance.log_prob", "behaviour": "log_prob", "advantage": "advantage"}
    rest = {"value": "error.loss", "entropy": "chance.entropy", "entropy_weight": "entropy_weight"}
    return [
        *core,
        Node("policy", actor, observation),
        Node("critic", critic, {port: observation[port] for port in critic.takes}),
        Node("draw", Draw(actions), {"logits": "policy.logits", "mask": "mask", "noise": "noise"}),
        Node("rollout", rollout, {port: port for port in rollout.takes}),
        Node("estimate", estimate, {port: ports[port] for port in estimate.takes}),
        Node("normalise", Normalise(), {"advantage": "advantage"}),
        Node("chance", LogProbability(), {"logits": "policy.logits", "mask": "mask", "action": "action"}),
        Node("surrogate", surrogate, moved),
        Node("surprise", NegativeLogLikelihood(), {"log_prob": "chance.log_prob"}),
        Node("error", ValueLoss(config.value_clip), {"value": "critic.value", "target": "target", "old": "old"}),
        Node("loss", ActorCriticLoss(config.value_weight), {"policy": "surrogate.loss", **rest}),
        Node("cloned", ActorCriticLoss(config.value_weight), {"policy": "surprise.loss", **rest}),
        Node("optimise", Adam(config.optimiser.clip), {port: port for port in Adam.takes}),
        Node("synchronise", Synchroniser(), {"online": "parameters", "target": "target_parameters", "share": "share"}),
    ]


# Actor-critic learner: A2C, A3C, PPO and V-trace by the switches of its config.


Examples = dict[str, Array]
HEAD = "advantage."
PATIENCE = 1.5  # times the target KL divergence, beyond which a rollout's updates end


class ActorCriticLearner(NetworkLearner):
    """Learner by policy gradients on rollouts, with a critic; implements `Differentiable` and `Imitating`.

    Raises:
        BuildError: the config does not fit the spaces.
        ValueError: the environment's advice is not exactly one feature (with a scorer).
    """

    schedule: Schedule = Linear(0.0, 0.0, 0.0)

    def __init__(
        self,
        config: ActorCritic,
        observation: Space,
        actions: spaces.Discrete,
        advice: slice | None,
        backend: Backend,
    ) -> None:
        self.config, self.actions = config, int(actions.n)
        graph, roots = nodes(config, actions, advice), root_spaces(config, observation, actions)
        super().__init__(config, (*INPUTS, *UNROLLED) if config.recurrent else INPUTS, graph, roots, advice, backend)
        self.inputs: StepInputs = (
            SequenceInputs(backend, config.rollout, config.recurrent)
            if config.recurrent
            else StepInputs(backend, config.rollout)
        )
        self.entropy = Linear(config.entropy.start, config.entropy.end, config.entropy.fraction)

    def buffer(self, rng: np.random.Generator) -> RolloutBuffer:
        """Return a new empty rollout buffer, of the config's number of steps."""
        return RolloutBuffer(self.memory("rollout", rng))

    def act(
        self,
        state: State,
        observation: Observations,
        mask: Masks,
        exploration: NDArray[np.float32],
        rng: np.random.Generator,
        carry: NDArray[np.float32] | None = None,
    ) -> ActResult:
        """Draw an action for each of B environments from the policy; ``exploration`` is ignored.

        Observations are [B, D], ``mask`` of legal actions [B, N]; returns actions [B], the natural logarithms of
        their probabilities [B], and, for a recurrent policy, its memory [B, H] after the step.
        """
        del exploration
        give, host = self.backend.asarray, self.backend.to_numpy
        noise = rng.random((len(observation), self.actions), np.float32)
        feeds = {**self.inputs.now(observation, carry), "mask": give(mask), "noise": give(noise)}
        fetches = ("draw.action", "draw.log_prob", *self.inputs.fetches)
        with self.backend.without_gradient():
            outputs = self.bound.run(fetches, feeds, self.variables(state))
        carried = [host(outputs[wire]) for wire in self.inputs.fetches]
        return ActResult(host(outputs["draw.action"]), host(outputs["draw.log_prob"]), *carried)

    def values(self, state: State, observation: Observations, mask: Masks) -> NDArray[np.float32]:
        """Return the exported values [B, N] of N actions in the reward's unit: temperature · logits.

        Observations are [B, D], ``mask`` [B, N]. A recurrent policy is evaluated with the memory of an episode's start.
        """
        feeds = {**self.inputs.now(observation, None), "mask": self.backend.asarray(mask)}
        with self.backend.without_gradient():
            logits = self.bound.run(("policy.logits",), feeds, {"online": self.exported(state)})["policy.logits"]
        return self.backend.to_numpy(logits) * np.float32(self.config.temperature)

    def update(self, state: State, batch: BaseBatch, rng: np.random.Generator) -> tuple[State, LearnStats]:
        """Run the config's epochs of minibatch steps on a rollout; return the new state, and statistics.

        The epochs end early once the KL divergence from the behaviour policy exceeds 1.5 · ``config.stop`` nats.
        """
        examples, config, progress = self.examples(batch.arrays), self.config, batch.progress
        rate, weight = learning_rate(config.optimiser, progress), self._weight(progress)
        figures: list[tuple[Array, Array]] = []
        near = True
        for epoch in range(config.epochs):
            if epoch == 0 or config.estimator == "vtrace":
                examples.update(self._estimate_advantages(state, examples))
            for part in self._minibatches(examples, config.batch, rng):
                result, gradient = self._differentiate(state, "loss.loss", part, weight)
                state = self.step_optimiser(state, gradient, rate)
                figures.append((result["loss.loss"].mean(), result["chance.entropy"].mean()))
                near = config.stop is None or not float(result["surrogate.divergence"].mean()) > PATIENCE * config.stop
                if not near:
                    break
            if not near:
                break
        loss, entropy = (float(sum(column) / len(figures)) for column in zip(*figures, strict=True))
        return self.update_average(state, progress), LearnStats(len(figures), loss, rate, entropy)

    def gradient(self, state: State, batch: BaseBatch) -> tuple[Array, LearnStats]:
        """Return the gradient [P] of the mean loss over a whole rollout by P parameters, and statistics."""
        examples = self.examples(batch.arrays)
        examples.update(self._estimate_advantages(state, examples))
        result, gradient = self._differentiate(state, "loss.loss", examples, self._weight(batch.progress))
        loss, entropy = (float(result[name].mean()) for name in ("loss.loss", "chance.entropy"))
        return gradient, LearnStats(1, loss, learning_rate(self.config.optimiser, batch.progress), entropy)

    def apply(self, state: State, gradient: Array, progress: float) -> State:
        """Return the state after an optimiser step along a gradient [P]; ``progress`` (0 to 1) sets the learning rate.

        The running average of the parameters is updated too.
        """
        return self.update_average(
            self.step_optimiser(state, gradient, learning_rate(self.config.optimiser, progress)), progress
        )

    def _weight(self, progress: float) -> float:
        return float(self.entropy.epsilon(progress, 1)[0])

    def examples(self, slabs: Host) -> Examples:
        """Convert a rollout's arrays [B, T, …] to examples [B·T, …] on the backend.

        `done` becomes 1 − discount of the following state, 1 at ends; `last_observation` [B, D] and `last_mask` [B, N]
        belong to the state after the last step.
        """
        give = self.backend.asarray
        flat = {port: give(slabs[port].reshape(-1, *slabs[port].shape[2:])) for port in KEPT}
        flat["done"] = give((1.0 - slabs["discount"] * ~slabs["done"].astype(np.bool_)).reshape(-1))
        ends = {"last_observation": give(slabs["last_observation"]), "last_mask": give(slabs["last_mask"])}
        return {**flat, **ends, **self.inputs.whole(slabs)}

    def _estimate_advantages(self, state: State, batch: Examples) -> Examples:
        """Return `advantage`, value `target`, and the critic's present values `old` of the examples, [B·T] each."""
        shape, behaviour, variables = (-1, self.config.rollout), batch["log_prob"], self.variables(state)
        off_policy = self.config.estimator == "vtrace"
        with self.backend.without_gradient():
            fetches = ("critic.value", "chance.log_prob") if off_policy else ("critic.value",)
            feeds = {"mask": batch["mask"], "action": batch["action"]}
            outputs = self.bound.run(fetches, {**self.inputs.feeds(batch), **feeds}, variables)
            following = {**self.inputs.last(batch, self.bound, variables), "mask": batch["last_mask"]}
            last = self.bound.run(("critic.value",), following, variables)["critic.value"]
            log_prob = outputs["chance.log_prob"] if off_policy else behaviour
            reward, ends, value = (
                part.reshape(shape) for part in (batch["reward"], batch["done"], outputs["critic.value"])
            )
            trajectories = {
                "rewards": self._centre_rewards(reward, ends, value, last) if self.config.centred else reward,
                "ends": ends,
                "values": value,
                "last": last,
                "log_probs": log_prob.reshape(shape),
                "behaviours": behaviour.reshape(shape),
            }
            estimate = self.bound.run(("estimate.advantage", "estimate.target"), trajectories)
            advantage = estimate["estimate.advantage"].reshape(-1)
            if self.config.normalise:
                advantage = self.bound.run(("normalise.advantage",), {"advantage": advantage})["normalise.advantage"]
        return {
            "advantage": advantage,
            "target": estimate["estimate.target"].reshape(-1),
            "old": outputs["critic.value"],
        }

    def _centre_rewards(self, reward: Array, ends: Array, value: Array, last: Array) -> Array:
        """Return ``reward`` [B, T] minus each decision's share of a level, the one at which the mean TD error is 0.

        ``ends`` is 1 − discount [B, T], ``value`` the critic's [B, T], and
        ``last`` [B] the value after the last step.
        """
        following = self.backend.xp.concat([value[:, 1:], last[:, None]], axis=1)
        gone = 1.0 - self.config.gamma * (1.0 - ends)
        return centre_rewards(self.backend.xp, reward, gone, reward + (1.0 - gone) * following - value)

    def _minibatches(self, batch: Examples, wanted: int | None, rng: np.random.Generator) -> Iterator[Examples]:
        count = len(batch["reward"])
        if wanted is None or wanted >= count:
            yield batch
            return
        for places in self.inputs.split(count, wanted, rng):
            yield self.inputs.pick(batch, EXAMPLE, places)

    def _differentiate(self, state: State, loss: str, examples: Examples, weight: float) -> tuple[Any, Array]:
        feeds = {name: examples[name] for name in EXAMPLE if name != "observation"}
        feeds = {**feeds, **self.inputs.feeds(examples), "entropy_weight": weight}
        fetches = (loss, "surrogate.divergence", "chance.entropy")
        return self.bound.gradient(loss, fetches, feeds, self.variables(state))

    def imitate(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> tuple[State, LearnStats]:
        """Clone an expert's behaviour: raise the likelihood of its actions, and fit the critic (settings: `Cloning`).

        ``slabs`` are its transitions, B at a time; an incomplete last rollout is dropped. Returns state and statistics.

        Raises:
            ValueError: the transitions do not fill one rollout.
        """
        wanted, shown = self.config.cloning, list(self._complete_rollouts(state, buffer, slabs, rng))
        if not shown:
            raise ValueError(f"nothing was shown: {self.config.rollout} slabs make the first rollout")
        losses, entropies = [], []
        for _ in range(wanted.epochs):
            for examples in shown:
                examples.update(self._estimate_advantages(state, examples))
                for part in self._minibatches(examples, wanted.batch, rng):
                    result, gradient = self._differentiate(state, "cloned.loss", part, wanted.entropy)
                    state = self.step_optimiser(state, gradient, wanted.rate)
                    losses.append(float(result["cloned.loss"].mean()))
                    entropies.append(float(result["chance.entropy"].mean()))
        return state, LearnStats(len(losses), float(np.mean(losses)), wanted.rate, float(np.mean(entropies)))

    def _complete_rollouts(
        self, state: State, buffer: Buffer, slabs: Iterable[Experience], rng: np.random.Generator
    ) -> Iterator[Examples]:
        """Yield each whole rollout of T steps that ``slabs``, B transitions each, fill, as examples [B·T, …]."""
        assert isinstance(buffer, RolloutBuffer)  # noqa: S101  (narrows the type)
        buffer.clear()
        carry, none = None, np.zeros(0, np.float32)
        for slab in slabs:
            after = (
                self.act(state, slab.observation, slab.mask, none, rng, carry).carry if self.config.recurrent else None
            )
            whole = buffer.collect(slab, self.inputs.before(slab, carry))
            carry = None if after is None else after * ~slab.done[:, None]
            if whole is not None:
                yield self.examples({port: value.copy() for port, value in whole.items()})
        buffer.clear()

    def described(self) -> tuple[str, dict[str, Any]]:
        """Return the policy's type (`network`, or `scorer` of candidates) and config, with the GRU's units, if any."""
        kind, config = super().described()
        recurrent = {"recurrent": self.config.recurrent} if self.config.recurrent else {}
        return kind, {**config, "dueling": False, **recurrent} if kind == "network" else config

    def export(self, state: State) -> Exported:
        """Return type (`network`, or `scorer` of candidates), config and arrays; values are temperature · logits."""
        views = {name: self.backend.to_numpy(view) for name, view in self.exported(state).items()}
        own = {name.removeprefix(POLICY): view for name, view in views.items() if name.startswith(ACTOR)}
        scale = np.float32(self.config.temperature)
        return *self.described(), {
            name: view * scale if name.startswith(HEAD) else view.copy() for name, view in own.items()
        }

    def start(self, state: State, arrays: Host, config: Mapping[str, Any] | None = None) -> State:
        """Warm-start the actor from a published policy's arrays and config (None: not checked).

        The critic, which is not published, keeps its initial values. A dueling head's `value.*` arrays do not affect
        the choice of actions, and are dropped.

        Raises:
            ValueError: the arrays are of another network.
        """
        self.compare(config, ("dueling",))
        scale = np.float32(self.config.temperature)
        values = {
            name if name.startswith(CORE) else f"{POLICY}{name}": value / scale if name.startswith(HEAD) else value
            for name, value in arrays.items()
            if not name.startswith("value.")
        }
        return state.but({"online": self.backend.asarray(self.started(state, values, ACTOR))})
