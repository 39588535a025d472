"""How much better an action was than expected, and what the state was worth: estimates over trajectories.

An example is a trajectory of T steps: rewards, ends and values are vectors [T], and `last` is the value of the state
after the last step. Nothing is bootstrapped across an end, so finite horizons are exact. Ends are 1, other steps 0, or
1 less the discount of steps that are not equally long (semi-Markov: Bradtke and Duff, 1994).
"""

from abc import abstractmethod
from typing import Any, ClassVar

from workers.learning.backends.base import Array
from workers.learning.components.base import Arrays, Component, SpaceError
from workers.learning.spaces import Spaces, reals


class Estimator(Component):
    """Estimates of the family: trajectories in, advantages [T] and value targets [T] out."""

    takes: ClassVar[tuple[str, ...]] = ("reward", "done", "value", "last")

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def gives(self, inputs: Spaces) -> Spaces:
        """Two vectors as long as the trajectory."""
        steps = self.vector(inputs, "reward")
        for port in self.takes:
            if port == "last":
                self.scalar(inputs, port)
            elif self.vector(inputs, port) != steps:
                raise SpaceError(self.name, port, inputs[port], f"a vector of {steps} steps")
        return {"advantage": reals(steps), "target": reals(steps)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """What follows each step, discounted and cut at ends, is handed to `estimate`."""
        value, last = inputs["value"], inputs["last"][:, None]
        alive = self.gamma * (1.0 - xp.astype(inputs["done"], value.dtype))
        following = xp.concat([value[:, 1:], last], axis=1)
        advantage, target = self.estimate(xp, inputs, alive, inputs["reward"] + alive * following)
        return {"advantage": advantage, "target": target}

    @abstractmethod
    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        """Return advantages and targets [B, T].

        `alive` is γ, 0 at ends; `backed` is reward + alive · V of the next state.
        """


class GAE(Estimator):
    """Generalised advantage estimation: A_t = Σ_l (γλ)^l·δ_{t+l} (Schulman et al., 2016, eq. 16).

    The target of the value is A_t + V_t, the λ-return. For data of the policy that learns.
    """

    def __init__(self, gamma: float, trace: float) -> None:
        super().__init__(gamma)
        self.trace = trace

    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        """From the back: A_t = δ_t + γλ·A_{t+1}."""
        advantage = discounted(xp, backed - inputs["value"], self.trace * alive)
        return advantage, advantage + inputs["value"]


class VTrace(Estimator):
    """V-trace, for data of other policies than the one that learns (Espeholt et al., 2018, eq. 1 and section 4.2).

    v_t = V_t + δ_t + γ·c_t·(v_{t+1} − V_{t+1}) with δ_t = ρ_t·(r_t + γ·V_{t+1} − V_t), where ρ_t and c_t are
    π(a_t)/μ(a_t) cut at `rho` and at `cut`, c_t also times `trace`. The advantage is ρ_t·(r_t + γ·v_{t+1} − V_t).
    On policy, with `trace` 1, v_t is the n-step return. `log_prob` is log π(a_t), `behaviour` is log μ(a_t).
    """

    takes: ClassVar[tuple[str, ...]] = (*Estimator.takes, "log_prob", "behaviour")

    def __init__(self, gamma: float, trace: float = 1.0, rho: float = 1.0, cut: float = 1.0) -> None:
        super().__init__(gamma)
        self.trace, self.rho, self.cut = trace, rho, cut

    def estimate(self, xp: Any, inputs: Arrays, alive: Array, backed: Array) -> tuple[Array, Array]:
        """From the back."""
        value, ratio = inputs["value"], xp.exp(inputs["log_prob"] - inputs["behaviour"])
        rho, cut = xp.clip(ratio, 0.0, self.rho), self.trace * xp.clip(ratio, 0.0, self.cut)
        above = discounted(xp, rho * (backed - value), alive * cut)
        later = xp.concat([above[:, 1:], xp.zeros_like(above[:, :1])], axis=1)
        return rho * (backed + alive * later - value), value + above


def discounted(xp: Any, terms: Array, factor: Array) -> Array:
    """x_t = terms_t + factor_t·x_{t+1}, from the back; all [B, T]."""
    steps = terms.shape[1]
    total = terms[:, steps - 1]
    found = [total]
    for step in range(steps - 2, -1, -1):
        total = terms[:, step] + factor[:, step] * total
        found.append(total)
    return xp.stack(found[::-1], axis=1)


class Normalise(Component):
    """Numbers less their mean over the batch, over their standard deviation."""

    takes: ClassVar = ("advantage",)

    def gives(self, inputs: Spaces) -> Spaces:
        """As it came."""
        self.scalar(inputs, "advantage")
        return {"advantage": inputs["advantage"]}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Centre and scale; a batch of equal numbers becomes zeros."""
        centred = inputs["advantage"] - xp.mean(inputs["advantage"])
        return {"advantage": centred / (xp.sqrt(xp.mean(centred * centred)) + 1e-8)}
