"""Networks over sets: candidates of any number, in any order, are scored, and the set as a whole is valued."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from gymnasium import spaces

from app.policies import functions
from workers.learning.components.base import Arrays, Component, SpaceError, Variable
from workers.learning.components.network import apply, dense
from workers.learning.spaces import Spaces, reals


class SetEncoder(Component):
    """observation [K, F], mask [K] → features [K, H] of each candidate beside the others; see `functions.encoded`."""

    takes: ClassVar = ("observation", "mask")

    def __init__(
        self,
        layers: tuple[int, ...],
        context: Literal["none", "mean", "attention"],
        joint: tuple[int, ...],
        activation: str,
    ) -> None:
        self.config: dict[str, Any] = {
            "layers": list(layers),
            "context": context,
            "joint": list(joint),
            "activation": activation,
        }

    def candidates(self, inputs: Spaces) -> tuple[int, int]:
        """Return K and F; raises SpaceError."""
        space, count = inputs["observation"], self.vector(inputs, "mask")
        if not isinstance(space, spaces.Box) or len(space.shape) != 2 or space.shape[0] != count:
            raise SpaceError(self.name, "observation", space, f"the features of {count} candidates, a matrix")
        return count, int(space.shape[1])

    def gives(self, inputs: Spaces) -> Spaces:
        """Features are as wide as the last layer."""
        count, wide = self.candidates(inputs)
        return {"features": reals(count, (wide, *self.config["layers"], *self.config["joint"])[-1])}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """One linear layer each; none depends on the number of candidates."""
        _, wide = self.candidates(inputs)
        found: dict[str, Variable] = {}
        for index, out in enumerate(self.config["layers"]):
            found.update(dense(f"each.{index}", wide, out))
            wide = out
        context, joint = self.config["context"], self.config["joint"]
        if context == "attention":
            found.update({f"{name}.weight": Variable((wide, wide), wide) for name in ("query", "key", "value")})
        if context != "none":
            found["context.weight"] = Variable((joint[0], wide), wide)
        for index, out in enumerate(joint):
            found.update(dense(f"joint.{index}", wide, out))
            wide = out
        return found

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The served function."""
        return {"features": functions.encoded(inputs["observation"], inputs["mask"], variables, self.config)}


class Scorer(Component):
    """observation [K, F], mask [K] → values [K]: advice / temperature + head(encoder).

    Untrained, the head adds nothing. `advice` is the feature that holds advice on its candidate, in the unit of the
    reward; `output` is the output's name.
    """

    takes: ClassVar = ("observation", "mask")

    def __init__(
        self, encoder: SetEncoder, advice: int | None = None, temperature: float = 1.0, output: str = "values"
    ) -> None:
        self.encoder, self.advice, self.temperature, self.output = encoder, advice, temperature, output

    def gives(self, inputs: Spaces) -> Spaces:
        """One number per candidate."""
        count, wide = self.encoder.candidates(inputs)
        if self.advice is not None and self.advice >= wide:
            space = inputs["observation"]
            raise SpaceError(self.name, "observation", space, f"{self.advice + 1} features or more: one is advice")
        return {self.output: reals(count)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """The encoder's, and one linear layer."""
        wide = int((self.encoder.gives(inputs)["features"].shape or ())[-1])
        return {**self.encoder.variables(inputs), **dense("advantage", wide, 1, zero=True)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """The served function, and advice."""
        config = {**self.encoder.config, "advice": None}
        found = functions.scores(inputs["observation"], inputs["mask"], variables, config)
        if self.advice is not None:
            found = found + inputs["observation"][:, :, self.advice] / self.temperature
        return {self.output: found}


class SetCritic(Component):
    """observation [K, F], mask [K] → the value of the whole set: a linear layer over the mean of the legal features."""

    takes: ClassVar = ("observation", "mask")

    def __init__(self, encoder: SetEncoder) -> None:
        self.encoder = encoder

    def gives(self, inputs: Spaces) -> Spaces:
        """One number."""
        self.encoder.candidates(inputs)
        return {"value": reals()}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """The encoder's, and one linear layer, zero at the start."""
        wide = int((self.encoder.gives(inputs)["features"].shape or ())[-1])
        return {**self.encoder.variables(inputs), **dense("worth", wide, 1, zero=True)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Encode, pool, weigh."""
        features = self.encoder.run(xp, variables, inputs)["features"]
        return {"value": apply("worth", variables, functions.pooled(features, inputs["mask"])[:, 0, :])[:, 0]}
