"""What policies that plan are shown beside the state: the layout, and what the domain model expects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel


class Projector(NamedTuple):
    """The ``projector`` of a situation.

    Attributes:
        layout: of the workload.
        seconds: mean seconds of a batch, [C, V, K]; None without a domain model.
    """

    layout: Layout
    seconds: NDArray[np.float64] | None

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel | None) -> Projector:
        """Of a workload and its domain model, which may be missing."""
        return cls(layout, None if model is None else model.seconds())
