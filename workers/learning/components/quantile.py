"""Distributional values by quantiles (Dabney, Rowland, Bellemare & Munos, QR-DQN, AAAI 2018).

A head gives K quantiles of the return of each action, at the mid-points τ_i = (2i − 1)/2K of equal shares of its mass.
Their mean is the action's value. All heads are linear in the features, so that the mean is a linear head too:
`mean_of_quantiles` gives its arrays, and a plain network says exactly what the quantile network's mean says.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from workers.learning.components.base import Arrays, Component, Node, SpaceError, Variable
from workers.learning.components.composite import Composite
from workers.learning.components.network import Trunk, apply, dense
from workers.learning.components.value import FORBIDDEN
from workers.learning.spaces import Spaces, reals


def matrix(component: Component, inputs: Spaces, port: str) -> tuple[int, int]:
    """Return the shape [N, K] of an input of K quantiles per action; raises SpaceError where it is none."""
    space = inputs[port]
    if not isinstance(space, spaces.Box) or len(space.shape) != 2:
        raise SpaceError(component.name, port, space, "quantiles of every action, [N, K]")
    return int(space.shape[0]), int(space.shape[1])


class QuantileHead(Component):
    """features, mask → K quantiles per action [N, K]. Starts at zero."""

    takes: ClassVar = ("features", "mask")

    def __init__(self, actions: int, quantiles: int) -> None:
        self.actions, self.quantiles = actions, quantiles

    def gives(self, inputs: Spaces) -> Spaces:
        """Quantiles [N, K]."""
        self.vector(inputs, "features")
        if self.vector(inputs, "mask") != self.actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"a vector of {self.actions} actions")
        return {"quantiles": reals(self.actions, self.quantiles)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """One linear layer, zero at the start; row a·K + i is quantile i of action a."""
        return dense("advantage", self.vector(inputs, "features"), self.actions * self.quantiles, zero=True)

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Linear."""
        flat = apply("advantage", variables, inputs["features"])
        return {"quantiles": xp.reshape(flat, (-1, self.actions, self.quantiles))}


class DuelingQuantileHead(QuantileHead):
    """State value + advantages centred over the legal actions (Wang et al., 2016, eq. 9), quantile by quantile."""

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Two linear layers, zero at the start."""
        return {
            **super().variables(inputs),
            **dense("value", self.vector(inputs, "features"), self.quantiles, zero=True),
        }

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Join both streams."""
        advantage = super().run(xp, variables, inputs)["quantiles"]
        value = apply("value", variables, inputs["features"])[:, None, :]
        legal = xp.astype(inputs["mask"], advantage.dtype)[:, :, None]
        mean = xp.sum(advantage * legal, axis=1, keepdims=True) / xp.sum(legal, axis=1, keepdims=True)
        return {"quantiles": value + advantage - mean}


class Mean(Component):
    """Quantiles [N, K] → values [N]: what is expected of each action."""

    takes: ClassVar = ("quantiles",)

    def gives(self, inputs: Spaces) -> Spaces:
        """One value per action."""
        return {"values": reals(matrix(self, inputs, "quantiles")[0])}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The mean over quantiles: each stands for an equal share."""
        return {"values": xp.mean(inputs["quantiles"], axis=2)}


class QuantileNetwork(Composite):
    """observation [D], mask [N] → quantiles [N, K] and their means, values [N]."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, trunk: Trunk, head: QuantileHead) -> None:
        self.trunk, self.head, self.mean = trunk, head, Mean()

    def calls(self) -> tuple[Node, ...]:
        """Trunk, head, mean."""
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features", "mask": "mask"}),
            Node("mean", self.mean, {"quantiles": "head.quantiles"}),
        )

    def results(self) -> Mapping[str, str]:
        """The head's quantiles, and their mean."""
        return {"quantiles": "head.quantiles", "values": "mean.values"}


class PickQuantiles(Component):
    """The quantiles [K] of the action that was taken, out of [N, K]."""

    takes: ClassVar = ("quantiles", "action")

    def gives(self, inputs: Spaces) -> Spaces:
        """K numbers."""
        actions, quantiles = matrix(self, inputs, "quantiles")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"taken": reals(quantiles)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Gather along the actions."""
        return {"taken": taken(xp, inputs["quantiles"], inputs["action"])}


def taken(xp: Any, quantiles: Any, action: Any) -> Any:
    """Quantiles [B, N, K] of one action each [B] → [B, K]."""
    batch, _, count = quantiles.shape
    index = xp.broadcast_to(xp.reshape(action, (-1, 1, 1)), (batch, 1, count))
    return xp.take_along_axis(quantiles, index, axis=1)[:, 0]


class QuantileTarget(Component):
    """reward + discount · each quantile of the action that is best by `select`, as `evaluate` sees it: [K].

    `select` are values: of the online network for Double DQN, else of the target network.
    """

    takes: ClassVar = ("reward", "discount", "mask", "select", "evaluate")

    def gives(self, inputs: Spaces) -> Spaces:
        """K numbers."""
        self.scalar(inputs, "reward")
        self.scalar(inputs, "discount")
        actions, quantiles = matrix(self, inputs, "evaluate")
        for port in ("mask", "select"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {actions} actions")
        return {"target": reals(quantiles)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """One step of the distributional Bellman equation."""
        select = inputs["select"]
        best = xp.argmax(xp.where(inputs["mask"], select, xp.full_like(select, FORBIDDEN)), axis=1)
        following = taken(xp, inputs["evaluate"], best)
        return {"target": inputs["reward"][:, None] + inputs["discount"][:, None] * following}


class QuantileHuber(Component):
    """Σ_i mean_j |τ_i − [u_ij < 0]| · Huber_δ(u_ij)/δ, u_ij = target_j − predicted_i, times the weight (eq. 10).

    The error is that of the means.
    """

    takes: ClassVar = ("predicted", "target", "weight")

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def gives(self, inputs: Spaces) -> Spaces:
        """The loss and the error's size (the priority of the example)."""
        self.scalar(inputs, "weight")
        if self.vector(inputs, "predicted") != self.vector(inputs, "target"):
            raise SpaceError(self.name, "target", inputs["target"], f"as many quantiles as {inputs['predicted']}")
        return {"loss": reals(), "error": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """With q = min(|u|, δ), Huber is q²/2 + δ·(|u| − q), which is both branches in one."""
        predicted, target = inputs["predicted"], inputs["target"]
        count = predicted.shape[1]
        middle = (xp.cumulative_sum(xp.ones_like(predicted), axis=1) - 0.5) / count
        error = target[:, None, :] - predicted[:, :, None]  # [B, i, j]
        size = xp.abs(error)
        inside = xp.clip(size, 0.0, self.delta)
        huber = (0.5 * inside * inside + self.delta * (size - inside)) / self.delta
        lean = xp.abs(middle[:, :, None] - xp.astype(error < 0, predicted.dtype))
        loss = xp.sum(xp.mean(lean * huber, axis=2), axis=1)
        between = xp.abs(xp.mean(predicted, axis=1) - xp.mean(target, axis=1))
        return {"loss": inputs["weight"] * loss, "error": between}


def mean_of_quantiles(views: Mapping[str, NDArray[Any]], quantiles: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of the plain network that says what this one's mean says: heads averaged over quantiles."""
    heads = ("advantage.", "value.")
    return {name: _mean(view, quantiles) if name.startswith(heads) else view.copy() for name, view in views.items()}


def _mean(view: NDArray[Any], quantiles: int) -> NDArray[Any]:
    shares = view.reshape(-1, quantiles, *view.shape[1:])
    return np.ascontiguousarray(shares.mean(axis=1, dtype=np.float64), np.float32)


def spread(views: Mapping[str, NDArray[Any]], quantiles: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of the quantile network whose every quantile says what this plain network says."""
    heads = ("advantage.", "value.")
    return {name: np.repeat(v, quantiles, axis=0) if name.startswith(heads) else v for name, v in views.items()}
