"""Simulators as data: what a process needs to make its own. Nothing in it can run code."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.expected import ExpectedSimulator
from workers.kinds.iterative.simulator import IterativeSimulator, Ranges
from workers.learning.simulator import Simulator


class SimulatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulator that has not been made yet.

    Attributes:
        kind: a name of `MAKERS`.
        spec: the workload's spec, as JSON.
        table: its domain model, as `ModelTable.to_bytes` gives it.
        batch: environments in lock-step.
        seed: of everything that the simulator draws.
        ranges: from what an episode's parameters are drawn.
        expected: paid in expectation (`ExpectedSimulator`).
    """

    kind: str
    spec: bytes
    table: bytes
    batch: int
    seed: int
    ranges: Ranges = Ranges()
    expected: bool = False

    @classmethod
    def iterative(
        cls,
        spec: Spec,
        table: ModelTable,
        batch: int,
        seed: int,
        ranges: Ranges = Ranges(),
        *,
        expected: bool = False,
    ) -> "SimulatorSpec":
        """Describe a simulator of an ``iterative`` workload."""
        return cls("iterative", spec.model_dump_json().encode(), table.to_bytes(), batch, seed, ranges, expected)

    def make(self) -> Simulator:
        """Make it.

        Raises:
            ValueError: no simulator is made for this kind, or spec or table can't be read.
        """
        if self.kind not in MAKERS:
            raise ValueError(f"no simulator is made for kind {self.kind!r}; known are {', '.join(sorted(MAKERS))}")
        return MAKERS[self.kind](self)

    def seeded(self, seed: int) -> "SimulatorSpec":
        """Return the same simulator on other luck."""
        return msgspec.structs.replace(self, seed=seed)


def _iterative(described: SimulatorSpec) -> Simulator:
    layout, table = Layout(Spec.model_validate(json.loads(described.spec))), ModelTable.from_bytes(described.table)
    family: Any = ExpectedSimulator if described.expected else IterativeSimulator
    made: Simulator = family(layout, table, described.batch, described.seed, described.ranges)
    return made


MAKERS: dict[str, Callable[[SimulatorSpec], Simulator]] = {"iterative": _iterative}
"""By kind: what makes its simulator."""
