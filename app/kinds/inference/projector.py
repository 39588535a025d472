"""What policies that plan are shown beside the state: the layout, and what the domain model expects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.recent import Recent


class Projector(NamedTuple):
    """The ``projector`` of a situation.

    Attributes:
        layout: of the workload.
        seconds: mean seconds of a batch, [C, V, K], or of each run, [B, C, V, K]; None without a domain model.
        recent: the runs' last transitions, for policies that ask for them (``adapts``).
    """

    layout: Layout
    seconds: NDArray[np.float64] | None
    recent: Recent | None = None

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel | None) -> Projector:
        """Of a workload and its domain model, which may be missing."""
        return cls(layout, None if model is None else model.seconds())
