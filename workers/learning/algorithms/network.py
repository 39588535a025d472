"""Base class of network learners: flat variable vectors, optimiser, running average, export and warm start.

Shapes: P parameters of a network.
"""

import math
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.learning.algorithms import buffers
from workers.learning.algorithms.base import Host, State
from workers.learning.algorithms.buffers import Coordinates
from workers.learning.algorithms.config import DQN, ActorCritic, Optimiser
from workers.learning.backends import Array, Backend, Views, flatten
from workers.learning.build import Bound, bind, complete, compose, initial
from workers.learning.components.base import Memory, Node, Spaces

FLAT = ("parameters", "gradient", "first", "second", "count", "rate", "target_parameters", "share")
"""Feeds of optimiser and synchroniser."""
VECTORS = ("first", "second", "average")
"""Optimiser moments, and the exported running average of the parameters."""


def learning_rate(config: Optimiser, progress: float) -> float:
    """Return the learning rate at ``progress`` (0 to 1): constant up to `hold`, then half a cosine to `rate · end`."""
    if progress <= config.hold:
        return config.rate
    share = min(1.0, (progress - config.hold) / max(1.0 - config.hold, 1e-9))
    return config.rate * (config.end + (1.0 - config.end) * 0.5 * (1.0 + math.cos(math.pi * share)))


class NetworkLearner:
    """Learner base: a graph of components on a backend; each variable set is a flat vector [P] of the state.

    Args:
        config: the algorithm's settings.
        inputs: names of the graph's root inputs.
        nodes: calls of the graph; the optimiser's is named `optimise`, the blending of parameters `synchronise`.
        spaces: spaces of the root inputs by name.
        advice: slice of the feature that scores each candidate; None: no such feature.
        backend: numeric library to run on.

    Raises:
        BuildError: the graph does not fit the spaces.
    """

    acting: tuple[str, ...] = ("online",)
    shared: tuple[str, ...] = ("online",)

    def __init__(
        self,
        config: DQN | ActorCritic,
        inputs: Iterable[str],
        nodes: list[Node],
        spaces: Spaces,
        advice: slice | None,
        backend: Backend,
    ) -> None:
        self.backend, self.advice, self._switches = backend, advice, config
        self.bound: Bound = bind(complete(compose(tuple(inputs), nodes), spaces), backend, np.random.default_rng(0))
        self.report = self.bound.report
        self.layout = self.bound.stores["online"].layout
        self.coordinates = Coordinates(config.network, self.layout, backend)

    def init(self, rng: np.random.Generator) -> State:
        """Return the initial state: all variable sets equal and drawn by ``rng``, moments and average 0."""
        drawn = self.backend.asarray(flatten(initial(self.bound.completed, rng)))
        flat = self.backend.to_numpy(self.coordinates.published(drawn))
        arrays = {name: self.backend.asarray(flat.copy()) for name in self.shared}
        arrays |= {name: self.backend.asarray(np.zeros_like(flat)) for name in VECTORS}
        return State(arrays, {"updates": 0, "averaging": 0})

    def memory(self, name: str, rng: np.random.Generator) -> Any:
        """Return a new, empty copy of the memory component of the node ``name``; it draws by ``rng``."""
        node = next(node for node in self.bound.completed.graph.nodes if node.name == name)
        forecasts = copy(node.component)
        assert isinstance(forecasts, Memory)  # noqa: S101  (narrows the type)
        forecasts.allocate({port: self.bound.completed.spaces[wire] for port, wire in node.inputs.items()}, rng)
        return forecasts

    def views(self, state: State, name: str) -> Views:
        """Return the state's flat vector ``name`` ("online", "average") cut into variables by name."""
        if name not in state.cuts:
            state.cuts[name] = self.backend.cut(self.layout, state.arrays[name])
        return state.cuts[name]

    def variables(self, state: State) -> dict[str, Views]:
        """Return all variable sets of the graph: set's name → variable's name → array."""
        return {name: self.views(state, name) for name in self.shared}

    def step_optimiser(self, state: State, gradient: Array, rate: float) -> State:
        """Return the state after one Adam step down ``gradient`` [P] at learning rate ``rate``, which is scaled by the
        share (0 to 1) done of the config's first ``ramp`` updates."""
        updates = state.values["updates"] + 1
        feeds = {
            "parameters": self.coordinates.learned(state.arrays["online"]),
            "gradient": self.coordinates.gradient(gradient),
            "first": state.arrays["first"],
            "second": state.arrays["second"],
            "count": updates,
            "rate": rate * min(1.0, updates / max(self._switches.optimiser.ramp, 1)),
        }
        with self.backend.without_gradient():
            outputs = self.bound.run(("optimise.parameters", "optimise.first", "optimise.second"), feeds)
            online = self.coordinates.published(outputs["optimise.parameters"])
        moved = {"online": online, "first": outputs["optimise.first"]}
        return state.but({**moved, "second": outputs["optimise.second"]}, updates=updates)

    def update_average(self, state: State, progress: float) -> State:
        """Return the state with an updated running average, from the share `average_from` (0 to 1) of the training on.

        It is a plain mean until the weight `average` is reached, so that in a short training the first
        parameters do not outweigh later ones.
        """
        share, count = self._switches.average, state.values["averaging"] + 1
        if not share or progress < self._switches.average_from:
            return state
        return self.blend_into(state, "average", max(share, 1.0 / count)).but({}, averaging=count)

    def blend_into(self, state: State, name: str, share: float) -> State:
        """Return the state with a share (0 to 1) of the online parameters blended into its vector ``name`` [P]."""
        feeds = {"parameters": state.arrays["online"], "target_parameters": state.arrays[name], "share": share}
        with self.backend.without_gradient():
            return state.but({name: self.bound.run(("synchronise.target",), feeds)["synchronise.target"]})

    def exported(self, state: State) -> Views:
        """Return the variables to export, by name: the running average if there is one, else the online ones."""
        return self.views(state, "average" if state.values["averaging"] else "online")

    def described(self) -> tuple[str, dict[str, Any]]:
        """Return type ("network", or "scorer" of candidates) and config of the policy, as the service reads them."""
        network = self._switches.network
        if network.scorer is not None:
            return "scorer", buffers.scorer_config(network.scorer, network, self.advice)
        return "network", {
            "layers": list(network.layers),
            "activation": network.activation,
            "dueling": network.dueling,
        }

    def compare(self, config: Mapping[str, Any] | None, ignored: tuple[str, ...] = ()) -> None:
        """Check that a published policy's config (None: accepted) describes this network, but for ``ignored`` keys.

        Raises:
            ValueError: it describes another network.
        """
        own = {name: value for name, value in self.described()[1].items() if name not in ignored}
        other = {name: config[name] for name in own if name in config and config[name] != own[name]} if config else {}
        if other:
            raise ValueError(f"the published network has {other}, this agent { {name: own[name] for name in other} }")

    def started(self, state: State, host: Host, prefix: str | tuple[str, ...] = "") -> NDArray[np.float32]:
        """Return the online vector [P] with the variables whose names start with a prefix replaced by ``host``.

        Raises:
            ValueError: names or shapes of the given arrays differ from those variables'.
        """
        own = {name: self.backend.to_numpy(view) for name, view in self.views(state, "online").items()}
        wanted = {name: view.shape for name, view in own.items() if name.startswith(prefix)}
        shapes = {name: np.shape(value) for name, value in host.items()}
        if wanted != shapes:
            wrong = sorted(name for name in wanted.keys() | shapes.keys() if wanted.get(name) != shapes.get(name))
            mismatches = ", ".join(
                f"{name}: {shapes.get(name, 'none')} for {wanted.get(name, 'none')}" for name in wrong
            )
            raise ValueError(f"the published network does not fit this agent's spaces and layers ({mismatches})")
        return flatten({name: host.get(name, value) for name, value in own.items()})
