"""A network that scores the candidates of a set, acting in NumPy."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.policies.base import Arrays, IncompatibleArtifact, check_layers
from app.policies.functions import masked, scores


@dataclass(frozen=True, eq=False)
class ScorerPolicy:
    """Greedy in the scores of candidates, whatever their number and order.

    ``config``: ``algorithm``, and what ``functions.scores`` reads; so do ``arrays``. It acts in situations whose view
    has the candidates' features as ``observation`` [B, K, F], and as ``mask`` [B, K] which of them may be chosen.
    """

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Check that all arrays are there, and build.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        parts = [f"each.{i}" for i in range(len(config["layers"]))] + [
            f"joint.{i}" for i in range(len(config["joint"]))
        ]
        names = [f"{name}.{part}" for name in (*parts, "advantage") for part in ("weight", "bias")]
        names += [] if config["context"] == "none" else ["context.weight"]
        names += [f"{n}.weight" for n in ("query", "key", "value")] if config["context"] == "attention" else []
        missing = [name for name in names if name not in arrays]
        if missing:
            raise IncompatibleArtifact(f"the scorer lacks {', '.join(missing)}")
        check_layers(arrays)
        return cls(config, {k: np.ascontiguousarray(v, np.float32) for k, v in arrays.items()})

    def scores(self, observation: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
        """One score per candidate, [B, K], −∞ where ``mask`` forbids, from features ``observation`` [B, K, F]."""
        found = scores(observation.astype(np.float32, copy=False), mask, self.arrays, self.config)
        result: NDArray[np.floating] = masked(found, mask)
        return result

    def act(self, situation: Situation) -> Choice:
        """The legal candidate of the highest score."""
        found = self.scores(situation.view.observation, situation.view.mask)
        return Choice(found.argmax(axis=1), found)
