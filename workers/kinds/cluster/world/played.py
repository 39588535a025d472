"""Worlds of kind `cluster` that are tabled, logged and played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag
from typing_extensions import override

from app.kinds.cluster.arrivals import HOUR_SECONDS, HOURS
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import Ahead
from app.kinds.cluster.lookahead import UNLIMITED
from app.kinds.cluster.outlook import UNKNOWN, Beliefs, BelievedOutlook
from app.kinds.cluster.placement import Outlook, Situation
from app.kinds.cluster.records import UNKNOWN as UNTOLD
from app.kinds.cluster.records import Records, untold
from app.kinds.cluster.strategies import fitting
from app.kinds.cluster.throughput import TRIED
from app.kinds.contract.policy import Choice
from app.kinds.contract.policy import Situation as PolicySituation
from workers.kinds.cluster.simulator.kernels import THERE, UNDISTURBED, Clusters, Rules, most
from workers.kinds.cluster.simulator.measured import NCF_BATCH, ONE_GPU, Application, Batch
from workers.kinds.cluster.simulator.simulator import HOUR, Settings, Submission
from workers.kinds.cluster.simulator.simulator import draw as draw_jobs
from workers.kinds.cluster.world.episodes import (
    DRAWN,
    Coming,
    Drawn,
    Episodes,
    Source,
    courses,
    draw,
    foreseen_of,
    jobs_of,
    lacking,
    seen_at,
    usual,
)

if TYPE_CHECKING:
    from workers.kinds.cluster.world.world import ClusterWorld


# Many clusters for ``kernels``: what was measured as tables, and logs as arrays.


def tabled(applications: Mapping[str, Application], settings: Settings, growth: int = 0) -> Rules:
    """Applications whose jobs train, in each epoch, at the batch that is best by what was measured of them."""
    capacity = np.full(settings.nodes, settings.gpus)
    ones, sizes = list(applications.values()), fitting(capacity)
    epochs = max(one.epochs for one in ones)
    rate, ends = np.zeros((len(ones), capacity.sum() + 1, epochs)), np.full((len(ones), epochs), np.inf)
    for kind, one in enumerate(ones):
        ends[kind, : one.epochs] = one.ends
        for gpus in sizes.tolist():
            rate[kind, gpus, : one.epochs] = _fastest(one, gpus, settings.gpus)
    most = [np.flatnonzero(row.any(axis=1))[-1] for row in rate]
    lengths, alone = np.array([one.epochs for one in ones]), (np.ones(1), np.full(1, np.inf), np.inf)
    return Rules(
        sizes, rate, ends, lengths, np.array(most), settings.interval, settings.restart_seconds, growth, *alone
    )


def _fastest(one: Application, gpus: int, node: int) -> Floats:
    """Iterations a second on so many GPUs, packed, at the best batch of each epoch, [epochs]; 0 where none is legal."""
    found = np.zeros(one.epochs)
    if gpus:
        placement = [node] * (gpus // node) + ([gpus % node] if gpus % node else [])
        for batch in _batches(one, gpus):
            total = gpus * batch.atomic * (batch.accumulated + 1)
            found = np.maximum(found, one.gain(one.initial, total) / one.update_seconds(placement, batch))
    return found


def _batches(one: Application, gpus: int) -> set[Batch]:
    if one.name in ONE_GPU:
        return {one.batch_of(NCF_BATCH, 1)} if gpus == 1 else set()
    first = max(one.initial, one.smallest_local * gpus)
    if first > one.largest:
        return set()
    totals = first * (one.largest / first) ** np.linspace(0, 1, TRIED)
    found = {one.batch_of(int(total), gpus) for total in totals}
    return {batch for batch in found if one.smallest_local <= batch.atomic <= one.largest_local}


def clusters(
    logs: Sequence[Sequence[Submission]],
    names: Sequence[str],
    settings: Settings,
    changes: Sequence[Sequence[tuple[float, int, int]]] = (),
    speed: Floats | None = None,
) -> Clusters:
    """Clusters before anything has happened, one for each log; ``names`` of applications in the order of the rules.

    Args:
        logs: jobs in order of submission, [B].
        names: of applications.
        settings: of each cluster.
        changes: of nodes: seconds, node and its GPUs from then on, by cluster in their order; none where empty.
        speed: of a GPU of each node against those that were measured, [N]; None: as fast.
    """
    batch, length = len(logs), max(map(len, logs))
    most = max(map(len, changes), default=0)
    time, change = np.full((batch, length), np.inf), np.full((batch, most, 3), np.inf)
    application, queue = np.zeros((batch, length), np.int64), np.zeros((batch, length), np.int64)
    asked = np.ones((batch, length), np.int64)
    for row, log in enumerate(logs):
        time[row, : len(log)] = [job.time for job in log]
        application[row, : len(log)] = [names.index(job.application) for job in log]
        asked[row, : len(log)] = [job.gpus for job in log]
        queue[row, : len(log)] = [job.queue for job in log]
    for row, made in enumerate(changes):
        change[row, : len(made)] = np.array(made, np.float64).reshape(-1, 3)
    capacity = np.full(settings.nodes, settings.gpus)
    found = empty(time, capacity)._replace(application=application, queue=queue, asked=asked, change=change)
    return found if speed is None else found._replace(speed=np.tile(speed, (batch, 1)))


def empty(time: Floats, capacity: Integers) -> Clusters:
    """Clusters of nodes [N] to which jobs of the first application come, alone in their queue, at times [B, L]."""
    (batch, length), nodes = time.shape, len(capacity)
    real, whole = np.zeros((batch, length)), np.zeros((batch, length), np.int64)
    return Clusters(
        time,
        application=whole.copy(),
        queue=whole.copy(),
        asked=np.ones((batch, length), np.int64),
        expected=real.copy(),
        change=np.zeros((batch, 0, 3)),
        speed=np.ones((batch, nodes)),
        now=np.zeros(batch),
        counts=np.zeros((batch, 4), np.int64),
        there=whole.copy(),
        done=real.copy(),
        epoch=whole.copy(),
        gpus=whole.copy(),
        held=np.zeros((batch, length, nodes), np.int64),
        running=real.copy(),
        restarting=real.copy(),
        restarts=whole.copy(),
        been=whole.copy(),
        completed=np.full((batch, length), np.nan),
        factor=np.ones((batch, length)),
        worth=np.ones((batch, length)),
        ceiling=np.full((batch, length), UNLIMITED),
        capacity=np.tile(capacity, (batch, 1)),
    )


# Clusters as the domain models of a workload have them: tables of what these believe, and jobs that come.


WHOLE = 2.0**30
"""Steps at which all jobs end: one of fewer begins so much nearer to it."""


class PlayedSource(Source):
    """Clusters as M domain models have them; the applications of all, and an unknown one of each, stand in one table.

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
        """Jobs come as each cluster's model has seen them come, from an hour of the day on that is drawn."""
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
        """What applications with a learning curve have left to gain; None where the spec wants no convergence."""
        return None if self._learning is None else seen_at(self._learning.left, drawn.curve, part)

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """Read off the courses of the jobs' applications."""
        return lacking(self._courses, application, part)

    @override
    def coming(self, second_of_day: Floats) -> Floats:
        return self._beliefs[0].coming_at(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """As the service would see it, if launchers reported pace, iterations and data of each job."""
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
    """``Rules.log_slowdown`` of all models' applications: 0 between models, whose jobs never meet."""
    parts = []
    for one in beliefs:
        known = one.neighbours(np.array([*one.applications, ""], object))
        nothing = np.zeros((len(one.applications) + 1,) * 2)
        parts.append(nothing if known is None else known.log_slowdown[np.ix_(known.kind, known.kind)])
    return np.asarray(block_diag(*parts), np.float64) if any(part.any() for part in parts) else UNDISTURBED


# Who answers in played clusters for all jobs at once: rules, to hold agents against.


class Ruled:
    """A rule of the layout, by its name; where it is imitated, it leaves every weight as the queue has it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def watch(self, world: ClusterWorld) -> None:
        """Have the rule decide in ``world`` from now on, for all jobs at once."""
        world.answer(self.name)

    def act(self, situation: PolicySituation) -> Choice:
        """Action 0 for each cluster, [B]: the weight of the job stays as its queue has it."""
        return Choice(np.zeros(len(situation.view.mask), np.int64))


# What rules see of clusters that are played by tables, and that hide nothing.


class TabledOutlook(Outlook):
    """What is expected of the jobs that are there in one cluster, [J], by the tables; an update is an iteration.

    Args:
        rules: with the tables.
        clusters: that are played.
        b: which of them.
        start: what was ``done`` of each of its jobs when it came, [all jobs].
    """

    def __init__(self, rules: Rules, clusters: Clusters, b: int, start: Floats) -> None:
        there = clusters.there[b, : clusters.counts[b, THERE]]
        kind = clusters.application[b, there]
        self._rate: Floats = rules.rate[kind, :, clusters.epoch[b, there]]
        self._left = rules.ends[kind, rules.epochs[kind] - 1] - clusters.done[b, there]
        self._done = clusters.done[b, there] - start[there]

    @override
    def update_seconds(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self._rate, np.float64)

    @override
    def updates(self) -> Floats:
        return np.asarray(self._left, np.float64)

    @override
    def goodput(self, gpus: Integers) -> Floats:
        return self._rate[:, gpus]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """The loss after k iterations is taken to be 1/(k + 1), as live runs expect it."""
        after = self._done[:, None] + np.minimum(self.goodput(gpus) * seconds, self._left[:, None])
        return np.asarray(1.0 / (self._done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    @override
    def seconds_left(self, gpus: Integers) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(self._left[:, None] / np.take_along_axis(self._rate, gpus, axis=1), np.float64)


def moment(rules: Rules, episodes: Episodes, b: int) -> Situation:
    """What rules see of cluster ``b``: its jobs, capacity, and an outlook that hides nothing."""
    clusters = episodes.clusters
    jobs = jobs_of(episodes, b, 1, most(rules, clusters, b))
    outlook = TabledOutlook(rules, clusters, b, episodes.drawn.start[b])
    return Situation(float(clusters.now[b]), clusters.capacity[b], jobs, outlook, rules.restart)


# Clusters to which jobs of measured applications come, as other logs have them. See ``Source``.


GROWTH, BUSIEST = 2, 4.0
SECONDS = 1000.0
"""By which completion times are counted: the sum of them is to fall, not that of how much later each job ends."""


class LoggedSource(Source):
    """Clusters of measured applications that begin empty, at an hour of a log that is drawn from ``logs``.

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

    @override
    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, Drawn]:
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
        jobs = draw_jobs(self._logs, load, random)
        inside = [job for job in jobs if first <= job.time < first + self._seconds] or jobs[:1]
        return [job._replace(time=max(job.time - first, 0.0)) for job in inside]

    def coming(self, second_of_day: Floats) -> Floats:
        """Zeros, [B]: nothing is forecast."""
        return np.zeros_like(second_of_day)

    @override
    def moment(self, episodes: Episodes, b: int) -> Situation:
        return moment(self.rules, episodes, b)

    def ahead(self, drawn: Drawn, part: Floats) -> None:
        """None: measured applications have no learning curves."""

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """Read off the usual course, whatever the application."""
        del application
        return usual(part)
