"""A rule and a network, each as a policy."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from app.kinds.workflow.policies.base import Pick, View
from app.kinds.workflow.scheduling.observation import FEATURES, Survey, features
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.trace import Seconds
from app.policies.base import Arrays, IncompatibleArtifact
from app.policies.functions import scores as network

NOTHING = np.zeros(0)


@dataclass(frozen=True)
class StrategyPolicy:
    """The rule that ``config["rule"]`` names."""

    config: dict[str, Any]

    @property
    def name(self) -> str:
        """The rule's."""
        return str(self.config["rule"])

    @property
    def arrays(self) -> Arrays:
        """None."""
        return {}

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Look the rule up.

        Raises:
            IncompatibleArtifact: there is no such rule.
        """
        if config.get("rule") not in RULES or arrays:
            raise IncompatibleArtifact(f"no rule is called {config.get('rule')!r}; known are {', '.join(RULES)}")
        return cls(config)

    def pick(self, view: View) -> Pick:
        """The candidate of the smallest score; scores are negated, as the highest of a policy is picked."""
        found = scores(RULES.index(self.name), view.now, view.submit, view.expected, view.processors)
        return Pick(int(np.argmin(found)), -found.astype(np.float64), self.name, NOTHING)


@dataclass(frozen=True, eq=False)
class ScorerPolicy:
    """A network over candidates; ``config`` and ``arrays`` as ``app.policies.functions.scores`` reads them.

    ``config["features"]`` are those it was made for, ``config["algorithm"]`` what trained it.
    """

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """What reports call it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check names and shapes, and build.

        Raises:
            IncompatibleArtifact: it reads other features, or an array is missing or of another shape.
        """
        if tuple(config.get("features", ())) != FEATURES:
            raise IncompatibleArtifact(f"the network does not read the features {', '.join(FEATURES)}")
        for name, shape in shapes(config).items():
            if name not in arrays or arrays[name].shape != shape:
                raise IncompatibleArtifact(f"the network needs {name} of shape {shape}")
        return cls(config, {name: np.ascontiguousarray(arrays[name], np.float64) for name in shapes(config)})

    def scores(self, seen: Survey) -> Seconds:
        """Of all candidates, [Q]."""
        table = features(seen)[None]
        found: Seconds = network(table, np.ones(table.shape[:2], np.bool_), self.arrays, self.config)[0]
        return found

    def pick(self, view: View) -> Pick:
        """The candidate of the highest score."""
        found = self.scores(view.seen)
        return Pick(int(np.argmax(found)), found, self.name, NOTHING)


def shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The arrays of a network without context: candidates are scored one by one, so a decision costs little.

    Raises:
        IncompatibleArtifact: it is of another architecture.
    """
    layers, joint = config.get("layers", []), config.get("joint", [])
    if len(layers) != 1 or len(joint) != 1 or config.get("context") != "none":
        raise IncompatibleArtifact("schedulers have one layer, one joint layer and no context")
    found: dict[str, tuple[int, ...]] = {}
    wide = len(FEATURES)
    for name, out in (("each.0", layers[0]), ("joint.0", joint[0]), ("advantage", 1)):
        found[f"{name}.weight"], found[f"{name}.bias"] = (out, wide), (out,)
        wide = out
    return found
