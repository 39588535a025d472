import heapq
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.inference.dynamics import CONTROL
from app.kinds.inference.layout import WAIT, Layout
from tests.workers.kinds.inference.systems import first_legal, layout, played, random_legal, service, world
from workers.inputs import Conditions
from workers.kinds.inference.simulator import kernels
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld

DELAY = 2  # column of the outcomes


def waits(delays: np.ndarray, service_seconds: float) -> tuple[float, float]:
    """Mean wait over episodes, and its standard error."""
    return float(delays.mean()) - service_seconds, float(delays.std(ddof=1)) / len(delays) ** 0.5


@pytest.mark.slow
def test_one_server_of_constant_speed_makes_requests_wait_as_the_closed_form_says() -> None:
    result = layout(episode_seconds=800, control_seconds=800)
    outcome = played(world(result, service(result, 0.1, [8.0]), 512), first_legal)
    wait, error = waits(outcome[:, DELAY], 0.1)
    assert abs(wait - 0.2) < 3 * error + 0.001  # for the empty beginning
    assert error < 0.005


@pytest.mark.slow
def test_servers_of_exponential_seconds_make_requests_wait_as_erlang_says() -> None:
    result = layout(servers=[{"name": "cpu", "minimum": 3, "maximum": 3}], episode_seconds=4_000, control_seconds=4_000)
    simulated = world(result, service(result, 1.0, [2.4]), 384, options={"service": "exponential"})
    wait, error = waits(played(simulated, first_legal)[:, DELAY], 1.0)
    assert abs(wait - 1.0787) < 3 * error + 0.01  # for the empty beginning
    assert error < 0.02


def test_counts_of_modulated_requests_are_dispersed_as_the_model_says() -> None:
    result = layout(episode_seconds=10, control_seconds=10)
    simulated = world(result, service(result, 1e-3, [20.0], variation=0.5), 4_000)
    simulated.reset()
    counts = simulated.worlds.counts[:, kernels.REQUESTS]
    mean, variance = 200.0, 200.0 + 0.5 * 200.0**2
    assert abs(counts.mean() - mean) < 4 * (variance / len(counts)) ** 0.5
    assert abs(counts.var() / variance - 1) < 0.15


SMALL: dict[str, Any] = {
    "users": 2,
    "variants": 2,
    "servers": [
        {
            "name": "cpu",
            "minimum": 1,
            "maximum": 3,
            "price_per_hour": 1.0,
            "startup_seconds": 0.7,
            "switch_seconds": 0.1,
        },
        {"name": "gpu", "minimum": 0, "maximum": 2, "price_per_hour": 4.0},
    ],
    "batches": [1, 3],
    "queue_limit": 5,
    "quality": {"full_until": 0.2, "zero_at": 1.5},
    "episode_seconds": 12,
    "control_seconds": 2,
}
SECONDS = [[[0.3017, 0.5113], [0.6071, 1.1057]], [[0.1013, 0.1529], [0.2039, 0.3083]]]  # no sum is met twice


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 30), st.floats(0.5, 8.0), st.floats(0.0, 1.0))
def test_requests_are_answered_dropped_or_waiting_and_nothing_is_answered_before_it_came(
    seed: int, rate: float, variation: float
) -> None:
    result = layout(**SMALL)
    values, choose = (
        world(result, service(result, SECONDS, [rate, rate / 2], 0.3, variation), 8, seed),
        random_legal(seed),
    )
    values.reset()
    before = values.worlds.clock[:, kernels.NOW].copy()
    for _ in range(values.steps):
        users, servers = values.worlds.user_count, values.worlds.server_count
        serving = np.where(servers[..., kernels.STATUS] == kernels.BUSY, servers[..., kernels.HOLDS], 0).sum(axis=1)
        settled, waiting = users[..., kernels.SETTLED].sum(axis=1), users[..., kernels.LENGTH].sum(axis=1)
        np.testing.assert_array_equal(users[..., kernels.CAME].sum(axis=1), settled + waiting + serving)
        assert (waiting <= 2 * 5).all()
        assert (values.state.oldest >= values.state.newest).all()
        assert (values.state.newest >= 0).all()
        assert (values.state.oldest < 1.5).all()
        step = values.step(choose(values.view.mask))
        now = values.worlds.clock[:, kernels.NOW]
        assert (now >= before).all()
        before = now.copy()
        if step.done.all():
            break
    assert step.done.all()
    count = values.worlds.counts
    np.testing.assert_array_equal(
        count[:, kernels.REQUESTS], values.worlds.user_count[..., kernels.SETTLED].sum(axis=1)
    )
    assert (values.worlds.clock[:, kernels.NOW] >= 12).all()


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    result = layout(**SMALL)
    model = service(result, SECONDS, [3.0, 2.0], 0.2, 0.5)
    one, again, other = (played(world(result, model, 6, seed), random_legal(0)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert (one[:, DELAY] != other[:, DELAY]).all()


def test_what_comes_does_not_depend_on_what_is_decided() -> None:
    result = layout(**SMALL)
    model = service(result, SECONDS, [3.0, 2.0], 0.2, 0.5)
    busy, lazy = world(result, model, 6, 3), world(result, model, 6, 3)
    played(busy, first_legal)
    played(lazy, lambda mask: np.zeros(len(mask), np.int64))
    np.testing.assert_array_equal(busy.worlds.counts[:, kernels.REQUESTS], lazy.worlds.counts[:, kernels.REQUESTS])


def test_an_illegal_action_is_refused() -> None:
    result = layout(**SMALL)
    simulated = world(result, service(result, SECONDS, [3.0, 2.0]), 3)
    simulated.reset()
    assert (simulated.state.context == CONTROL).all()
    with pytest.raises(ValueError, match="action 1 of episode 0 is not legal"):
        simulated.step(np.ones(3, np.int64))


def test_learners_go_on_with_a_new_episode() -> None:
    result = layout(**SMALL)
    world = InferenceWorld(result, [service(result, SECONDS, [3.0, 2.0])], Conditions(4, 0, "learning"))
    _, mask = world.reset()
    ended = np.zeros(4, np.int64)
    for _ in range(400):
        step = world.step(first_legal(mask))
        mask, ended = step.mask, ended + step.done
        assert step.discount is not None
        assert (step.discount <= 1).all()
        assert (world.worlds.counts[:, kernels.ENDED] == 0).all()
        np.testing.assert_array_equal(step.observation, step.final_observation)
        assert not step.terminated.any()
    assert (ended > 1).all()


def smooth_rate(rate: np.ndarray, elapsed: np.ndarray, arrived: int, window: float) -> Any:
    """Smoothed requests per second, after ``elapsed`` seconds at whose end so many requests arrived."""
    return rate * np.exp(-elapsed / window) + arrived / window


class Slow:
    """The same system, one event after the other in plain Python: seconds are constant, requests given."""

    def __init__(self, layout: Layout, seconds: np.ndarray, requests: list[tuple[float, int]]) -> None:
        self.layout, self.spec, self.seconds = layout, layout.spec, seconds
        self.events: list[tuple[float, int, int, Any]] = []
        for number, (time, user) in enumerate(requests):
            heapq.heappush(self.events, (time, 2, number, user))
        for number in range(1 + int(self.spec.episode_seconds // self.spec.control_seconds) + 40):
            heapq.heappush(self.events, (number * self.spec.control_seconds, 4, number, None))
        heapq.heappush(self.events, (self.spec.episode_seconds, 5, 0, None))
        self.requests, self.now = len(requests), 0.0
        self.queues: list[deque[float]] = [deque() for _ in layout.users]
        klass = [c for c, many in enumerate(layout.maximum) for _ in range(many)]
        within = [i for many in layout.maximum for i in range(many)]
        self.servers: list[dict[str, Any]] = [
            {
                "class": c,
                "state": "idle" if i < layout.minimum[c] else "off",
                "loaded": None,
                "waited": False,
                "job": None,
            }
            for c, i in zip(klass, within, strict=True)
        ]
        self.rate, self.rate_at = np.ones(len(layout.users)), np.zeros(len(layout.users))  # as `service` says
        self.terms, self.settled, self.quality = np.zeros(4), 0, [[] for _ in layout.users]  # type: ignore[var-annotated]
        self.turns, self.orders = 0, 0
        self.over = False

    def drop(self, user: int) -> None:
        self.queues[user].popleft()
        self.terms[0] += self.layout.quality.weight[user] / self.requests
        self.quality[user].append(0.0)

    def advance(self) -> None:
        """To the next decision: what is asked, or over."""
        while True:
            if self.turns:
                self.context = None
                return
            if any(self.queues):
                free = [s for s in self.servers if s["state"] == "idle" and not s["waited"]]
                if free:
                    self.context = free[0]
                    return
            working = any(s["state"] == "busy" for s in self.servers)
            if self.now >= self.spec.episode_seconds and not any(self.queues) and not working:
                self.over = True
                return
            self.happen()

    def happen(self) -> None:
        ages = [q[0] + self.layout.quality.zero_at[u] for u, q in enumerate(self.queues) if q]
        time = min([self.events[0][0], *ages])
        on = np.array([s["state"] != "off" for s in self.servers])
        price = np.array([self.layout.price[s["class"]] for s in self.servers])
        whole = float(self.layout.price @ self.layout.maximum) * self.spec.episode_seconds
        self.terms[2] += float(price[on].sum()) * (time - self.now) / whole
        self.now = time
        happened = [heapq.heappop(self.events) for _ in range(len(self.events)) if self.events[0][0] <= time]
        for _, what, _, about in happened:
            if what in {0, 1} and about["order"] == about["server"]["order"]:
                about["server"]["state"] = "idle"
                if what == 0:
                    self.quality[about["user"]] += about["earned"]
            if what == 2:
                self.arrive(about)
            if what == 4:
                self.turns = 4
        for user, queue in enumerate(self.queues):
            while queue and queue[0] + self.layout.quality.zero_at[user] <= time:
                self.drop(user)
        if any(what in {0, 1, 2, 4} for _, what, _, _ in happened):
            for server in self.servers:
                server["waited"] = False

    def arrive(self, user: int) -> None:
        passed = self.now - self.rate_at[user]
        self.rate[user] = smooth_rate(self.rate[user], passed, 1, self.spec.control_seconds)
        self.rate_at[user] = self.now
        self.queues[user].append(self.now)
        if len(self.queues[user]) > self.spec.queue_limit:
            self.drop(user)

    def act(self, action: int) -> None:
        if self.context is None:
            self.turns = self.turns - 1 if action != WAIT else 0
            if action != WAIT:
                self.terms[3] += 1 / self.requests
                self.turn(*divmod(action - 1 - self.layout.dispatches, 2))
            return
        if action == WAIT:
            self.context["waited"] = True
            return
        user, variant, size = (int(part) for part in self.layout.dispatch_of(action))
        server, klass = self.context, self.context["class"]
        seconds = float(self.seconds[klass, variant, size])
        if server["loaded"] not in {None, variant}:
            seconds += float(self.layout.switch[klass])
            self.terms[3] += 1 / self.requests
        end = self.now + seconds
        taken = [
            self.queues[user].popleft() for _ in range(min(int(self.layout.batches[size]), len(self.queues[user])))
        ]
        earned = [float(self.layout.quality.quality(user, variant, end - time)) for time in taken]
        self.terms[0] += self.layout.quality.weight[user] * sum(1 - q for q in earned) / self.requests
        server.update(state="busy", loaded=variant)
        self.order(server, end, 0, user=user, earned=earned)

    def order(self, server: Any, time: float, what: int, **more: Any) -> None:
        self.orders += 1
        server["order"] = self.orders
        heapq.heappush(self.events, (time, what, self.orders, {"server": server, "order": self.orders, **more}))

    def turn(self, klass: int, off: int) -> None:
        own = [s for s in self.servers if s["class"] == klass]
        if not off:
            server = next(s for s in own if s["state"] == "off")
            server.update(state="starting", loaded=None)
            if self.layout.startup[klass] > 0:
                self.order(server, self.now + self.layout.startup[klass], 1)
            else:
                server["state"] = "idle"
            return
        idle = [s for s in own if s["state"] == "idle"]
        starting = [s for s in own if s["state"] == "starting"]
        server = starting[-1] if starting else idle[-1]
        server["state"] = "off"
        self.orders += 1
        server["order"] = self.orders


@pytest.mark.parametrize("seed", range(12))
def test_it_goes_event_by_event_like_a_plain_simulator(seed: int) -> None:
    random = np.random.default_rng(seed)
    result = layout(**SMALL)
    times = [np.sort(random.uniform(0, 11.9, random.integers(5, 60))) for _ in range(2)]
    log = RecordedArrivals([own + 100.0 for own in times], 100.0, 100.0)
    fast = world(result, service(result, SECONDS), 1, seed, log)
    together = sorted((float(time + 100.0) - 100.0, user) for user, own in enumerate(times) for time in own)
    slow = Slow(result, np.array(SECONDS), together)
    fast.reset()
    slow.advance()
    total, choose = fast.terms[0].copy(), random_legal(seed)
    while not slow.over:
        state = fast.state
        assert fast.worlds.clock[0, kernels.NOW] == pytest.approx(slow.now, abs=1e-9)
        assert state.waiting[0].tolist() == [len(queue) for queue in slow.queues]
        oldest = [slow.now - queue[0] if queue else 0.0 for queue in slow.queues]
        np.testing.assert_allclose(state.oldest[0], oldest, atol=1e-9)
        faded = smooth_rate(slow.rate, slow.now - slow.rate_at, 0, 2.0)
        np.testing.assert_allclose(state.rate[0], faded, atol=1e-9)
        means = [np.mean(own) if own else 1.0 for own in slow.quality]
        np.testing.assert_allclose(state.quality[0], means, atol=1e-9)
        assert state.context[0] == (CONTROL if slow.context is None else slow.context["class"])
        for name in ("idle", "busy", "starting"):
            of_class = [sum(s["state"] == name for s in slow.servers if s["class"] == c) for c in range(2)]
            assert getattr(state, name)[0].tolist() == of_class
        action = choose(fast.view.mask)
        step = fast.step(action)
        slow.act(int(action[0]))
        slow.advance()
        total += fast.terms[0]
    assert step.done.all()
    users = [np.mean(own) if own else 1.0 for own in slow.quality]
    slow.terms[1] = 1 - sum(users) ** 2 / (2 * sum(q**2 for q in users))
    np.testing.assert_allclose(total, slow.terms, atol=1e-9)
