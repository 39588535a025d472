"""Clusters to which jobs of measured applications come, as other logs have them. See ``Source``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.drawn import HOUR, draw
from workers.kinds.cluster.simulator.kernels import Clusters
from workers.kinds.cluster.simulator.log import Submission
from workers.kinds.cluster.simulator.many import clusters, tabled
from workers.kinds.cluster.simulator.measured import Application
from workers.kinds.cluster.simulator.simulator import Settings
from workers.kinds.cluster.world.courses import usual
from workers.kinds.cluster.world.episodes import Drawn, Episodes
from workers.kinds.cluster.world.tabled import moment

GROWTH, BUSIEST = 2, 4.0
SECONDS = 1000.0
"""By which completion times are counted: the sum of them is to fall, not that of how much later each job ends."""


class LoggedSource:
    """See ``Source``: each cluster begins empty at an hour of a log that is drawn from ``logs`` (see ``drawn``).

    From once to ``BUSIEST`` times as many jobs come, since nobody's weight matters where all have what they can use.
    Nothing is forecast.

    Args:
        applications: by name.
        logs: in order of submission.
        seconds: of an episode.
        settings: of the cluster.
    """

    def __init__(
        self,
        applications: Mapping[str, Application],
        logs: Sequence[Sequence[Submission]],
        seconds: float,
        settings: Settings | None = None,
    ) -> None:
        self._settings, self._logs, self._seconds = settings or Settings(), logs, seconds
        self.applications: Sequence[str] = [*applications]
        self.rules = tabled(applications, self._settings, GROWTH)

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, Drawn]:
        """See ``Source``."""
        del model
        hours = max(1, int((max(log[-1].time for log in self._logs) - self._seconds) // HOUR))
        busy = load * np.exp(random.uniform(0.0, np.log(BUSIEST), len(load)))
        found = [self._piece(factor, int(random.integers(hours)) * HOUR, random) for factor in busy.tolist()]
        made, rules = clusters(found, self.applications, self._settings), self.rules
        ends = rules.ends[np.arange(len(rules.epochs)), rules.epochs - 1]
        steps = np.where(np.isfinite(made.time), ends[made.application], 0.0)
        real, none = np.zeros(made.time.shape), np.full(made.time.shape, -1)
        own = made.application
        return made, Drawn(real, steps, real + SECONDS, own, np.zeros(len(found)), real + np.nan, none)

    def _piece(self, load: float, first: float, random: np.random.Generator) -> list[Submission]:
        jobs = draw(self._logs, load, random)
        inside = [job for job in jobs if first <= job.time < first + self._seconds] or jobs[:1]
        return [job._replace(time=max(job.time - first, 0.0)) for job in inside]

    def coming(self, second_of_day: Floats) -> Floats:
        """See ``Source``: nothing is known of it."""
        return np.zeros_like(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """See ``Source``: nothing is hidden."""
        return moment(self.rules, episodes, b)

    def ahead(self, drawn: Drawn, part: Floats) -> None:
        """See ``Source``: nobody tells how well it learns."""

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """See ``Source``: as of any job."""
        del application
        return usual(part)
