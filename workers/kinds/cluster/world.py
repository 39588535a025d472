"""The world of a ``cluster`` workload: B clusters stepped by the compiled simulator.

In each interval a learner sets the weight of one job per cluster, the job whose weight was decided longest ago; GPUs
are then allocated by the rule ``soonest``. Published agents and rules decide on all jobs at once, as in the service.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from typing_extensions import override

from app.kinds.cluster.arrivals import HOUR_SECONDS, HOURS
from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.lengths import RemainingGain
from app.kinds.cluster.lookahead import UNLIMITED, Converging
from app.kinds.cluster.outlook import UNKNOWN, Beliefs, BelievedOutlook
from app.kinds.cluster.placement import Rule, Situation
from app.kinds.cluster.policies import FACTORS
from app.kinds.cluster.records import UNKNOWN as UNTOLD
from app.kinds.cluster.records import Records, untold
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Choice, View
from app.kinds.contract.policy import Situation as PolicySituation
from app.policies.base import Published
from workers.evaluation.problem import SimulatedWorld
from workers.evaluation.wrappers import Conditions as Step
from workers.inputs import Conditions
from workers.kinds.cluster.episodes import (
    DRAWN,
    TERMS,
    ComingJobs,
    Episodes,
    HiddenJobs,
    IntervalAmounts,
    Source,
    courses,
    draw,
    foreseen_of,
    initial_convergence,
    jobs_of,
    lacking,
    remaining_share,
    seen_at,
    spend,
    terms,
    update_ceilings,
)
from workers.kinds.cluster.kernels import (
    NOBODY,
    THERE,
    UNDISTURBED,
    Clusters,
    Rules,
    apply_allocation,
    beside_others,
    decide,
    elapse,
    next_weighed_job,
    observe_jobs,
)
from workers.learning.simulator import Step as Stepped

OUTCOMES = (
    Outcome("completion_hours", "h"),
    Outcome("jobs_finished"),
    Outcome("gpu_hours", "GPU-hours"),
    Outcome("restarts"),
)
SPREAD = 0.1
"""Standard deviation of the natural log of an episode's common factor of all seconds per step."""
NESTED = {
    "clusters": Clusters,
    "beside": Clusters,
    "drawn": HiddenJobs,
    "converging": Converging,
    "converging_beside": Converging,
}
PAY = 100.0
"""Factor of learners' rewards, since returns of clusters differ by hundredths."""


class ClusterWorld(SimulatedWorld):
    """B clusters in lock-step with L jobs each: a decision sets the weight of one job per cluster, then time passes.

    Args:
        layout: the workload's layout.
        source: generator of its clusters.
        conditions: batch size B, seed and purpose.
        held_out: number of held-out domain models of ``source``.
    """

    terms_of = TERMS
    outcomes_of = OUTCOMES
    parameters: Sequence[str] = ("rate.jobs", "effect.seconds")

    def __init__(self, layout: Layout, source: Source, conditions: Conditions, held_out: int = 0) -> None:
        weights = [getattr(layout.spec.weights, name) for name in TERMS]
        super().__init__(
            layout,
            len(layout.entries),
            layout.actions,
            weights,
            steps=layout.spec.episode_intervals,
            batch=conditions.batch,
            seed=conditions.seed,
            held_out=held_out,
        )
        self.source, self.rules = source, source.rules
        self._learning = conditions.purpose == "learning"
        self._answering: Callable[[float], Rule] | None = None
        self._outcome_increments, self._gain = np.zeros((self.batch, len(OUTCOMES))), np.zeros(self.batch)
        self._speed = np.repeat([one.speed for one in layout.spec.nodes], [one.count for one in layout.spec.nodes])
        self._price = layout.price / max(float(layout.price.max()), 1e-12) if layout.price.any() else layout.price + 1.0

    @property
    @override
    def outcome_increments(self) -> Floats:
        return self._outcome_increments

    def answer(self, who: str | Published) -> None:
        """Let ``who``, the name of a rule or a published agent, decide on all jobs at once from now on.

        For an unknown name the next step raises KeyError.
        """
        layout = self.layout
        if isinstance(who, str):
            self._answering = lambda _: layout.rules[who]
        else:
            self._answering = lambda coming: layout.weighing(who, coming)

    def follow(self, rule: Rule) -> None:
        """Let ``rule`` decide on all jobs at once from now on."""
        self._answering = lambda _: rule

    def begin(self) -> Episodes:
        """Draw B clusters, let one interval pass so that there are jobs to decide on, and return their state.

        Raises:
            TooLittleData: a followed domain model has no jobs to draw from.
        """
        self._outcome_increments = np.zeros_like(self._outcome_increments)
        effect = np.exp(SPREAD * self.normal(1)[:, 0] * self.by_episode("effect.seconds"))
        rows = np.zeros(self.batch, np.int64) if self.same else np.arange(self.batch)
        model = np.zeros(self.batch, np.int64) if self.model is None else 1 + self.model.astype(np.int64)
        load, some = self.by_episode("rate.jobs").astype(np.float64), rows[:1] if self.same else rows
        clusters, drawn = self.source.draw(load[some], model[some], self.random)
        clusters = Clusters._make(column[rows] for column in clusters)
        elapse(self.rules, clusters)
        beside = Clusters._make(column.copy() for column in clusters)
        converging = initial_convergence(clusters.time.shape)
        never = np.full(clusters.time.shape, -1.0)
        return Episodes(
            clusters,
            beside,
            HiddenJobs._make(column[rows] for column in drawn),
            effect,
            pace=np.full_like(never, np.nan),
            paced_on=np.zeros_like(clusters.gpus),
            demoted=np.full_like(never, NEVER),
            weighed=never,
            asked=next_weighed_job(clusters, never),
            converging=converging,
            converging_beside=converging,
        )

    def observe(self, state: Episodes) -> View:
        """Observe, in each cluster, the job whose weight is decided next, [B, D] (D entries); all weights are legal."""
        values = observe_jobs(self.rules, state.clusters, state.asked, self._coming(state))
        return View(values.astype(np.float32), np.ones((self.batch, self.layout.actions), np.bool_))

    def _coming(self, state: Episodes) -> Floats:
        return self.source.coming(state.drawn.begins + state.clusters.now)

    def advance(self, state: Episodes, actions: NDArray[np.integer], conditions: Step) -> tuple[Episodes, Floats]:
        """Set weights by ``actions`` [B], allocate GPUs and let an interval pass under ``conditions``.

        Returns the state, changed in place, and the reward's terms (``TERMS``), [B, 5].
        """
        clusters = state.clusters
        rows = np.flatnonzero(state.asked != NOBODY)
        clusters.factor[rows, state.asked[rows]] = FACTORS[actions[rows]]
        state.weighed[rows, state.asked[rows]] = clusters.now[rows]
        moved = (
            decide(self.rules, clusters) if self._answering is None else self._decide_by_rule(state, self._answering)
        )
        before, trained = clusters.done.copy(), self.rules.interval - clusters.restarting
        slower = beside_others(self.rules, clusters)
        spent, result = self._pass_interval(clusters, state, conditions, moved)
        state = self._update_measurements(state, slower * (clusters.done - before), trained)
        state = state._replace(converging=self._update_convergence(clusters, state.drawn, state.converging))
        self._outcome_increments = self._counts(state, spent, moved)
        if self._learning:
            _, other = self._pass_interval(state.beside, state, conditions, decide(self.rules, state.beside))
            self._gain = other @ self.weights
            own = self._update_convergence(state.beside, state.drawn, state.converging_beside)
            state = state._replace(converging_beside=own)
        return state._replace(asked=next_weighed_job(clusters, state.weighed)), result

    def step(self, actions: NDArray[np.integer]) -> Stepped:
        """Take one action (number of a factor in ``FACTORS``) per cluster, [B], after ``reset``.

        For learners the reward is the gain in return over clusters with unchanged weights, times ``PAY``.
        """
        result = super().step(actions)
        return result._replace(reward=(PAY * (self.paid + self._gain)).astype(np.float32)) if self._learning else result

    def _decide_by_rule(self, state: Episodes, answering: Callable[[float], Rule]) -> Integers:
        """Let a rule decide on all jobs of each cluster; return the numbers of jobs moved, [B]. ``answering`` makes the
        rule from the number of GPUs expected to be requested within an hour."""
        moved, coming = np.zeros(self.batch, np.int64), self._coming(state)
        for b in np.flatnonzero(state.clusters.counts[:, THERE]).tolist():
            wanted = answering(float(coming[b]))(self.source.moment(state, b)).gpus
            moved[b] = apply_allocation(self.rules, state.clusters, b, wanted)
        return moved

    def _pass_interval(
        self, clusters: Clusters, state: Episodes, conditions: Step, moved: Integers
    ) -> tuple[IntervalAmounts, Floats]:
        """Let an interval pass under ``conditions``; return its amounts, and the reward's terms [B, 5].

        ``moved``: number of jobs whose nodes changed before it, [B].
        """
        slower = state.effect * np.exp(conditions.slowdown + conditions.noise[:, 0])
        clusters.speed[:] = self._speed * ((1 - conditions.repeated) / slower)[:, None]
        gpus = np.floor(self.layout.capacity.cumsum() * conditions.capacity[:, None] + 1e-9).astype(np.int64)
        spent = spend(self.source, clusters, state.drawn, self._price, self.steps)
        clusters.capacity[:] = np.diff(gpus, prepend=0, axis=1)
        last = self._taken + 1 == self.steps
        return spent, terms(self.layout, state.drawn, clusters, spent, moved, last=last)

    def _update_convergence(self, clusters: Clusters, drawn: HiddenJobs, before: Converging) -> Converging:
        """Return the next limits on GPUs of jobs that gain little, [B, L]; ``before`` if the spec sets none."""
        convergence = self.layout.spec.convergence
        ahead = None if convergence is None else self.source.ahead(drawn, 1.0 - remaining_share(clusters, drawn))
        if convergence is None or ahead is None:
            return before
        return update_ceilings(self.layout, convergence, clusters, ahead, before)

    def _update_measurements(self, state: Episodes, values: Floats, seconds: Floats) -> Episodes:
        """Return the state with the pace of ``values`` steps in ``seconds``, [B, L] each, and jobs' new demotions."""
        clusters = state.clusters
        went = (values > 0) & (seconds > 0) & (clusters.gpus > 0)
        served = (state.demoted == NEVER) & (clusters.running * clusters.asked >= self.layout.demotion)
        return state._replace(
            pace=np.where(went, values / np.maximum(seconds, 1e-9), state.pace),
            paced_on=np.where(went, clusters.gpus, state.paced_on),
            demoted=np.where(served, clusters.now[:, None], state.demoted),
        )

    def _counts(self, state: Episodes, spent: IntervalAmounts, moved: Integers) -> Floats:
        """Return the outcomes of one interval, [B, 4]: mean hours of jobs, jobs ended, GPU-hours, restarts."""
        hours = spent.present.sum(axis=1) / 3600 / np.maximum((state.drawn.steps > 0).sum(axis=1), 1)
        used = (spent.gpus * spent.present).sum(axis=1) / 3600
        return np.stack([hours, spent.ended, used, moved], axis=1)

    @override
    def get_state(self) -> dict[str, Any]:
        rows = {name: value for name, value in self._state._asdict().items() if name not in NESTED}
        parts = {name: getattr(self._state, name)._asdict() for name in NESTED}
        settings = {
            "applications": len(self.rules.epochs),
            "same": self.same,
            "random": self.random.bit_generator.state,
            "model": self.model,
        }
        result = {"rows": rows, "parts": parts, "taken": self._taken, "factors": self.factors, **settings}
        return deepcopy(result)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the result of ``get_state``; begin new episodes instead if the number of applications has changed.
        Raises KeyError if an entry is missing."""
        if state.get("applications") != len(self.rules.epochs):
            self.reset()
            return
        saved = deepcopy(dict(state))
        parts = {name: kind(**saved["parts"][name]) for name, kind in NESTED.items()}
        self._state = Episodes(**parts, **saved["rows"])
        self.same, self.model, self.factors, self._taken = (saved[key] for key in ("same", "model", "factors", "taken"))
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = saved["random"]


def empty(time: Floats, capacity: Integers) -> Clusters:
    """Make clusters of nodes with ``capacity`` GPUs [N], and default jobs that come at ``time`` seconds [B, L]."""
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


WHOLE = 2.0**30
"""Iterations at which every job ends; a shorter job starts nearer to it."""


class PlayedSource(Source):
    """A source of clusters by M domain models; one table holds all their applications and, per model, an unknown one.

    Args:
        layout: the workload's layout.
        beliefs: the domain models; rules assume the first.
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
        """Return steps per second of a model's applications and an unknown one on 0 to G GPUs, [A, G + 1, 1]."""
        known = np.array([*range(len(beliefs.applications)), UNKNOWN])
        every = np.broadcast_to(np.arange(self._total + 1), (len(known), self._total + 1))
        seconds = beliefs.step_seconds(known, np.full(len(known), np.nan), every)
        return np.asarray(np.where(every > 0, 1.0 / seconds, 0.0)[:, :, None], np.float64)

    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, HiddenJobs]:
        """Draw the jobs of B clusters, each from a random hour of the day on, by its ``model`` [B] (index) and ``load``
        [B] (factor of the rate of jobs).

        Raises:
            TooLittleData: a model has no jobs to draw from.
        """
        spec, hours = self._layout.spec, random.integers(HOURS, size=len(load))
        seconds = spec.interval_seconds * spec.episode_intervals
        each = zip(model.tolist(), hours.tolist(), load.tolist(), strict=True)
        coming = [
            draw(self._beliefs[follows].model.arrivals, hour, seconds, factor, self._total, random)
            for follows, hour, factor in each
        ]
        shape = len(coming), max(1, *(len(one.time) for one in coming))
        result, real = empty(np.full(shape, np.inf), self._layout.capacity), np.zeros(shape)
        begins, unknown = hours.astype(np.float64) * HOUR_SECONDS, np.full(shape, UNKNOWN)
        drawn = HiddenJobs(real, real.copy(), real + 1.0, unknown, begins, real + UNTOLD, unknown.copy())
        for row, (jobs, follows) in enumerate(zip(coming, model.tolist(), strict=True)):
            self._fill(result, drawn, (row, slice(len(jobs.time))), jobs, follows)
        if self._learning is not None:
            first = self._learning.first[result.application]
            drawn.curve[:] = np.where((drawn.steps > 0) & (first >= 0), first + random.integers(DRAWN, size=shape), -1)
        return result, drawn

    def _fill(self, into: Clusters, drawn: HiddenJobs, at: tuple[int, slice], jobs: ComingJobs, follows: int) -> None:
        beliefs, believed = self._beliefs[follows], self._beliefs[0]
        of_log = beliefs.positions(np.array([*beliefs.model.applications, ""], object))
        known = np.where(of_log == UNKNOWN, len(beliefs.applications), of_log)[jobs.application]
        own, names = self._first[follows] + known, np.array([*beliefs.applications, ""], object)
        rate = self.rules.rate[own, :, 0]
        of_member = np.append(beliefs.iterations(np.arange(len(beliefs.applications))), np.nan)[known]
        lasting = jobs.seconds * rate[np.arange(len(own)), jobs.requested_gpus]
        steps = np.clip(np.where(np.isnan(of_member), lasting, of_member), 1.0, WHOLE)
        into.time[at], into.application[at], into.queue[at], into.asked[at] = (
            jobs.time,
            own,
            jobs.queue,
            jobs.requested_gpus,
        )
        into.done[at], drawn.start[at], drawn.steps[at] = WHOLE - steps, WHOLE - steps, steps
        drawn.ideal[at] = steps / rate[:, : self._most + 1].max(axis=1)
        drawn.believed[at], drawn.data[at] = believed.positions(names[known]), jobs.data
        into.worth[at] = believed.lengths.relative_size(drawn.believed[at], jobs.data) ** self._layout.spec.data_power
        usual, none = believed.usual_seconds(drawn.believed[at], jobs.data), np.full(len(own), np.nan)
        step = believed.step_seconds(drawn.believed[at], none, jobs.requested_gpus[:, None])[:, 0]
        iterations = believed.iterations(drawn.believed[at])
        into.expected[at] = np.where(np.isnan(iterations), np.maximum(usual / step, 1.0), 0.0)

    def ahead(self, drawn: HiddenJobs, part: Floats) -> RemainingGain | None:
        """Forecast each job's gain in its metric after the fraction ``part`` of iterations, [B, L]; NaN: no curve. The
        result is None if the spec has no convergence."""
        return None if self._learning is None else seen_at(self._learning.forecasts, drawn.curve, part)

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """Return the gap, 1 to 0, of metrics to their final values after the fraction ``part`` of iterations, by the
        course of each ``application`` (index), of any shape."""
        return lacking(self._courses, application, part)

    @override
    def coming(self, second_of_day: Floats) -> Floats:
        return self._beliefs[0].coming_at(second_of_day)

    def moment(self, episodes: Episodes, b: int) -> Situation:
        """Return the state of cluster ``b`` (index) that rules see if jobs report pace (steps/s), iterations, data."""
        clusters, spec = episodes.clusters, self._layout.spec
        now, capacity = float(clusters.now[b]), clusters.capacity[b]
        jobs = jobs_of(episodes, b, spec.minimum, self._most)
        outlook = BelievedOutlook(self._beliefs[0], jobs, self._job_records(episodes, b), int(capacity.sum()))
        outlook.neighbours = None  # interference is already in the measured pace
        worth = outlook.worth(spec.data_power) if spec.data_power else None
        return Situation(now, capacity, jobs, outlook, spec.restart_seconds, factor=worth)

    def _job_records(self, episodes: Episodes, b: int) -> Records:
        """Make records of the active jobs of cluster ``b`` with data, iterations and steps per second alone."""
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
    """Return ``Rules.log_slowdown`` of all models' applications, [A, A], 0 between models; [0, 0]: no interference."""
    parts = []
    for one in beliefs:
        known = one.neighbours(np.array([*one.applications, ""], object))
        nothing = np.zeros((len(one.applications) + 1,) * 2)
        parts.append(nothing if known is None else known.log_slowdown[np.ix_(known.kind, known.kind)])
    return np.asarray(block_diag(*parts), np.float64) if any(part.any() for part in parts) else UNDISTURBED


class RulePolicy:
    """A policy that decides by the layout's rule ``name``. For imitating learners its action changes no weight."""

    def __init__(self, name: str) -> None:
        self.name = name

    def watch(self, world: ClusterWorld) -> None:
        """Let the rule decide on all jobs of ``world`` at once from now on."""
        world.answer(self.name)

    def act(self, situation: PolicySituation) -> Choice:
        """Choose action 0 in each of B clusters, [B]: the job keeps its queue's weight."""
        return Choice(np.zeros(len(situation.view.mask), np.int64))
