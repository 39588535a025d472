"""Evaluations of kind ``inference``: the problem, held-out logs and users, and recordings of requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from app.kinds.contract.policy import Policy, Situation
from app.kinds.inference.heuristics import statics
from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.samples import VARIANT, Content
from app.kinds.inference.samples import Requests as LoggedRequests
from workers.evaluation.arena import Player, play
from workers.evaluation.problem import Axis, HeatMapAxes, Tunable
from workers.evaluation.protocol import HeldOutChoice, KeptBack, choose, draw_order
from workers.evaluation.statistics import Level
from workers.inputs import HoldOut, Samples
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.arrivals import arrival_times
from workers.kinds.inference.simulator.world import InferenceWorld
from workers.kinds.simulated.problem import SimulatedProblem

# Recording of every request's fate in an evaluation's episodes.
#
# Requests do not depend on decisions: they are drawn once, and identified by episode, user and number.


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
GIVEN_UP = -1


class Requests(NamedTuple):
    """R requests of U users in B episodes, ordered by episode, user and time.

    Attributes:
        episode, user: indices of the episode and the user, [R].
        time: seconds since the episode's start at which the request comes, [R].
        first: index of the first request of each episode and user, [B, U].
    """

    episode: Integers
    user: Integers
    time: Floats
    first: Integers


class Decisions(NamedTuple):
    """N decisions on an idle server: it starts a batch or waits.

    Attributes:
        waiting: number of waiting requests of all users, [N].
        rate: smoothed requests per second of all users, [N].
        variant: index of the started variant; ``GIVEN_UP``: the server waits, [N].
        size: number of requests started at once; 0: the server waits, [N].
    """

    waiting: Integers
    rate: Floats
    variant: Integers
    size: Integers


class ServedRequests(NamedTuple):
    """Answers to R requests under one policy.

    Attributes:
        requests: the requests.
        delay: seconds from arrival to answer; NaN: dropped, [R].
        variant: index of the answering variant; ``GIVEN_UP``: dropped, [R].
        size: requests in the same batch; 0: dropped, [R].
        quality: response quality in 0…1; 0: dropped, [R].
        decisions: the policy's decisions.
    """

    requests: Requests
    delay: Floats
    variant: Integers
    size: Integers
    quality: Floats
    decisions: Decisions


def record_requests(world: InferenceWorld, seed: int, player: Player) -> ServedRequests:
    """Play all episodes of a fresh world at level L1 (only seeds differ), and record the answer to every request."""
    recorder = Recorder(world)
    play(world, Level.SEEDS, seed, player, recorder.watch)
    return recorder.served_requests()


def requests_of(world: InferenceWorld) -> Requests:
    """List all requests of a world's present episodes, without changing the world."""
    users, load = len(world.layout.users), world.load
    worlds = world.worlds
    streams, rates = worlds.streams.copy(), worlds.rates.copy()
    factors, places = worlds.factors.copy(), worlds.places.copy()
    times = [
        arrival_times(load, streams, rates, factors, places, b, u, world.constants.seed[b])
        for b in range(world.batch)
        for u in range(users)
    ]
    counts = np.array([len(own) for own in times])
    episode, user = np.divmod(np.repeat(np.arange(len(times)), counts), users)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]).reshape(world.batch, users)
    return Requests(episode, user, np.concatenate(times), first)


class Recorder:
    """Records the answers to all requests in one world's episodes; ``evaluation.arena.play`` calls ``watch``."""

    def __init__(self, world: InferenceWorld) -> None:
        self.world, self.layout = world, world.layout
        self._requests: Requests | None = None
        self._started: tuple[Integers, Integers, Integers] | None = None
        self._decisions: list[Decisions] = []

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Record the batches that ``action`` [B] (numbers) starts, in the episodes in the mask ``going`` [B]."""
        if self._requests is None:
            self._begin()
        self._settle()
        server = self.world.worlds.counts[:, kernels.ASKED]
        rows = np.flatnonzero(going & (server >= 0))
        user, variant, batch = (part[rows] for part in self.layout.dispatch_of(action))
        counts = self.world.worlds.user_count[rows, np.maximum(user, 0)]
        size = np.where(user >= 0, np.minimum(self.layout.batches[batch], counts[:, kernels.LENGTH]), 0)
        state = situation.state
        self._decisions.append(Decisions(state.waiting[rows].sum(axis=1), state.rate[rows].sum(axis=1), variant, size))
        starts = size > 0
        number = (counts[:, kernels.CAME] - counts[:, kernels.LENGTH])[starts]
        self._note(rows[starts], user[starts], number, variant[starts], size[starts], server[rows][starts])

    def _note(
        self, rows: Integers, user: Integers, number: Integers, variant: Integers, size: Integers, server: Integers
    ) -> None:
        assert self._requests is not None  # noqa: S101  (narrows the type)
        inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        place = np.repeat(self._requests.first[rows, user] + number, size) + inside
        self.variant[place], self.size[place] = np.repeat(variant, size), np.repeat(size, size)
        self._started = place, np.repeat(rows, size), np.repeat(server, size)

    def _begin(self) -> None:
        self._requests = requests_of(self.world)
        count = len(self._requests.time)
        self.delay = np.full(count, np.nan)
        self.variant, self.size = np.full(count, GIVEN_UP), np.zeros(count, np.int64)

    def _settle(self) -> None:
        """Set the delays of the requests in the last step's batches."""
        if self._started is None or self._requests is None:
            return
        place, rows, server = self._started
        self.delay[place] = self.world.worlds.server_time[rows, server, kernels.UNTIL] - self._requests.time[place]
        self._started = None

    def served_requests(self) -> ServedRequests:
        """Return the answers to all requests, after the episodes' end."""
        self._settle()
        if self._requests is None:
            self._begin()
        requests = self._requests
        assert requests is not None  # noqa: S101  (narrows the type)
        return ServedRequests(requests, self.delay, self.variant, self.size, self._quality(self.layout), self._all())

    def _quality(self, layout: Layout) -> Floats:
        answered = self.variant != GIVEN_UP
        assert self._requests is not None  # noqa: S101  (narrows the type)
        quality = layout.quality.quality(self._requests.user, self.variant, np.where(answered, self.delay, 0.0))
        return np.where(answered, quality, 0.0)

    def _all(self) -> Decisions:
        empty = np.zeros(0, np.int64)
        none = Decisions(empty, np.zeros(0), empty, empty)
        columns: list[Any] = [np.concatenate(parts) for parts in zip(none, *self._decisions, strict=True)]
        return Decisions(*columns)


# Held-out data of an evaluation: logs of requests (such as days), or the end of a single log.
#
# Or users: an agent has learned which user's requests come when, so held-out users swap places with others.


FEWEST_BATCHES = 2  # of each variant; with fewer, the measured batches of all executions are used
MOST_EXCHANGES = 16  # domain models of L3
USERS = "users"
LONELY = "a workload of one user has none to hold out"
OF_USERS = ("rate", "variation", "forecast", "parts")  # arrays of a domain model with a row per user


def kept_back(samples: Samples, variants: int, request: HoldOut, seed: int) -> KeptBack:
    """Hold out the executions that ``request`` names, else a share of the logs, else the last share of the only log.

    Measured batches of all other executions are added unless each of ``variants`` variants has two held-out ones.
    """
    data: Mapping[str, Content] = dict(samples)
    logs = [name for name, content in data.items() if len(content.requests.time)]
    if request.executions is None and len(logs) == 1:
        chosen, requests = _end(logs[0], data[logs[0]], request)
        note = f"the last {request.share:.0%} of the log {logs[0]!r}"
    else:
        names = [*data] if request.executions is not None else logs
        chosen = choose(names, request, seed, most=None if request.executions is not None else max(len(logs) - 1, 0))
        requests = [(name, data[name]) for name in chosen.names]
        note = f"{len(requests)} of {len(names)} {'executions' if request.executions is not None else 'logs'}"
    if _enough([content for _, content in requests], variants):
        return KeptBack(chosen, requests, note)
    measured = [(name, content) for name, content in _measured_executions(data) if name not in dict(requests)]
    return KeptBack(chosen, [*requests, *measured], f"{note}, with the measured batches of all")


def _end(name: str, content: Content, request: HoldOut) -> tuple[HeldOutChoice, list[tuple[str, Content]]]:
    time = content.requests.time
    late = time >= time[-1] - request.share * (time[-1] - time[0])
    requests = LoggedRequests(*(column[late] for column in content.requests))
    return HeldOutChoice((name,), int(name in request.unseen)), [(name, content._replace(requests=requests))]


def _enough(contents: Sequence[Content], variants: int) -> bool:
    rows = [content.batches[:, VARIANT].astype(np.int64) for content in contents]
    counts = np.bincount(np.concatenate(rows), minlength=variants) if rows else np.zeros(1)
    return bool(counts.min() >= FEWEST_BATCHES)


def _measured_executions(data: Mapping[str, Content]) -> list[tuple[str, Content]]:
    """Return the executions that have measured batches, by name, without their requests."""
    without = LoggedRequests(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0))
    return [(name, content._replace(requests=without)) for name, content in data.items() if len(content.batches)]


def users_kept_back(users: Sequence[str], samples: Samples, request: HoldOut, seed: int) -> HeldOutChoice:
    """Choose a share of the users to hold out, first users that no agent's model has seen; at least one, never all.

    With a single user the result has no names.
    """
    known = {name: set(np.unique(content.requests.user).tolist()) for name, content in samples}
    seen = set().union(*(own for name, own in known.items() if name not in request.unseen))
    unseen = [name for place, name in enumerate(users) if place not in seen]
    wanted = min(max(1, round(request.share * len(users))), len(users) - 1)
    names = draw_order(users, unseen, seed)[:wanted]
    return HeldOutChoice(tuple(names), sum(name in unseen for name in names), USERS)


def exchange_users(model: ServiceModel, users: Sequence[str], held_out: Sequence[str], seed: int) -> list[ServiceModel]:
    """Make at most 16 domain models, drawn at random, in each of which a held-out user and another user swap arrivals.

    The total rate of requests stays the same.
    """
    places = [place for place, name in enumerate(users) if name in set(held_out)]
    pairs = [(one, other) for one in places for other in range(len(users)) if other not in places or other > one]
    order = np.random.default_rng(seed).permutation(len(pairs))[:MOST_EXCHANGES]
    return [_exchange_pair(model, *pairs[index]) for index in sorted(order.tolist())]


def _exchange_pair(model: ServiceModel, one: int, other: int) -> ServiceModel:
    places = np.arange(len(model.rate))
    places[[one, other]] = other, one
    by_user = {name: value for name, value in vars(model).items() if name in OF_USERS and len(value)}
    return replace(model, **{name: value[places] for name, value in by_user.items()})


BINS = 10
BUSIEST = 2.0  # last edge of the rates, relative to the domain model's highest
DESCRIPTIONS = {
    Level.TRAIN: "As L1, under seeds that no test uses.",
    Level.FIXED: "One episode, the same requests and the same service times for everybody and every time.",
    Level.SEEDS: "What a seed decides: the time of day, the requests, how long batches take, which of the models that "
    "samples can't tell apart holds.",
    Level.PARAMETERS: "The delays that users bear, their weights, prices and the spread of service times change too.",
    Level.COMPOSITION: "Requests and batches follow a domain model of logs that were held out.",
    Level.ENVIRONMENT: "Load × 1.5, burstier; servers slow down, are lost, and batches fail on top.",
}


class InferenceProblem(SimulatedProblem):
    """The evaluation's problem of an inference workload; heat maps show batch sizes."""

    @cached_property
    def heat_map_axes(self) -> HeatMapAxes:
        """Axes of the heat map: requests per second and waiting requests; the colour is the batch size."""
        limit = self.layout.spec.queue_limit * len(self.layout.users)
        rate = float(max(ServiceModel.from_bytes(self._workload.model).rate.sum(axis=0).max(), 1e-3))
        waiting = np.unique(np.round(np.geomspace(1, limit, BINS + 1))) if limit > 1 else np.array([0.0, 1.0])
        rates = np.linspace(0, BUSIEST * rate, BINS + 1).round(3)
        axes = Axis("requests per second", tuple(rates.tolist())), Axis("waiting requests", tuple(waiting.tolist()))
        return HeatMapAxes(*axes, "requests that are started at once (0: a server waits)")

    def heat_map_points(self, situation: Situation, action: NDArray[np.integer]) -> tuple[NDArray[np.floating], ...]:
        """Return (requests per second, waiting requests, requests that ``action`` starts) of each decision, [B] each;
        the last is NaN where the number of servers is decided."""
        state, chosen = situation.state, self.layout.dispatch_of(action)
        taken = np.minimum(self.layout.batches[chosen.batch], state.waiting[np.arange(len(action)), chosen.user])
        size = np.where(chosen.user >= 0, taken, 0).astype(np.float64)
        return state.rate.sum(axis=1), state.waiting.sum(axis=1), np.where(state.context >= 0, size, np.nan)

    def tunables(self) -> tuple[Tunable, ...]:
        """Return the settings of first-come-first-served on all servers: indices of variant and batch size."""
        _, variants, sizes = self.layout.shape
        return Tunable("variant", 0, variants - 1), Tunable("batch", 0, sizes - 1)

    @override
    def static(self, values: Mapping[str, int]) -> Policy:
        return [*statics(self.layout).values()][values["variant"] * self.layout.shape[2] + values["batch"]]

    @override
    def action_name(self, action: int) -> str:
        user, variant, batch = (int(part) for part in self.layout.dispatch_of(action))
        if user >= 0:
            return f"{self.layout.users[user]}: {self.layout.batches[batch]} on {self.layout.variants[variant]}"
        server, off = divmod(action - 1 - self.layout.dispatches, 2)
        return "wait" if action == 0 else f"{self.layout.servers[server]} {'off' if off else 'on'}"

    @override
    def description(self, level: Level) -> str:
        return DESCRIPTIONS[level]
