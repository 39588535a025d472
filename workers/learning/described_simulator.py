"""Simulators as data: what a process needs to make its own. Nothing in it can run code."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from app.kinds.registry import read_spec
from workers import plugins
from workers.inputs import Conditions, Workload
from workers.learning.joint_simulator import JointSimulator
from workers.learning.simulator import Simulator


class SimulatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulator for learners that has not been made yet.

    Attributes:
        kind: a name of the entry-point group ``steward.learned_kinds``: whose object makes it.
        spec: the workload's spec, as JSON.
        model: its domain model, as its kind stores it.
        batch: environments in lock-step.
        seed: of everything that the simulator draws.
        options: of the kind's own, plain values.
    """

    kind: str
    spec: bytes
    model: bytes
    batch: int
    seed: int
    options: Mapping[str, Any] = {}

    def make(self) -> Simulator:
        """Make it, for one agent.

        Raises:
            PluginError: no such kind is installed.
            ValueError: the kind makes no simulator for learners, or spec or model can't be read, or it is a joint one.
        """
        made = self.make_any()
        if isinstance(made, JointSimulator):
            raise ValueError(f"{', '.join(made.roles)} learn together: the executor 'serial' has them do so, no other")
        return made

    def make_any(self) -> Simulator | JointSimulator:
        """Make it, for one agent or for several that learn together; raises what ``make`` does before."""
        kind = plugins.load(plugins.LEARNED_KINDS, self.kind)
        workload = Workload(read_spec(json.loads(self.spec)), self.model)
        conditions = Conditions(self.batch, self.seed, "learning", options=self.options)
        made: Simulator | JointSimulator = kind.simulator(workload, conditions)
        return made

    def seeded(self, seed: int) -> "SimulatorSpec":
        """Return the same simulator under another seed."""
        return msgspec.structs.replace(self, seed=seed)
