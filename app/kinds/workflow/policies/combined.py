"""Policies over policies: a portfolio with its gate, and an inspector."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from app.kinds.workflow.policies.base import Pick, View
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy
from app.kinds.workflow.scheduling.observation import LONGEST_DELAY, STATE, STATE_WIDTH, Survey, state
from app.kinds.workflow.trace import Seconds
from app.policies.base import Arrays, IncompatibleArtifact

Member = StrategyPolicy | ScorerPolicy
MEMBERS: dict[str, type[Member]] = {"strategy": StrategyPolicy, "scorer": ScorerPolicy}


def member_config(member: Member) -> dict[str, Any]:
    """A member as a part of another config."""
    kind = next(name for name, family in MEMBERS.items() if isinstance(member, family))
    return {"policy": kind, "config": member.config}


def build_member(found: dict[str, Any], arrays: Arrays, prefix: str) -> Member:
    """The member that ``member_config`` described, with the arrays whose names begin with ``prefix``.

    Raises:
        IncompatibleArtifact: it is of another kind, or its arrays do not fit.
    """
    if found.get("policy") not in MEMBERS:
        raise IncompatibleArtifact(f"no member is of kind {found.get('policy')!r}; known are {', '.join(MEMBERS)}")
    own = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
    return MEMBERS[found["policy"]].build(found["config"], own)


@dataclass(frozen=True, eq=False)
class PortfolioPolicy:
    """One of several members at each decision.

    The first, the best single one, is asked unless another's expected loss against it is negative by more than that
    estimate's error on decisions it was not fitted on: ``gate`` [M, S] over the state, plus ``margin`` [M].
    """

    members: tuple[Member, ...]
    gate: Seconds
    margin: Seconds

    name = "portfolio"

    @property
    def config(self) -> dict[str, Any]:
        """Its members', and the state that the gate reads."""
        return {"members": [member_config(member) for member in self.members], "state": list(STATE)}

    @property
    def arrays(self) -> Arrays:
        """Its members', by their place, and the gate's."""
        found: Arrays = {"gate": self.gate, "margin": self.margin}
        for i, member in enumerate(self.members):
            found.update({f"{i}.{name}": value for name, value in member.arrays.items()})
        return found

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check and build.

        Raises:
            IncompatibleArtifact: the parts do not fit together.
        """
        members = tuple(build_member(found, arrays, f"{i}.") for i, found in enumerate(config["members"]))
        gate, margin = arrays.get("gate", np.zeros(0)), arrays.get("margin", np.zeros(0))
        if (
            tuple(config["state"]) != STATE
            or gate.shape != (len(members), STATE_WIDTH)
            or margin.shape != gate.shape[:1]
        ):
            raise IncompatibleArtifact(
                f"the gate does not read {len(members)} members and the state {', '.join(STATE)}"
            )
        return cls(members, np.asarray(gate, np.float64), np.asarray(margin, np.float64))

    def losses(self, seen: Survey) -> Seconds:
        """Expected loss of each member against the first, and the margin, [M]; 0 for the first."""
        found = self.gate @ state(seen) + self.margin
        found[0] = 0.0
        return found

    def pick(self, view: View) -> Pick:
        """What the member of the least expected loss picks."""
        losses = self.losses(view.seen)
        member = self.members[int(np.argmin(losses))]
        return member.pick(view)._replace(losses=losses, member=member.name)


@dataclass(frozen=True, eq=False)
class InspectorPolicy:
    """Another policy's pick, put off to the next event where the network's output for it is below 0.

    After Zhang et al. 2022 (SchedInspector). On an idle machine, or when a task has waited for half a day, nothing is
    put off. ``network`` is read as a scorer without advice.
    """

    base: Member
    network: ScorerPolicy

    name = "inspector"

    @property
    def config(self) -> dict[str, Any]:
        """Base and network."""
        return {"base": member_config(self.base), "network": member_config(self.network)}

    @property
    def arrays(self) -> Arrays:
        """Of base and network."""
        found = {f"base.{name}": value for name, value in self.base.arrays.items()}
        return found | {f"network.{name}": value for name, value in self.network.arrays.items()}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check and build.

        Raises:
            IncompatibleArtifact: the parts do not fit together.
        """
        network = build_member(config["network"], arrays, "network.")
        if not isinstance(network, ScorerPolicy):
            raise IncompatibleArtifact("an inspector is a network")
        return cls(build_member(config["base"], arrays, "base."), replace(network))

    def pick(self, view: View) -> Pick:
        """The base's pick, or −1."""
        picked = self.base.pick(view)
        seen = view.seen
        idle, waited = seen.free == seen.processors, seen.waited[picked.candidate]
        if idle or waited > LONGEST_DELAY or self.network.scores(seen)[picked.candidate] >= 0.0:
            return picked
        return picked._replace(candidate=-1)
