"""Clusters as the domain models of a workload have them: tables of what these believe, and jobs that come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import block_diag

from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.arrivals import HOUR_SECONDS, HOURS
from app.kinds.cluster.beliefs import UNKNOWN, Beliefs
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import Ahead
from app.kinds.cluster.live.outlook import BelievedOutlook
from app.kinds.cluster.live.records import UNKNOWN as UNTOLD
from app.kinds.cluster.live.records import Records, untold
from workers.kinds.cluster.simulator.kernels import THERE, UNDISTURBED, Clusters, Rules
from workers.kinds.cluster.simulator.many import empty
from workers.kinds.cluster.world.courses import courses, lacking
from workers.kinds.cluster.world.drawing import Coming, draw
from workers.kinds.cluster.world.episodes import Drawn, Episodes, jobs_of
from workers.kinds.cluster.world.learning import DRAWN, foreseen_of, seen_at

WHOLE = 2.0**30
"""Steps at which all jobs end: one of fewer begins so much nearer to it."""


class PlayedSource:
    """See ``Source``: of a workload and M models, whose applications, and an unknown one of each, stand in one table.

    Args:
        layout: of the workload.
        beliefs: of its models; the first is the one that rules believe in.
    """

    def __init__(self, layout: Layout, beliefs: Sequence[Beliefs]) -> None:
        self._layout, self._beliefs, spec = layout, beliefs, layout.spec
        self.applications: Sequence[str] = beliefs[0].applications
        each, self._total = [len(one.applications) + 1 for one in beliefs], int(layout.capacity.sum())
        self._first = np.cumsum([0, *each[:-1]])
        known = [(one.model, (*one.applications, "")) for one in beliefs]
        self._courses = np.concatenate([courses(*one) for one in known])
        self._learning = foreseen_of(known) if spec.convergence else None
        self._most = min(spec.maximum or self._total, self._total)
        sizes = np.clip(layout.sizes[1:], spec.minimum, self._most)
        self.rules = Rules(
            sizes=np.unique([0, *sizes]),
            rate=np.concatenate([self._rates(one) for one in beliefs]),
            ends=np.full((sum(each), 1), WHOLE),
            epochs=np.ones(sum(each), np.int64),
            most=np.full(sum(each), self._most),
            interval=spec.interval_seconds,
            restart=spec.restart_seconds,
            growth=0,
            weight=layout.queue_weights,
            ageing=np.array([queue.ageing_seconds or np.inf for queue in spec.queues], np.float64),
            patience=spec.patience_seconds,
            log_slowdown=_disturbing(beliefs),
        )

    def _rates(self, beliefs: Beliefs) -> Floats:
        """Steps a second of a model's applications, and of an unknown one, [A, G + 1, 1]."""
        known = np.array([*range(len(beliefs.applications)), UNKNOWN])
        every = np.broadcast_to(np.arange(self._total + 1), (len(known), self._total + 1))
        seconds = beliefs.step_seconds(known, np.full(len(known), np.nan), every)
        return np.asarray(np.where(every > 0, 1.0 / seconds, 0.0)[:, :, None], np.float64)

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, Drawn]:
        """See ``Source``: as the models have seen jobs come, from an hour of the day on."""
        spec, hours = self._layout.spec, random.integers(HOURS, size=len(load))
        seconds = spec.interval_seconds * spec.episode_intervals
        each = zip(model.tolist(), hours.tolist(), load.tolist(), strict=True)
        coming = [
            draw(self._beliefs[follows].model.arrivals, hour, seconds, factor, self._total, random)
            for follows, hour, factor in each
        ]
        shape = len(coming), max(1, *(len(one.time) for one in coming))
        found, real = empty(np.full(shape, np.inf), self._layout.capacity), np.zeros(shape)
        begins, unknown = hours.astype(np.float64) * HOUR_SECONDS, np.full(shape, UNKNOWN)
        drawn = Drawn(real, real.copy(), real + 1.0, unknown, begins, real + UNTOLD, unknown.copy())
        for row, (jobs, follows) in enumerate(zip(coming, model.tolist(), strict=True)):
            self._fill(found, drawn, (row, slice(len(jobs.time))), jobs, follows)
        if self._learning is not None:
            first = self._learning.first[found.application]
            drawn.curve[:] = np.where((drawn.steps > 0) & (first >= 0), first + random.integers(DRAWN, size=shape), -1)
        return found, drawn

    def _fill(self, found: Clusters, drawn: Drawn, at: tuple[int, slice], jobs: Coming, follows: int) -> None:
        beliefs, believed = self._beliefs[follows], self._beliefs[0]
        of_log = beliefs.positions(np.array([*beliefs.model.applications, ""], object))
        known = np.where(of_log == UNKNOWN, len(beliefs.applications), of_log)[jobs.application]
        own, names = self._first[follows] + known, np.array([*beliefs.applications, ""], object)
        rate = self.rules.rate[own, :, 0]
        of_member = np.append(beliefs.iterations(np.arange(len(beliefs.applications))), np.nan)[known]
        lasting = jobs.seconds * rate[np.arange(len(own)), jobs.asked]
        steps = np.clip(np.where(np.isnan(of_member), lasting, of_member), 1.0, WHOLE)
        found.time[at], found.application[at], found.queue[at], found.asked[at] = jobs.time, own, jobs.queue, jobs.asked
        found.done[at], drawn.start[at], drawn.steps[at] = WHOLE - steps, WHOLE - steps, steps
        drawn.ideal[at] = steps / rate[:, : self._most + 1].max(axis=1)
        drawn.believed[at], drawn.data[at] = believed.positions(names[known]), jobs.data
        found.worth[at] = believed.lengths.sized(drawn.believed[at], jobs.data) ** self._layout.spec.data_power
        usual, none = believed.usual_seconds(drawn.believed[at], jobs.data), np.full(len(own), np.nan)
        step = believed.step_seconds(drawn.believed[at], none, jobs.asked[:, None])[:, 0]
        iterations = believed.iterations(drawn.believed[at])
        found.expected[at] = np.where(np.isnan(iterations), np.maximum(usual / step, 1.0), 0.0)

    def ahead(self, drawn: Drawn, part: Floats) -> Ahead | None:
        """See ``Source``: of those whose applications' curves are known."""
        return None if self._learning is None else seen_at(self._learning.left, drawn.curve, part)

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """See ``Source``: as jobs of their applications have learned."""
        return lacking(self._courses, application, part)

    def coming(self, second_of_day: Floats) -> Floats:
        """See ``Source``."""
        return self._beliefs[0].coming_at(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """See ``Source``: as if launchers had reported."""
        clusters, spec = episodes.clusters, self._layout.spec
        now, capacity = float(clusters.now[b]), clusters.capacity[b]
        jobs = jobs_of(episodes, b, spec.minimum, self._most)
        outlook = BelievedOutlook(self._beliefs[0], jobs, self._told(episodes, b), int(capacity.sum()))
        outlook.neighbours = None  # what they cost is taken from the pace as it is measured: see ``ClusterWorld``
        worth = outlook.worth(spec.data_power) if spec.data_power else None
        return Situation(now, capacity, jobs, outlook, spec.restart_seconds, factor=worth)

    def _told(self, episodes: Episodes, b: int) -> Records:
        """Data, iterations and pace of each job, and nothing else."""
        clusters = episodes.clusters
        there = clusters.there[b, : clusters.counts[b, THERE]]
        return untold(len(there))._replace(
            application=np.array([*self.applications, ""], object)[episodes.drawn.believed[b, there]],
            data=episodes.drawn.data[b, there],
            iterations=episodes.drawn.steps[b, there],
            iteration=clusters.done[b, there] - episodes.drawn.start[b, there],
            pace=episodes.pace[b, there],
            paced_on=episodes.paced_on[b, there],
        )


def _disturbing(beliefs: Sequence[Beliefs]) -> Floats:
    """See ``Rules.log_slowdown``: jobs of an episode are all of one model."""
    parts = []
    for one in beliefs:
        known = one.neighbours(np.array([*one.applications, ""], object))
        nothing = np.zeros((len(one.applications) + 1,) * 2)
        parts.append(nothing if known is None else known.log_slowdown[np.ix_(known.kind, known.kind)])
    return np.asarray(block_diag(*parts), np.float64) if any(part.any() for part in parts) else UNDISTURBED
