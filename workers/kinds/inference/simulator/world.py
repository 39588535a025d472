"""Episodes of an inference workload, for one agent (``InferenceWorld``) or one agent per user (``Clients``).

Letters in shapes: B episodes, U users, D observation entries, N actions, O outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from app.charts.text import MONEY, SHARE
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Situation, View
from app.kinds.inference.awarding import Client, award, clients
from app.kinds.inference.dynamics import BATCHES, PARTS, PARTS_OF_INTERVAL, Projector, State, Transitions, view_of
from app.kinds.inference.heuristics import WITHOUT_MODEL
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import DAY_SECONDS, LASTING, ServiceModel
from app.kinds.inference.quality import jain
from workers.evaluation.problem import DisturbedWorld
from workers.evaluation.wrappers import World, neutral
from workers.inputs import Conditions
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.arrivals import Load, Potential, RecordedArrivals, Transition
from workers.learning.simulator import JointSimulator, MaskedObservation, Role, Step

Floats = NDArray[np.float64]
TERMS = ("quality", "fairness", "cost", "switching")
OUTCOMES = (
    Outcome("response_quality", SHARE),
    Outcome("dropped", SHARE),
    Outcome("mean_delay", "s"),
    Outcome("server_hours", "server-hours"),
    Outcome("cost", MONEY),
)
FAIRNESS = Outcome("jain", SHARE)
"""Jain's index of the users' mean qualities, an outcome with several users, beside the quality of each user."""
# The discounted optimum of a crowded server of seconds leaves 8 % of the undiscounted after 10 s, 1.3 % after 30 s; of
# other systems (see `benchmarks.inference_small`) .2 to .7 % after 50 s, less than .01 % after 200 s: there PPO left .4
# to 7 % after 50 s, .3 to 2 % after 200 s. Where bursts were recorded, PPO learned less that way (return -1.1 instead
# of -.17 on the training windows of `benchmarks.inference_agents`), and so did agents of users, each of which the
# others change (mean quality .725 instead of .731, Jain's index .952 instead of .961; one seed each).
NEAR, FAR = 5, 20  # control intervals after which learners' rewards are discounted by 1/e; FAR: one agent, steady rates
WATCHED, STRAYING = 96, 0.25  # decisions to which learners' potential is fitted, and the share of random ones
LOAD = 1.5  # largest factor of the requests for which an episode's length is estimated


def outcomes_of(layout: Layout) -> Sequence[Outcome]:
    """Return names and units of the outcomes counted per episode; with several users also fairness and qualities."""
    if len(layout.users) == 1:
        return OUTCOMES
    return (*OUTCOMES, FAIRNESS, *(Outcome(f"quality.{user}", SHARE) for user in layout.users))


class Ticks:
    """A view of a world for disturbances, whose ``steps`` are control intervals of equal length, not decisions."""

    def __init__(self, world: InferenceWorld) -> None:
        self._world, self.steps = world, world.intervals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)


class InferenceWorld(DisturbedWorld):
    """B episodes of a workload, each at its next decision: a batch for an idle server, or the number of servers.

    Args:
        layout: the workload's layout.
        models: the workload's domain model, then those of held-out samples.
        conditions: batch size, seed and purpose; for learners each episode begins anew as it ends. With option
            ``service`` = ``exponential`` batch seconds are memoryless; with option ``alike`` = R the batch is R times
            the same B/R episodes, so that R policies can be compared in one world.
        recorded: requests to replay, with an evaluation's episodes evenly apart; None: requests are drawn.
        believed: domain model that policies assume; None: ``models[0]``.

    Attributes:
        before, after: for learners, users' qualities before and after the last step, also in ended episodes.
        terms, paid: terms of the last step's reward (``TERMS``), [B, 4], and their negative weighted sum, [B].

    Raises:
        ValueError: the domain model lacks service times or rates.
    """

    terms_of = TERMS
    advice: slice | None = None
    parameters: Sequence[str]
    view: View
    before: QualitySoFar
    after: QualitySoFar

    def __init__(
        self,
        layout: Layout,
        models: Sequence[ServiceModel],
        conditions: Conditions,
        recorded: RecordedArrivals | None = None,
        believed: ServiceModel | None = None,
    ) -> None:
        super().__init__(conditions.batch, conditions.seed, 1)
        self.layout, self.models, self.recorded = layout, models, recorded
        self.outcomes = outcomes_of(layout)
        self.memoryless = conditions.options.get("service") == "exponential"
        self._alike = conditions.options.get("alike", 1)
        self.renews, self.held_out = conditions.purpose == "learning", len(models) - 1
        spec = layout.spec
        self.projector = Projector.of(layout, believed or models[0])
        self.observation_space, self.action_space = layout.observation_space, layout.action_space
        wanted = spec.weights
        self.weights = np.array([wanted.quality, wanted.fairness, wanted.cost, wanted.switching])
        self.parameters = (
            *(f"{group}.{user}" for group in ("target", "weight", "rate", "burst") for user in layout.users),
            *(f"price.{server}" for server in layout.servers),
            "effect.seconds",
        )
        self.intervals = int(np.ceil(spec.episode_seconds / spec.control_seconds)) + 1
        self.rules = _rules(layout, self.projector)
        self.steps = self._longest()
        rate = models[0].rate.mean(axis=1) if recorded is None else recorded.rate
        self.requests = max(float(rate.sum()) * spec.episode_seconds, 1.0)  # of a mean episode
        self.whole_cost = max(float(layout.price @ layout.maximum) * spec.episode_seconds, 1e-300)
        self._rows = np.arange(self.batch)
        self._late = np.zeros((self.batch, len(layout.users)))
        self.potential: Potential | None = None
        self._state: State | None = None

    def _longest(self) -> int:
        """Estimate the largest number of decisions in an episode: every server decides at every event, doubled."""
        spec = self.layout.spec
        rate = max(model.rate.max(axis=1).sum() for model in self.models) if self.recorded is None else self._busiest()
        requests = LOAD * rate * spec.episode_seconds
        servers, controls = int(self.layout.maximum.sum()), spec.episode_seconds / spec.control_seconds + 1
        return int(2 * (requests + 10 * np.sqrt(requests) + 10 + controls * kernels.MOST_ASKED) * (2 + servers))

    def _busiest(self) -> float:
        assert self.recorded is not None  # noqa: S101  (narrows the type)
        window, log = self.layout.spec.episode_seconds, self.recorded
        return float(
            sum(np.bincount(((own - log.first) // window).astype(int)).max(initial=0) for own in log.times) / window * 2
        )

    @property
    def clusters(self) -> NDArray[np.intp] | None:
        """Group of each episode by its beginning in the recorded log, [B], since they correlate; None: no recording."""
        return None if self.recorded is None else np.unique(self.load.origin, return_inverse=True)[1]

    @property
    def situation(self) -> Situation:
        """What policies read at the present decisions, after ``reset``: domain model, last batches, state, view."""
        return Situation(self.projector._replace(recent=self.recent), self.state, self.view)

    @property
    def recent(self) -> Transitions:
        """The last batches of each episode and the last requests of each user, as adaptive policies get them."""
        users, shape = len(self.layout.users), (self.batch, BATCHES)
        past = Transitions(np.empty(shape, np.int64), np.empty(shape), np.empty((self.batch, users, PARTS), np.int64))
        kernels.look_back(self.rules, self.worlds, *past)
        return past

    @property
    def state(self) -> State:
        """The observable state at the present decisions. Raises RuntimeError before the first ``reset``."""
        if self._state is None:
            raise RuntimeError("reset() comes before the first step")
        return self._state

    def reset(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Begin B episodes; return observation [B, D] and mask of legal actions [B, N].

        For learners the first call also fits the potential that shapes rewards.
        """
        if self.renews and self.potential is None:
            self.potential = self._fit_potential()
        return self._first_view()

    def _fit_potential(self) -> Potential:
        """Fit the shaping potential to a simple rule's decisions, 25 % of them random, from seed 0."""
        seed, self.seed = self.seed, 0
        rng, met = np.random.default_rng(0), list[Transition]()
        _, mask = self._first_view()
        for _ in range(WATCHED):
            before, ruled = self.state.waiting, WITHOUT_MODEL.act(self.situation).action
            strays = rng.random(self.batch) < STRAYING
            step = self.step(np.where(strays, (rng.random(mask.shape) * mask).argmax(axis=1), ruled))
            assert step.discount is not None  # noqa: S101  (narrows the type)
            met.append(Transition(step.reward, step.discount, before, self.state.waiting))
            mask = step.mask
        self.seed = seed
        return Potential.fit(met)

    def _first_view(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        self.renew()
        if self.renews:
            self.same = False
        ticks: Any = Ticks(self)
        for disturbance in self.disturbances:
            disturbance.begin(ticks)
        self.constants, self.load = _copy_contiguous(self._episode_constants(ticks)), _copy_contiguous(self._load())
        self.worlds = _worlds(self.batch, self.layout, len(self.load.lasting))
        self._draw(self._rows)
        self.amounts = np.zeros((self.batch, 7))
        self._start(self.amounts, self._rows)
        self._look()
        self._settle()
        return self.view

    def step(self, actions: NDArray[np.integer]) -> Step:
        """Take one action (number) per episode, [B], after ``reset``; for learners, episodes that end begin anew.

        Learners are charged for fairness as it changes: (Jain's index − 1) times the share of the episode that has
        passed is an undiscounted potential (Ng, Harada and Russell, 1999) whose differences add up to the episode's
        fairness term.

        Raises:
            ValueError: an action is illegal.
        """
        elapsed, ended = np.empty(self.batch), self.worlds.counts[:, kernels.ENDED].copy()
        if self.renews:
            self.before = quality_so_far(self.worlds, self.rules.until)
        self.amounts = np.zeros((self.batch, 7))
        begun, came, waiting = self.worlds.clock[:, kernels.NOW].copy(), self._came, self.state.waiting
        chosen = np.ascontiguousarray(actions, np.int64)
        wrong = kernels.step(self.rules, self.constants, self.load, self.worlds, self.amounts, chosen, elapsed)
        if wrong >= 0:
            raise ValueError(f"action {chosen[wrong]} of episode {wrong} is not legal")
        if self.renews:
            elapsed = self._cut(begun)
            self.after = quality_so_far(self.worlds, self.rules.until)
        self._settle(ended)
        self._look()
        done = self.worlds.counts[:, kernels.ENDED] == 1
        pay = self.paid * (self.requests if self.renews else 1.0)
        surplus = self._surplus(came, elapsed) if self._steady else None
        if self.renews and done.any():
            self._begin_anew(np.flatnonzero(done))
        far = surplus is not None and self.layout.spec.policies == "one"
        horizon = (FAR if far else NEAR) * self.rules.window
        discount = np.exp(-elapsed / horizon).astype(np.float32)
        if self.potential is not None:
            pay = self.potential.paid(Transition(pay, discount, waiting, self.state.waiting), surplus)
        observation, mask = self.view
        return Step(
            observation, mask, pay.astype(np.float32), done, observation, discount, done if self.renews else None
        )

    def _cut(self, begun: Floats) -> Floats:
        """End learners' episodes when no more requests come; return the seconds since the decisions, which were at the
        seconds ``begun``, [B] each.

        Otherwise learners, who don't observe the time, would mistake the final idle phase for an effect of waiting."""
        until, now = self.rules.until, self.worlds.clock[:, kernels.NOW]
        self.worlds.counts[now >= until, kernels.ENDED] = 1
        return np.minimum(now, until) - np.minimum(begun, until)

    @property
    def _came(self) -> NDArray[np.int64]:
        return self.worlds.user_count[:, :, kernels.CAME].copy()

    @property
    def _steady(self) -> bool:
        """Whether requests come at known constant rates; deviations from their expected number are then pure chance."""
        load, rates = self.load, self.load.rate
        return not (len(load.times) or load.variation.any() or (load.burst != 1.0).any() or np.ptp(rates, axis=2).any())

    def _surplus(self, came: NDArray[np.int64], elapsed: Floats) -> Floats:
        """Return the requests since the last decision less their expected number, [B, U]; 0 on average for any policy.

        ``came``: requests of each user up to that decision, [B, U]; ``elapsed``: seconds since then, [B].
        """
        load = self.load
        expected: Floats = load.rate[load.model, :, 0] * load.factor * elapsed[:, None]
        return self._came - came - expected

    def _begin_anew(self, rows: NDArray[np.int64]) -> None:
        self._draw(rows)
        self._start(np.zeros((self.batch, 7)), rows)
        fresh = _state_buffers(len(rows), self.layout)
        kernels.look(self.rules, self.constants, self.worlds, fresh, rows)
        view = view_of(self.layout, State(*fresh))
        before: Any = self.state
        state = State(*(field.copy() for field in before))
        for old, new in zip(state, fresh, strict=True):
            old[rows] = new
        observation, mask = self.view.observation.copy(), self.view.mask.copy()
        observation[rows], mask[rows] = view
        self._state, self.view = state, View(observation, mask)

    def _start(self, amounts: Floats, rows: NDArray[np.int64]) -> None:
        """Begin the episodes ``rows`` [n], with smoothed rates from the recording before them, else the usual rates;
        costs and drops up to their first decisions are added to ``amounts`` [B, 7]."""
        kernels.start(self.rules, self.constants, self.load, self.worlds, amounts, rows)
        if self.recorded is None or self.recorded.begins is None:
            return
        times, other = self.worlds.user_time, self._late[rows] - self.rules.usual
        times[rows, :, kernels.RATE] += other * np.exp(-times[rows, :, kernels.RATE_AT] / self.rules.window)
        width, before = self.rules.window / PARTS_OF_INTERVAL, np.arange(-PARTS, 0)
        known = self.recorded.before(self.load.origin[rows], width, PARTS)
        now = (self.worlds.clock[rows, kernels.NOW] / width).astype(np.int64)
        for part, counts in zip(before, known.transpose(2, 0, 1), strict=True):
            own = rows[now - PARTS <= part]
            self.worlds.parts[own, :, part] = counts[now - PARTS <= part]

    def _look(self) -> None:
        known = _state_buffers(self.batch, self.layout)
        kernels.look(self.rules, self.constants, self.worlds, known, self._rows)
        self._state = State(*known)
        self.view = view_of(self.layout, self._state)
        # Nothing is decided in ended episodes: rules would otherwise compute numbers of servers for them in every step.
        self.view.mask[self.worlds.counts[:, kernels.ENDED] == 1, 1:] = False

    def _settle(self, ended: NDArray[np.int64] | None = None) -> None:
        if self.renews and ended is not None:
            unfair = self.after.unfair - self.before.unfair
        else:
            unfair = np.zeros(self.batch)
            kernels.fairness(self.constants, self.worlds, unfair)
            if ended is not None:
                unfair[ended == 1] = 0.0
        self.ending = (self.worlds.counts[:, kernels.ENDED] == 1) & (True if ended is None else ended == 0)
        requests = np.maximum(self.worlds.counts[:, kernels.REQUESTS], 1)
        part = self.amounts
        self.terms: NDArray[np.floating] = np.stack(
            [
                part[:, kernels.LOST] / requests,
                unfair,
                part[:, kernels.COST] / self.whole_cost,
                part[:, kernels.SWITCHED] / requests,
            ],
            axis=1,
        )
        self.paid = -(self.terms @ self.weights)

    @property
    def outcome_increments(self) -> Floats:
        """Increase of each of O outcomes by the last step, [B, O]; delays are divided by the number of all requests."""
        came, part = self.worlds.counts[:, kernels.REQUESTS], self.amounts
        requests, nobody = np.maximum(came, 1), (came == 0) * self.ending
        columns = (
            part[:, kernels.GAINED] / requests + nobody,
            part[:, kernels.DROPPED] / requests,
            part[:, kernels.DELAY] / requests,
            part[:, kernels.ON] / 3600,
            part[:, kernels.COST],
        )
        if len(self.layout.users) == 1:
            return np.stack(columns, axis=1)
        now = quality_so_far(self.worlds, self.rules.until)
        fair = np.concatenate([now.jain[:, None], now.quality], axis=1) * self.ending[:, None]
        return np.concatenate([np.stack(columns, axis=1), fair], axis=1)

    def _seeds(self, count: int) -> NDArray[np.uint64]:
        drawn = self.random.integers(0, 1 << 63, 1 if self.same else count // self._alike, np.uint64)
        return np.resize(drawn, count)

    def _draw(self, rows: NDArray[np.int64]) -> None:
        count, members = len(rows), self.constants.log_seconds.shape[0]
        self.constants.seed[rows] = self._seeds(count)
        which = self.load.model[rows]
        first, size = self._members[0][which], self._members[1][which]
        self.constants.member[rows] = first + (self._uniform(count) * size).astype(np.int64).clip(0, members - 1)
        origin = self._uniform(count)
        if self.recorded is not None:
            share = origin if self.renews or self.same else (rows + 0.5) / self.batch
            self.load.origin[rows], self._late[rows] = self.recorded.at(share)
        else:
            self.load.origin[rows] = origin * DAY_SECONDS

    def _uniform(self, count: int) -> Floats:
        drawn = self.random.random(1 if self.same else count // self._alike)
        return np.resize(drawn, count)

    def _factor(self, group: str, names: Sequence[str]) -> Floats:
        """Return the factors of the parameters ``group.name``, [B, names]; 1 where they are not disturbed."""
        columns = [self.factors.get(f"{group}.{name}", np.ones(self.variety)) for name in names]
        return np.stack(columns, axis=1)[self._rows % self.variety]

    def _episode_constants(self, ticks: World) -> kernels.EpisodeConstants:
        layout, quality = self.layout, self.layout.quality
        now = [self.conditions_at(ticks) for _ in range(self.intervals)] if self.disturbances else []
        log_seconds = np.concatenate([model.log_seconds for model in self.models])
        sizes = np.array([len(model.log_seconds) for model in self.models])
        self._members = np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes
        target = self._factor("target", layout.users)
        shape = (max(len(now), 1), self.batch)
        return kernels.EpisodeConstants(
            seed=np.zeros(self.batch, np.uint64),
            full_until=quality.full_until * target,
            zero_at=quality.zero_at * target,
            weight=quality.weight * self._factor("weight", layout.users),
            price=layout.price * self._factor("price", layout.servers),
            member=np.zeros(self.batch, np.int64),
            log_seconds=np.ascontiguousarray(log_seconds, np.float64),
            spread=np.repeat(np.stack([model.spread for model in self.models]), sizes, axis=0).astype(np.float64),
            noise=self._factor("effect", ["seconds"])[:, 0],
            slowdown=np.stack([one.slowdown + one.noise[:, 0] for one in now]) if now else np.zeros(shape),
            repeated=np.stack([one.repeated for one in now]) if now else np.zeros(shape),
            capacity=np.stack([one.capacity for one in now]) if now else np.ones(shape),
            memoryless=self.memoryless,
        )

    def conditions_at(self, ticks: World) -> Any:
        """Advance all disturbances by a control interval; return their combined conditions in it."""
        total = neutral(self.batch, self.channels)
        for disturbance in self.disturbances:
            conditions = disturbance.conditions(ticks)
            total = total if conditions is None else total.combine(conditions)
        return total

    def _load(self) -> Load:
        spec, users = self.layout.spec, self.layout.users
        parts = max(model.rate.shape[1] for model in self.models)
        varying = np.stack([model.varying() for model in self.models])
        selection = (LASTING == 1.0) | varying.any(axis=(0, 1))
        lasting = LASTING[selection]
        log = self.recorded.joined() if self.recorded is not None else (np.zeros(0), np.zeros(len(users) + 1, np.int64))
        return Load(
            rate=np.stack([model.rate[:, np.arange(parts) * model.rate.shape[1] // parts] for model in self.models]),
            variation=varying[..., selection],
            lasting=(lasting / lasting[0]).round().astype(np.int64),
            model=np.zeros(self.batch, np.int64) if self.model is None else 1 + np.asarray(self.model, np.int64),
            factor=self._factor("rate", users),
            burst=self._factor("burst", users),
            burst_at=int(np.flatnonzero(lasting == 1.0)[0]),
            origin=np.zeros(self.batch),
            times=log[0],
            first=log[1],
            window=spec.control_seconds * float(lasting[0]),
            until=spec.episode_seconds,
        )

    def get_state(self) -> dict[str, Any]:
        """Return the whole state, after ``reset``, as a dict of arrays and plain values."""
        parts: dict[str, Any] = {"given": self.constants, "load": self.load, "worlds": self.worlds}
        arrays = {name: _copy_contiguous(part)._asdict() for name, part in parts.items()}
        worth = None if self.potential is None else self.potential._asdict()
        return {**arrays, "potential": worth, "same": self.same, "random": self.random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore the result of ``get_state``, and continue its episodes. Raises KeyError if an entry is missing."""
        self.constants = _copy_contiguous(kernels.EpisodeConstants(**state["given"]))
        self.load = _copy_contiguous(Load(**state["load"]))
        self.worlds = _copy_contiguous(kernels.Worlds(**state["worlds"]))
        worth = state["potential"]
        self.potential = None if worth is None else _copy_contiguous(Potential(**worth))
        self.same = state["same"]
        self.random = np.random.Generator(np.random.SFC64())
        self.random.bit_generator.state = state["random"]
        self.amounts = np.zeros((self.batch, 7))
        self._look()


class QualitySoFar(NamedTuple):
    """Qualities of U users so far in B episodes, over the requests that are started or dropped.

    Attributes:
        missed: sum of 1 − quality so far over the number of the user's requests in the whole episode, 0…1, [B, U].
        quality: mean response quality, 0…1; 1 before the first request, [B, U].
        jain: Jain's index of the users' qualities, 0…1, [B].
        share: share of the episode that has passed, 0…1, [B].
    """

    missed: Floats
    quality: Floats
    jain: Floats
    share: Floats

    @property
    def unfair(self) -> Floats:
        """(1 − Jain's index) times the share of the episode that has passed, [B]."""
        return self.share * (1.0 - self.jain)


def quality_so_far(worlds: kernels.Worlds, until: float) -> QualitySoFar:
    """Compute U users' qualities so far in B episodes; ``until``: seconds of an episode in which requests come."""
    missed, counts = worlds.user_time[:, :, kernels.MISSED], worlds.user_count
    quality = 1.0 - missed / np.maximum(counts[:, :, kernels.DECIDED], 1)
    share = np.minimum(worlds.clock[:, kernels.NOW] / until, 1.0)
    return QualitySoFar(missed / np.maximum(counts[:, :, kernels.COMING], 1), quality, jain(quality), share)


def _copy_contiguous(parts: Any) -> Any:
    """Copy the named tuple ``parts`` with contiguous arrays, so that loops are compiled for one memory layout."""
    return parts._make(value.copy() if isinstance(value, np.ndarray) else value for value in parts)


def _rules(layout: Layout, projector: Projector) -> kernels.Rules:
    spec, seconds, usual = layout.spec, projector.seconds, projector.usual
    if seconds is None or usual is None:
        raise ValueError("a simulator needs a domain model")
    return kernels.Rules(
        batches=layout.batches.astype(np.int64),
        klass=np.repeat(np.arange(len(layout.servers)), layout.maximum).astype(np.int64),
        minimum=layout.minimum.astype(np.int64),
        maximum=layout.maximum.astype(np.int64),
        startup=layout.startup.astype(np.float64),
        switch=layout.switch.astype(np.float64),
        accuracy=layout.quality.accuracy,
        exponential=layout.quality.exponential,
        mean_seconds=np.ascontiguousarray(seconds, np.float64),
        usual=np.ascontiguousarray(usual, np.float64),
        window=float(spec.control_seconds),
        until=float(spec.episode_seconds),
        queue_limit=int(spec.queue_limit),
        controlled=bool((layout.maximum > layout.minimum).any()),
    )


def _worlds(batch: int, layout: Layout, factors: int) -> kernels.Worlds:
    users, servers, room = len(layout.users), int(layout.maximum.sum()), layout.spec.queue_limit + 1
    return kernels.Worlds(
        clock=np.zeros((batch, 3)),
        counts=np.zeros((batch, 8), np.int64),
        user_time=np.zeros((batch, users, 5)),
        user_count=np.zeros((batch, users, 7), np.int64),
        server_time=np.zeros((batch, servers, 3)),
        server_count=np.zeros((batch, servers, 5), np.int64),
        queue=np.zeros((batch, users, room)),
        streams=np.zeros((batch, users), np.uint64),
        rates=np.zeros((batch, users)),
        factors=np.ones((batch, users, factors)),
        places=np.zeros((batch, users), np.int64),
        batches=np.zeros((batch, BATCHES), np.int64),
        paces=np.zeros((batch, BATCHES)),
        parts=np.zeros((batch, users, PARTS + 1), np.int64),
    )


def _state_buffers(batch: int, layout: Layout) -> Any:
    users, classes = (batch, len(layout.users)), (batch, len(layout.servers))
    return kernels.StateBuffers(
        waiting=np.empty(users, np.int64),
        oldest=np.empty(users),
        newest=np.empty(users),
        rate=np.empty(users),
        quality=np.empty(users),
        idle=np.empty(classes, np.int64),
        busy=np.empty(classes, np.int64),
        starting=np.empty(classes, np.int64),
        next_free=np.empty(batch),
        context=np.empty(batch, np.int64),
        loaded=np.empty(batch, np.int64),
    )


QUALITY, UNFAIR = TERMS.index("quality"), TERMS.index("fairness")


class Clients(JointSimulator):
    """The world for learners with one agent per user: a server starts the batch of the best of the agents' offers.

    Agent i's return is w_quality · q_i + w_fairness · J less the common cost of servers and switching, where q_i is the
    mean quality of its user's requests and J is Jain's index over users. Quality counts as a batch starts, J as in
    ``InferenceWorld.step``. ``world``: a world for learners.
    """

    def __init__(self, world: InferenceWorld) -> None:
        self.world, self.batch = world, world.batch
        self.clients = clients(world.layout)

    @property
    @override
    def roles(self) -> Mapping[str, Role]:
        return {name: _role(client) for name, client in self.clients.items()}

    @override
    def reset(self) -> Mapping[str, MaskedObservation]:
        self.world.reset()
        return {name: MaskedObservation(*client.observe(self.world.state)) for name, client in self.clients.items()}

    def step(self, actions: Mapping[str, NDArray[np.integer]]) -> Mapping[str, Step]:
        """Award servers to the best offers, and step the world; return a ``Step`` for each agent, by name.

        Args:
            actions: offer of each agent by name, [B] each.

        Raises:
            ValueError: an action is illegal.
        """
        world = self.world
        chosen = np.stack([actions[name] for name in self.clients], axis=1)
        common = world.step(award(world.projector, world.state, chosen))
        shared = world.terms[:, UNFAIR:] @ world.weights[UNFAIR:]
        own = world.weights[QUALITY] * (world.before.missed - world.after.missed)  # [B, U]
        pay = (world.requests * (own - shared[:, None])).astype(np.float32)
        return {name: self._step(client, common, pay[:, client.user]) for name, client in self.clients.items()}

    def _step(self, client: Client, common: Step, pay: NDArray[np.float32]) -> Step:
        observation, mask = client.observe(self.world.state)
        return common._replace(observation=observation, mask=mask, reward=pay, final_observation=observation)

    @override
    def get_state(self) -> dict[str, Any]:
        return self.world.get_state()

    @override
    def set_state(self, state: dict[str, Any]) -> None:
        self.world.set_state(state)


def _role(client: Client) -> Role:
    box = spaces.Box(-np.inf, np.inf, (len(client.entries),), np.float32)
    return Role(box, spaces.Discrete(client.actions))
