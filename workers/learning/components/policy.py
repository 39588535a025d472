"""Components of policy gradients: advantage estimators, categorical policies, and losses.

Shapes: B examples (trajectories or steps), T steps of a trajectory, N actions.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from typing_extensions import override

from workers.learning.backends import Array
from workers.learning.components.base import Arrays, Component, Pullback, Space, SpaceError, Spaces, reals
from workers.learning.components.value import FORBIDDEN

# Estimators of advantages and value targets over trajectories.
#
# An example is a trajectory of T steps: rewards, ends and values are vectors [T], and `last` is the value of the state
# after the last step. Nothing is bootstrapped across an end, so finite horizons are exact. Ends are 1, other steps 0,
# or 1 − discount for decisions of unequal duration (semi-Markov: Bradtke and Duff, 1994).


class Estimator(Component):
    """Base of advantage estimators: trajectories of T steps → advantages [T] and value targets [T].

    Inputs: `reward` [T]; `done` [T], 1 at ends, else 1 − further discount; `value` [T]; `last`, the next state's value.
    """

    takes: ClassVar[tuple[str, ...]] = ("reward", "done", "value", "last")

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def output_spaces(self, inputs: Spaces) -> Spaces:
        """Return the spaces of `advantage` and `target`, [T] each; raises SpaceError for vectors of other lengths."""
        steps = self.vector(inputs, "reward")
        for port in self.takes:
            if port == "last":
                self.scalar(inputs, port)
            elif self.vector(inputs, port) != steps:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {steps} steps")
        return {"advantage": reals(steps), "target": reals(steps)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `advantage` and `target`, [B, T] each, by `estimate`; values of next states are 0 after ends."""
        value, last = inputs["value"], inputs["last"][:, None]
        alive = self.gamma * (1.0 - xp.astype(inputs["done"], value.dtype))
        following = xp.concat([value[:, 1:], last], axis=1)
        advantage, target = self.estimate(xp, inputs, alive, inputs["reward"] + alive * following)
        return {"advantage": advantage, "target": target}

    @abstractmethod
    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        """Return advantages and value targets of B trajectories of T steps, [B, T] each.

        ``alive`` [B, T] is γ · (1 − done), so 0 at ends; ``backed`` [B, T] is reward + alive · V of the next state.
        """


class GAE(Estimator):
    """Generalised advantage estimation: A_t = Σ_l (γλ)^l·δ_{t+l} (Schulman et al., 2016, eq. 16), for on-policy data.

    δ_t = r_t + γ·V_{t+1} − V_t; λ is `trace` (0 to 1). The value target is A_t + V_t, the λ-return.
    """

    def __init__(self, gamma: float, trace: float) -> None:
        super().__init__(gamma)
        self.trace = trace

    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        """Return A_t = δ_t + γλ · A_{t+1} and A_t + V_t, [B, T]; ``alive`` is γ · (1 − done), ``backed`` δ_t + V_t."""
        advantage = discount_backwards(xp, backed - inputs["value"], self.trace * alive)
        return advantage, advantage + inputs["value"]


class VTrace(Estimator):
    """V-trace for off-policy data (Espeholt et al., 2018, eq. 1 and section 4.2).

    v_t = V_t + δ_t + γ·c_t·(v_{t+1} − V_{t+1}) with δ_t = ρ_t·(r_t + γ·V_{t+1} − V_t), where ρ_t and c_t are
    π(a_t)/μ(a_t) truncated at `rho` and `cut`, c_t also times `trace`. The advantage is ρ_t·(r_t + γ·v_{t+1} − V_t).
    On-policy, with `trace` 1, v_t is the n-step return. `log_prob` is log π(a_t), `behaviour` is log μ(a_t).
    """

    takes: ClassVar[tuple[str, ...]] = (*Estimator.takes, "log_prob", "behaviour")

    def __init__(self, gamma: float, trace: float = 1.0, rho: float = 1.0, cut: float = 1.0) -> None:
        super().__init__(gamma)
        self.trace, self.rho, self.cut = trace, rho, cut

    @override
    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        value, ratio = inputs["value"], xp.exp(inputs["log_prob"] - inputs["behaviour"])
        rho, cut = xp.clip(ratio, 0.0, self.rho), self.trace * xp.clip(ratio, 0.0, self.cut)
        above = discount_backwards(xp, rho * (backed - value), alive * cut)
        later = xp.concat([above[:, 1:], xp.zeros_like(above[:, :1])], axis=1)
        return rho * (backed + alive * later - value), value + above


def discount_backwards(xp: Any, terms: Array, factor: Array) -> Array:
    """Return x [B, T] of the backward recursion x_t = terms_t + factor_t·x_{t+1}; ``terms``, ``factor``: [B, T]."""
    steps = terms.shape[1]
    total = terms[:, steps - 1]
    results = [total]
    for step in range(steps - 2, -1, -1):
        total = terms[:, step] + factor[:, step] * total
        results.append(total)
    return xp.stack(results[::-1], axis=1)


class Normalise(Component):
    """Standardise `advantage`, one number per example, to mean 0 and deviation 1 in the batch; equal ones become 0."""

    takes: ClassVar = ("advantage",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "advantage")
        return {"advantage": inputs["advantage"]}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Return `advantage` [B] minus its mean, divided by its deviation; equal numbers become zeros."""
        centred = inputs["advantage"] - xp.mean(inputs["advantage"])
        return {"advantage": centred / (xp.sqrt(xp.mean(centred * centred)) + 1e-8)}


# Policies as distributions over legal actions: drawing, and log probabilities.
#
# An illegal action has probability 0 (its logarithm is `FORBIDDEN`), and no gradient.


def log_softmax(xp: Any, logits: Array, mask: Array) -> Array:
    """Return ln probabilities [B, N] of N actions from ``logits`` [B, N]; ≤ −1e30 where ``mask`` [B, N] is false."""
    legal = xp.where(mask, logits, xp.full_like(logits, FORBIDDEN))
    above = legal - xp.max(legal, axis=1, keepdims=True)
    return above - xp.log(xp.sum(xp.exp(above), axis=1, keepdims=True))


def values_at(xp: Any, values: Array, action: Array) -> Array:
    """Return the entries [B] of ``values`` [B, N] at the actions' indices ``action`` [B]."""
    return xp.take_along_axis(values, xp.reshape(action, (-1, 1)), axis=1)[:, 0]


class Draw(Component):
    """Random choice: logits [N], mask [N], noise [N] → index `action`, and `log_prob`, its probability's natural log.

    Gumbel trick: the maximum of logit + Gumbel noise (Gumbel, 1954); the noise given is uniform in [0, 1).
    """

    takes: ClassVar = ("logits", "mask", "noise")

    def __init__(self, action_space: Space) -> None:
        self.action_space = action_space

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "logits")
        for port in ("mask", "noise"):
            if self.vector(inputs, port) != actions:
                raise SpaceError(self.name, port, inputs[port], f"one entry per logit of {inputs['logits']}")
        return {"action": self.action_space, "log_prob": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        logits = log_softmax(xp, inputs["logits"], inputs["mask"])
        gumbel = -xp.log(-xp.log(xp.clip(inputs["noise"], 1e-7, 1.0 - 1e-6)))
        action = xp.argmax(logits + gumbel, axis=1)
        return {"action": action, "log_prob": values_at(xp, logits, action)}


class LogProbability(Component):
    """Log probability: logits [N], mask [N], index `action` → its `log_prob` and the policy's `entropy`, in nats."""

    takes: ClassVar = ("logits", "mask", "action")
    pulls: ClassVar = ("logits",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        actions = self.vector(inputs, "logits")
        if self.vector(inputs, "mask") != actions:
            raise SpaceError(self.name, "mask", inputs["mask"], f"one bit per logit of {inputs['logits']}")
        space = inputs["action"]
        if not isinstance(space, spaces.Discrete) or space.n != actions:
            raise SpaceError(self.name, "action", space, f"Discrete({actions})")
        return {"log_prob": reals(), "entropy": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return self._rate(xp, inputs)[0]

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        outputs, share, logarithm = self._rate(np, inputs)

        def pull(slopes: Arrays) -> Arrays:
            slope = np.zeros_like(share)
            if "entropy" in slopes:
                slope -= (slopes["entropy"][:, None] * share) * (logarithm + outputs["entropy"][:, None])
            if "log_prob" in slopes:
                slope -= slopes["log_prob"][:, None] * share
                slope[np.arange(len(slope)), inputs["action"]] += slopes["log_prob"]
            return {"logits": slope * inputs["mask"]}

        return outputs, pull

    def _rate(self, xp: Any, inputs: Arrays) -> tuple[Arrays, Array, Array]:
        """Return the outputs, the actions' probabilities [B, N], and their logarithms, 0 for illegal actions."""
        logits = log_softmax(xp, inputs["logits"], inputs["mask"])
        share, logarithm = xp.exp(logits), xp.where(inputs["mask"], logits, xp.zeros_like(logits))
        outputs = {
            "log_prob": values_at(xp, logits, inputs["action"]),
            "entropy": -xp.sum(share * logarithm, axis=1),
        }
        return outputs, share, logarithm


# Losses of actor-critic learners, one number per example.


class Surrogate(Component):
    """Policy-gradient loss (Williams, 1992; Mnih et al., 2016): −log π · advantage.

    Inputs, one number each: `log_prob`, log π(action); `behaviour`, its natural log probability under the behaviour
    policy; the advantage. Further outputs: `divergence`, the low-variance estimate (ratio − 1) − log ratio of
    KL(behaviour ‖ π) in nats; and `cut`, 1 where the loss is clipped, else 0.
    """

    takes: ClassVar = ("log_prob", "behaviour", "advantage")
    pulls: ClassVar = ("log_prob",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals(), "divergence": reals(), "cut": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        moved = inputs["log_prob"] - inputs["behaviour"]
        loss = -inputs["log_prob"] * inputs["advantage"]
        return {"loss": loss, "divergence": xp.exp(moved) - 1.0 - moved, "cut": xp.zeros_like(loss)}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        return self.run(np, variables, inputs), lambda slopes: self._pull(slopes, inputs, -inputs["advantage"])

    def _pull(self, slopes: Arrays, inputs: Arrays, by_loss: Array) -> Arrays:
        """Return the gradient [B] by `log_prob`; ``slopes``: by the outputs; ``by_loss`` [B]: d loss / d `log_prob`."""
        slope = slopes["loss"] * by_loss if "loss" in slopes else np.zeros_like(by_loss)
        if "divergence" in slopes:
            slope = slope + slopes["divergence"] * (np.exp(inputs["log_prob"] - inputs["behaviour"]) - 1.0)
        return {"log_prob": slope}


class ClippedSurrogate(Surrogate):
    """PPO's loss −min(ratio · A, clip(ratio, 1 ± `clip`) · A), ratio = π/behaviour (Schulman et al., 2017, eq. 7)."""

    def __init__(self, clip: float) -> None:
        self.clip = clip

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        moved, advantage = inputs["log_prob"] - inputs["behaviour"], inputs["advantage"]
        ratio = xp.exp(moved)
        free, bounded = ratio * advantage, xp.clip(ratio, 1.0 - self.clip, 1.0 + self.clip) * advantage
        cut = xp.astype(bounded < free, free.dtype)
        return {"loss": -xp.where(bounded < free, bounded, free), "divergence": ratio - 1.0 - moved, "cut": cut}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        outputs = self.run(np, variables, inputs)
        by_loss = outputs["loss"] * (1.0 - outputs["cut"])  # −ratio · A has itself as derivative; no gradient where cut
        return outputs, lambda slopes: self._pull(slopes, inputs, by_loss)


class NegativeLogLikelihood(Component):
    """Loss of behaviour cloning, −`log_prob`: the natural log of the action's probability, in nats, negated."""

    takes: ClassVar = ("log_prob",)
    pulls: ClassVar = ("log_prob",)

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "log_prob")
        return {"loss": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"loss": -inputs["log_prob"]}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        return self.run(np, variables, inputs), lambda slopes: {"log_prob": -slopes["loss"]}


class ValueLoss(Component):
    """Half the squared difference of `value` and `target`, one number each.

    With `clip` it is the maximum of that and of the same for a value whose change from `old` is limited to ± `clip`.
    """

    takes: ClassVar = ("value", "target", "old")
    pulls: ClassVar = ("value",)

    def __init__(self, clip: float | None = None) -> None:
        self.clip = clip

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        value, target, old = inputs["value"], inputs["target"], inputs["old"]
        error = (value - target) ** 2
        if self.clip is not None:
            near = (old + xp.clip(value - old, -self.clip, self.clip) - target) ** 2
            error = xp.where(near > error, near, error)
        return {"loss": 0.5 * error}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        outputs, slope = self.run(np, variables, inputs), inputs["value"] - inputs["target"]
        if self.clip is not None:
            bounded = abs(inputs["value"] - inputs["old"]) > self.clip  # and has no gradient where it is the larger
            slope = slope * ~(bounded & (2.0 * outputs["loss"] > slope**2))
        return outputs, lambda slopes: {"value": slopes["loss"] * slope}


class ActorCriticLoss(Component):
    """Total loss, one number per example: `policy` + value_weight · `value` − `entropy_weight` · `entropy` (nats)."""

    takes: ClassVar = ("policy", "value", "entropy", "entropy_weight")
    pulls: ClassVar = ("policy", "value", "entropy")

    def __init__(self, value_weight: float) -> None:
        self.value_weight = value_weight

    @override
    def output_spaces(self, inputs: Spaces) -> Spaces:
        for port in self.takes:
            self.scalar(inputs, port)
        return {"loss": reals()}

    @override
    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        spread = inputs["entropy_weight"] * inputs["entropy"]
        return {"loss": inputs["policy"] + self.value_weight * inputs["value"] - spread}

    @override
    def differentiate(self, variables: Arrays, inputs: Arrays) -> tuple[Arrays, Pullback]:
        def pull(slopes: Arrays) -> Arrays:
            slope = slopes["loss"]
            return {"policy": slope, "value": self.value_weight * slope, "entropy": -inputs["entropy_weight"] * slope}

        return self.run(np, variables, inputs), pull
