"""A recurrent core: what was seen earlier in an episode, beside what is seen now."""

from collections.abc import Mapping
from typing import Any, ClassVar

from gymnasium import spaces

from app.policies import functions
from workers.learning.components.base import Arrays, Component, SpaceError, Variable
from workers.learning.components.network import apply, dense
from workers.learning.spaces import Spaces, reals


class GRU(Component):
    """sequence [T, D], begins [T], memory [H] → observation [D + H] of each of the T steps, and the memory after them.

    A gated recurrent unit (Cho et al., 2014; its gates as torch.nn.GRU has them) appends what it remembers, the present
    step included, to each observation. All is read through tanh, so that no large entry saturates a gate. Where
    `begins` is set, an episode begins, and nothing is remembered from before.
    The outputs' examples are steps: B sequences in, B·T observations out, those of a sequence in a row.
    """

    takes: ClassVar = ("sequence", "begins", "memory")

    def __init__(self, units: int) -> None:
        self.units = units

    def gives(self, inputs: Spaces) -> Spaces:
        """Observations, and the memory."""
        space = inputs["sequence"]
        if not isinstance(space, spaces.Box) or len(space.shape) != 2:
            raise SpaceError(self.name, "sequence", space, "a matrix, a row per step")
        if self.vector(inputs, "begins") != space.shape[0]:
            raise SpaceError(self.name, "begins", inputs["begins"], f"a bit for each of {space.shape[0]} steps")
        if self.vector(inputs, "memory") != self.units:
            raise SpaceError(self.name, "memory", inputs["memory"], f"a vector of {self.units} units")
        return {"observation": reals(int(space.shape[1]) + self.units), "memory": reals(self.units)}

    def variables(self, inputs: Spaces) -> Mapping[str, Variable]:
        """Two linear layers, for three gates each."""
        wide = int((inputs["sequence"].shape or ())[-1])
        return {**dense("input", wide, 3 * self.units), **dense("memory", self.units, 3 * self.units)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        """Step by step."""
        sequence, memory = functions.tanh(inputs["sequence"]), inputs["memory"]
        kept = 1.0 - xp.astype(inputs["begins"], memory.dtype)
        given = apply("input", variables, sequence)
        found = []
        for step in range(sequence.shape[1]):
            memory = functions.gated_by(given[:, step], memory * kept[:, step, None], variables)
            found.append(memory)
        rows = xp.concat([sequence, xp.stack(found, axis=1)], axis=2)
        return {"observation": xp.reshape(rows, (-1, rows.shape[2])), "memory": memory}
