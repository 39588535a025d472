"""Components of value learning: targets, losses, quantiles, n-step returns, demonstrations.

Shapes: B examples (environments or transitions), N actions, K quantiles, H features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from workers.learning.components.base import (
    Arrays,
    Component,
    HostArrays,
    Memory,
    Node,
    SpaceError,
    Spaces,
    Variable,
    empty,
    reals,
)
from workers.learning.components.network import Composite, Trunk, apply, dense

FORBIDDEN = -1e30
"""Value of an illegal action: below all real values, finite in float32."""


class Target(Component):
    """Regression target: reward + discount · Q_evaluate(s', argmax over legal a of Q_select(s', a)), one number.

    With `select` from the online and `evaluate` from the target network this is Double DQN (van Hasselt et al., 2016,
    eq. 4); with both from the target network it is DQN (Mnih et al., 2015). `discount` is γⁿ, and 0 after a terminal.
    """

    takes: ClassVar = ("reward", "discount", "mask", "select", "evaluate")

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "reward")
        self.scalar(inputs, "discount")
        actions = self.vector(inputs, "select")
        for port in ("mask", "evaluate"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {actions} actions")
        return {"target": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        select = inputs["select"]
        legal = xp.where(inputs["mask"], select, xp.full_like(select, FORBIDDEN))
        if inputs["evaluate"] is select:
            value = xp.max(legal, axis=1)
        else:
            best = xp.reshape(xp.argmax(legal, axis=1), (-1, 1))
            value = xp.take_along_axis(inputs["evaluate"], best, axis=1)[:, 0]
        return {"target": inputs["reward"] + inputs["discount"] * value}


class Huber(Component):
    """Huber's loss of predicted − target times the weight: quadratic up to `delta`, linear beyond (Huber, 1964)."""

    takes: ClassVar = ("predicted", "target", "weight")

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the spaces of `loss` and absolute `error`; raises SpaceError unless inputs are single numbers."""
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals(), "error": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `loss` [B], q²/2 + δ·(|error| − q) with q = min(|error|, δ), times the weight; and |`error`| [B]."""
        error = xp.abs(inputs["predicted"] - inputs["target"])
        inside = xp.clip(error, 0.0, self.delta)
        return {"loss": inputs["weight"] * (0.5 * inside * inside + self.delta * (error - inside)), "error": error}


# Distributional values by quantiles (Dabney, Rowland, Bellemare & Munos, QR-DQN, AAAI 2018).
#
# A head gives K quantiles of the return of each action, at the mid-points τ_i = (2i − 1)/2K of equal shares of its
# mass. Their mean is the action's value. All heads are linear in the features, so that the mean is a linear head too,
# which `mean_of_quantiles` gives as a plain network.


def matrix(component: Component, inputs: Spaces, port: str) -> tuple[int, int]:
    """Return the shape (N, K) of the input ``port``, which has K quantiles for each of N actions.

    Raises:
        SpaceError: the input is no matrix.
    """
    space = inputs[port]
    if not isinstance(space, spaces.Box) or len(space.shape) != 2:
        raise SpaceError(component.name, port, space, "quantiles of every action, [N, K]")
    return int(space.shape[0]), int(space.shape[1])


class QuantileHead(Component):
    """Linear head: features [H], mask [N] → K quantiles of each action's return, [N, K]; initially 0."""

    takes: ClassVar = ("features", "mask")

    def __init__(self, actions: int, quantiles: int) -> None:
        self.actions, self.quantiles = actions, quantiles

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.vector(inputs, "features")
        if self.vector(inputs, "mask") != self.actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"a vector of {self.actions} actions")
        return {"quantiles": reals(self.actions, self.quantiles)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Return the variables of one linear layer, initially 0; row a·K + i is quantile i of action a."""
        return dense("advantage", self.vector(inputs, "features"), self.actions * self.quantiles, zero=True)

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        flat = apply("advantage", variables, inputs["features"])
        return {"quantiles": xp.reshape(flat, (-1, self.actions, self.quantiles))}


class DuelingQuantileHead(QuantileHead):
    """Dueling head for quantiles: features [H], mask [N] → quantiles [N, K]; initially 0.

    Each quantile is the state's value plus the action's advantage minus the mean advantage of the legal actions (Wang
    et al., 2016, eq. 9).
    """

    @override
    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        return {
            **super().variables(inputs),
            **dense("value", self.vector(inputs, "features"), self.quantiles, zero=True),
        }

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        advantage = super().run(xp, variables, inputs)["quantiles"]
        value = apply("value", variables, inputs["features"])[:, None, :]
        legal = xp.astype(inputs["mask"], advantage.dtype)[:, :, None]
        mean = xp.sum(advantage * legal, axis=1, keepdims=True) / xp.sum(legal, axis=1, keepdims=True)
        return {"quantiles": value + advantage - mean}


class Mean(Component):
    """Expected return of each of N actions, the mean of K quantiles: quantiles [N, K] → values [N]."""

    takes: ClassVar = ("quantiles",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        return {"values": reals(matrix(self, inputs, "quantiles")[0])}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `values` [B, N], the means of quantiles [B, N, K], which have equal weights."""
        return {"values": xp.mean(inputs["quantiles"], axis=2)}


class QuantileNetwork(Composite):
    """Quantile network: observation [D], mask [N] → quantiles [N, K] of each action's return, and their means [N]."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, trunk: Trunk, head: QuantileHead) -> None:
        self.trunk, self.head, self.mean = trunk, head, Mean()

    @override
    def calls(self) -> tuple[Node, ...]:
        return (
            Node("trunk", self.trunk, {"observation": "observation"}),
            Node("head", self.head, {"features": "trunk.features", "mask": "mask"}),
            Node("mean", self.mean, {"quantiles": "head.quantiles"}),
        )

    @override
    def results(self) -> Mapping[str, str]:
        return {"quantiles": "head.quantiles", "values": "mean.values"}


class PickQuantiles(Component):
    """Selection of the taken action's quantiles: quantiles [N, K], index `action` → `taken` [K]."""

    takes: ClassVar = ("quantiles", "action")

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions, quantiles = matrix(self, inputs, "quantiles")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"taken": reals(quantiles)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"taken": quantiles_at(xp, inputs["quantiles"], inputs["action"])}


def quantiles_at(xp: Any, quantiles: Any, action: Any) -> Any:
    """Return the quantiles [B, K] of the actions with indices ``action`` [B], from ``quantiles`` [B, N, K]."""
    batch, _, count = quantiles.shape
    index = xp.broadcast_to(xp.reshape(action, (-1, 1, 1)), (batch, 1, count))
    return xp.take_along_axis(quantiles, index, axis=1)[:, 0]


class QuantileTarget(Component):
    """Regression target [K]: reward + discount · the next state's quantiles for its best legal action.

    `evaluate` [N, K] are the quantiles, of the target network; `select` [N] are the values that choose the action, of
    the online network for Double DQN, else of the target network. `discount` is 0 after a terminal.
    """

    takes: ClassVar = ("reward", "discount", "mask", "select", "evaluate")

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "reward")
        self.scalar(inputs, "discount")
        actions, quantiles = matrix(self, inputs, "evaluate")
        for port in ("mask", "select"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {actions} actions")
        return {"target": reals(quantiles)}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        select = inputs["select"]
        best = xp.argmax(xp.where(inputs["mask"], select, xp.full_like(select, FORBIDDEN)), axis=1)
        following = quantiles_at(xp, inputs["evaluate"], best)
        return {"target": inputs["reward"][:, None] + inputs["discount"][:, None] * following}


class QuantileHuber(Component):
    """Quantile regression loss (QR-DQN, eq. 10), times the weight: Σ_i mean_j |τ_i − [u_ij < 0]| · Huber_δ(u_ij)/δ.

    u_ij = target_j − predicted_i, with K quantiles of each. `error` is the absolute difference of their means.
    """

    takes: ClassVar = ("predicted", "target", "weight")

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the spaces of `loss` and `error`, one number each; SpaceError for unequal numbers of quantiles."""
        self.scalar(inputs, "weight")
        if self.vector(inputs, "predicted") != self.vector(inputs, "target"):
            raise SpaceError(self.name, "target", inputs["target"], f"as many quantiles as {inputs['predicted']}")
        return {"loss": reals(), "error": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `loss` [B] and `error` [B]; Huber is q²/2 + δ·(|u| − q) with q = min(|u|, δ), for both branches."""
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
    """Return the arrays, by name, of a plain network whose values are the means of a quantile network's K quantiles.

    ``views`` are the quantile network's arrays; those of its heads are averaged over the ``quantiles``.
    """
    result = {name: view.copy() for name, view in views.items()}
    for name, view in views.items():
        if name.startswith(("advantage.", "value.")):
            shares = view.reshape(-1, quantiles, *view.shape[1:])
            result[name] = np.ascontiguousarray(shares.mean(axis=1, dtype=np.float64), np.float32)
    return result


def spread(views: Mapping[str, NDArray[Any]], quantiles: int) -> dict[str, NDArray[Any]]:
    """Return the arrays, by name, of a quantile network whose K quantiles all equal a plain network's values."""
    heads = ("advantage.", "value.")
    return {name: np.repeat(v, quantiles, axis=0) if name.startswith(heads) else v for name, v in views.items()}


# n-step returns over slabs of environments in lock-step.


STEP = ("observation", "mask", "action", "reward", "done", "next_observation", "next_mask")


class NStep(Memory):
    """n-step returns R = Σ_{k<n} γᵏ·r_k over consecutive steps of B environments, truncated at the first terminal.

    The output `discount` [B] is γⁿ, and 0 where the episode ended within the window (Sutton, 1988; as in Hessel et al.,
    2018), so that finite horizons are exact. The first n − 1 steps give no transitions. A step's own `discount` [B]
    multiplies γ (semi-Markov: Bradtke and Duff, 1994).

    Args:
        steps: n; below 1 raises ValueError.
        gamma: discount factor γ per step, 0 to 1.
    """

    takes: ClassVar = STEP

    def __init__(self, steps: int, gamma: float) -> None:
        if steps < 1:
            raise ValueError(f"n_step is {steps}, must be 1 or more")
        self.steps, self.gamma = steps, gamma
        self.spaces: Spaces = {}
        self.window: list[dict[str, NDArray[Any]]] = []

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "reward")
        self.scalar(inputs, "done")
        spaces = {port: inputs[port] for port in STEP if port != "done"}
        return {**spaces, "discount": reals()}

    @override
    def allocate(self, inputs: Spaces, rng: np.random.Generator) -> None:
        self.spaces = dict(inputs)
        self.window = []

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Add a step of B environments; return B transitions over the last n steps, or none while there are fewer."""
        slab = {port: np.asarray(inputs[port]) for port in STEP}
        if inputs.get("discount") is not None:
            slab["discount"] = np.asarray(inputs["discount"])
        if self.steps == 1:
            return self._transition([slab])
        self.window.append({port: np.array(value) for port, value in slab.items()})
        if len(self.window) < self.steps:
            return {port: empty(space, 0) for port, space in self.output_spaces(self.spaces).items()}
        transition = self._transition(self.window)
        del self.window[0]
        return transition

    def _transition(self, window: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
        """Return the B transitions over a window of steps, arrays [B, …], summed backwards: R ← r + γ·(1 − done)·R."""
        total = np.zeros_like(window[0]["reward"], dtype=np.float32)
        discount = np.ones_like(total)
        for slab in reversed(window):
            alive = self.gamma * (1.0 - slab["done"].astype(np.float32))
            if "discount" in slab:
                alive = alive * slab["discount"]
            total = slab["reward"] + alive * total
            discount = alive * discount
        first, last = window[0], window[-1]
        return {
            **{port: first[port] for port in ("observation", "mask", "action")},
            "reward": total.astype(np.float32),
            "discount": discount.astype(np.float32),
            "next_observation": last["next_observation"],
            "next_mask": last["next_mask"],
        }

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return {f"{index}.{port}": value for index, slab in enumerate(self.window) for port, value in slab.items()}

    @override
    def restore(self, state: HostArrays) -> None:
        length = len({name.split(".")[0] for name in state})
        ports = (*STEP, "discount") if "0.discount" in state else STEP
        self.window = [{port: np.array(state[f"{index}.{port}"]) for port in ports} for index in range(length)]


# Learning from demonstrations: the large-margin loss (Hester et al., Deep Q-learning from Demonstrations, 2018).


class LargeMargin(Component):
    """Large-margin loss: max over legal a of [Q(s, a) + margin·[a ≠ a_E]] − Q(s, a_E), times `expert` (0 or 1).

    Inputs: values Q(s, ·) [N], mask [N], the expert's `action` a_E. The loss is 0 once Q(s, a_E) exceeds all others by
    the margin (in units of value). Without it, actions that occur in no demonstration would keep arbitrary values.
    """

    takes: ClassVar = ("values", "mask", "action", "expert")

    def __init__(self, margin: float) -> None:
        self.margin = margin

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "values")
        if self.vector(inputs, "mask") != actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per value of {inputs['values']}")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        self.scalar(inputs, "expert")
        return {"loss": reals()}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `loss` [B]: the best legal value, with non-expert actions raised by the margin, minus the expert's."""
        values = inputs["values"]
        index = xp.reshape(inputs["action"], (-1, 1))
        place = xp.cumulative_sum(xp.ones_like(values), axis=1) - 1.0
        rivals = xp.astype(place != xp.astype(index, values.dtype), values.dtype)
        raised = xp.where(inputs["mask"], values + self.margin * rivals, xp.full_like(values, FORBIDDEN))
        own = xp.take_along_axis(values, index, axis=1)[:, 0]
        return {"loss": inputs["expert"] * (xp.max(raised, axis=1) - own)}


class Joined(Component):
    """Weighted sum loss + share · other of two losses, one number for each example."""

    takes: ClassVar = ("loss", "other")

    def __init__(self, share: float) -> None:
        self.share = share

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"loss": inputs["loss"] + self.share * inputs["other"]}
