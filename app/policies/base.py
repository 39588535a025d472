"""Contract of published policies (extends ``app.kinds.contract.policy``).

A policy that can be published also has ``config``, a JSON object from which, with ``arrays``, it is rebuilt. The tests
in ``tests/app/policies/test_artifact.py`` run over every family.
"""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Policy, Situation

Arrays = dict[str, NDArray[np.generic]]
RETURN_SCALE = 100.0  # returns are of order 0.1 and differ by thousandths: learners see them in hundredths

__all__ = ["RETURN_SCALE", "Arrays", "Choice", "IncompatibleArtifact", "Policy", "Published", "Situation"]


class IncompatibleArtifact(ValueError):
    """An artifact can't be read, or belongs to another layout; the message says why."""


def check_layers(arrays: Arrays) -> None:
    """Check that each ``weight`` is [out, in] and its ``bias`` [out]; raises IncompatibleArtifact otherwise."""
    for name, array in arrays.items():
        layer, _, part = name.rpartition(".")
        weight = arrays.get(f"{layer}.weight", array)
        fits = array.ndim == 2 if part == "weight" else array.shape == weight.shape[:1]
        if part in ("weight", "bias") and not fits:
            raise IncompatibleArtifact(f"{name} is {array.shape}, of a weight {weight.shape}: not [out] of [out, in]")


class Published(Policy, Protocol):
    """A policy that can be saved to an artifact and loaded."""

    @property
    def config(self) -> dict[str, Any]:
        """JSON object that rebuilds the policy together with ``arrays``."""
        ...

    @property
    def arrays(self) -> Arrays:
        """The policy's parameters by name."""
        ...

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Build the policy from this config and these arrays; raises IncompatibleArtifact if they don't match."""
        ...
