"""What policies that plan are shown beside the state: the layout, and what the domain model expects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.forecast import going_on
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.transitions import Transitions


class Projector(NamedTuple):
    """The ``projector`` of a situation.

    Attributes:
        layout: of the workload.
        seconds: mean seconds of a batch, [C, V, K], or of each run, [B, C, V, K]; None without a domain model.
        usual: requests per second of each user over the day, [U]; None where no domain model tells.
        ahead: numbers of forecasts one control interval ahead, see ``app.kinds.inference.forecast``, [U, 17].
        recent: the runs' last transitions, for policies that ask for them (``adapts``).
        usually: numbers of forecasts where nothing is known of late, [U, 17]; None: what is ahead goes on.
    """

    layout: Layout
    seconds: NDArray[np.float64] | None
    usual: NDArray[np.float64] | None = None
    ahead: NDArray[np.float64] | None = None
    recent: Transitions | None = None
    usually: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, layout: Layout, model: ServiceModel | None) -> Projector:
        """Of a workload and its domain model, which may be missing."""
        if model is None:
            return cls(layout, None)
        usually = np.asarray(model.forecast[:, 1], np.float64) if len(model.forecast) else None
        return cls(layout, model.seconds(), model.rate.mean(axis=1), _ahead(model), usually=usually)

    def of_runs(self, rows: NDArray[np.int64]) -> Projector:
        """What is expected of some of the runs."""
        seconds, recent = self.seconds, self.recent
        return self._replace(
            seconds=seconds[rows] if seconds is not None and seconds.ndim > 3 else seconds,
            recent=None if recent is None else Transitions(recent.batch[rows], recent.pace[rows], recent.arrived[rows]),
        )

    def of_user(self, layout: Layout, user: int) -> Projector:
        """As the agent of one user sees it, whose layout is ``layout``."""
        if self.usual is None or self.ahead is None:
            return Projector(layout, self.seconds)
        own = slice(user, user + 1)
        usually = None if self.usually is None else self.usually[own]
        return Projector(layout, self.seconds, self.usual[own], self.ahead[own], usually=usually)


def _ahead(model: ServiceModel) -> NDArray[np.float64]:
    return np.asarray(model.forecast[:, 0], np.float64) if len(model.forecast) else going_on(model.variation)
