"""Agents of users: what each sees, what its offers are worth, and whom servers work for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.inference.awarding import Client, Together, award, clients
from app.kinds.inference.dynamics import CONTROL, NOTHING_LOADED, Projector, State, mask, view_of
from app.kinds.inference.heuristics import OFFERING
from app.kinds.inference.kind import KIND
from app.kinds.inference.layout import WAIT
from app.policies.base import IncompatibleArtifact
from tests.app.kinds.inference.runs import Live, arrivals, compiled, model
from tests.app.kinds.inference.test_engine import Scripted, agent
from tests.app.kinds.inference.workloads import QUALITY, layout, spec

SERVERS = [{"name": "cpu", "minimum": 1, "maximum": 3, "startup_seconds": 5, "switch_seconds": 0.01}]
PATIENT = {"full_until": 10.0, "zero_at": 20.0}
THREE = [{"name": name, "weight": weight, "quality": QUALITY} for name, weight in (("a", 1), ("b", 2), ("c", 0.5))]
MADE = layout(servers=SERVERS, users=THREE, policies="per_user")


def states(seed: int, rows: int = 12) -> State:
    """Any states of three users; some ask for servers, some for their number."""
    random = np.random.default_rng(seed)
    waiting = random.integers(0, 10, (rows, 3)) * random.integers(0, 2, (rows, 3))
    age = np.where(waiting > 0, random.uniform(0, 1, (rows, 3)), 0.0)
    on = random.integers(1, 4, (rows, 1))
    busy = random.integers(0, on)
    return State(
        waiting=waiting,
        oldest=age,
        newest=age * random.uniform(0, 1, (rows, 3)),
        rate=random.uniform(0, 50, (rows, 3)),
        quality=random.uniform(0, 1, (rows, 3)),
        idle=on - busy,
        busy=busy,
        starting=np.zeros((rows, 1), np.int64),
        next_free=random.uniform(0, 1, rows) * busy[:, 0],
        context=random.integers(CONTROL, 1, rows),
        loaded=random.integers(NOTHING_LOADED, 2, rows),
    )


class AnyLegal:
    """Draws from what is legal, whatever it sees."""

    name = "any"

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def act(self, situation: Situation) -> Choice:
        legal: NDArray[np.bool_] = situation.view.mask
        return Choice(np.where(legal, self.random.random(legal.shape), -1.0).argmax(axis=1))


@given(st.integers(0, 10_000), st.integers(0, 2))
def test_a_client_sees_nothing_of_what_others_wait_for(seed: int, user: int) -> None:
    """Of other users only the mean of all qualities; its own requests, and the servers, it does see."""
    here, client = states(seed), Client(MADE.spec, user)
    own, other = np.arange(3) == user, states(seed + 1)
    private = {
        name: np.where(own, getattr(here, name), getattr(other, name))
        for name in ("waiting", "oldest", "newest", "rate")
    }
    swapped = here.quality.copy()
    first, second = np.flatnonzero(~own)
    swapped[:, [first, second]] = swapped[:, [second, first]]
    one, changed = client.observe(here), client.observe(here._replace(**private, quality=swapped))
    np.testing.assert_allclose(changed.observation, one.observation, atol=1e-6)
    np.testing.assert_array_equal(changed.mask, one.mask)
    assert one.observation.shape[1] == len(client.entries)
    assert one.mask.shape[1] == client.actions


def test_a_client_sees_its_own_requests_the_servers_and_the_mean_quality() -> None:
    client, here = Client(MADE.spec, 1), states(3)
    column = {name: position for position, name in enumerate(client.entries)}
    before = client.observe(here).observation
    for name, entry in (("waiting", "waiting.b"), ("rate", "rate.b"), ("quality", "quality.b")):
        changed = getattr(here, name).copy()
        changed[:, 1] = changed[:, 1] + 1
        after = client.observe(here._replace(**{name: changed})).observation
        assert (after[:, column[entry]] > before[:, column[entry]]).all()
    np.testing.assert_allclose(before[:, column["mean_quality"]], here.quality.mean(axis=1), rtol=1e-6)
    after = client.observe(here._replace(next_free=here.next_free + 0.3)).observation
    assert (after[:, column["next_free"]] > before[:, column["next_free"]]).all()


@given(st.integers(0, 10_000))
def test_whatever_agents_want_what_is_done_is_legal(seed: int) -> None:
    here, projector = states(seed), Projector(MADE, model(MADE).seconds())
    chosen = np.stack(
        [
            AnyLegal(seed + client.user).act(Situation(None, None, client.observe(here))).action
            for client in clients(MADE).values()
        ],
        axis=1,
    )
    action = award(projector, here, chosen)
    legal = mask(MADE, here)
    assert legal[np.arange(len(action)), action].all()
    wanted = (chosen != WAIT).any(axis=1) & (here.context != CONTROL)
    assert ((action != WAIT) | ~wanted).all()  # a server that anybody wants is not left idle
    assert ((action <= MADE.dispatches) | (here.context == CONTROL)).all()


@given(st.integers(0, 10_000))
def test_agents_decide_of_many_states_what_they_decide_of_each(seed: int) -> None:
    """The simulator asks of hundreds at once, the service of one."""
    here, projector = states(seed), Projector(MADE, model(MADE).seconds())
    together = Together(MADE, {"a": Largest(), "b": Largest()}, OFFERING)
    many = together.act(Situation(projector, here, view_of(MADE, here))).action
    for row in range(len(many)):
        alone: Any = [part[row : row + 1] for part in here]
        one = State(*alone)
        assert together.act(Situation(projector, one, view_of(MADE, one))).action == many[row]


class Largest:
    """The last legal action: the most accurate, largest start."""

    name = "largest"

    def act(self, situation: Situation) -> Choice:
        legal: NDArray[np.bool_] = situation.view.mask
        return Choice(legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1))


def offer(variant: int = 0, size: int = 0) -> int:
    """An offer of a user of ``spec``, by positions."""
    return 1 + variant * 4 + size


@pytest.mark.parametrize(("fairness", "winner"), [(0.0, 0), (0.5, 2)])
def test_who_is_behind_is_worth_more_where_fairness_is_wanted(fairness: float, winner: int) -> None:
    """Of equal offers that of the longest wait wins, unless Jain's index gains more by another."""
    users = [{"name": name, "quality": PATIENT} for name in "abc"]
    weights = {"quality": 1, "fairness": fairness, "cost": 0, "switching": 0}
    result = layout(servers=SERVERS, users=users, weights=weights, policies="per_user")
    here = states(0, 1)._replace(
        waiting=np.full((1, 3), 2),
        oldest=np.array([[3.0, 2.0, 1.0]]),
        newest=np.full((1, 3), 0.5),
        quality=np.array([[0.8, 0.7, 0.3]]),
        context=np.zeros(1, np.int64),
    )
    action = award(Projector.of(result, model(result)), here, np.full((1, 3), offer()))
    assert result.dispatch_of(action).user.tolist() == [winner]


def test_what_takes_the_server_longer_is_charged_more() -> None:
    """Two requests in .03 s pay more than one in .02 s, and more than two in .06 s, though these are worth most."""
    users = [{"name": name, "quality": PATIENT} for name in "abc"]
    result = layout(servers=SERVERS, users=users, policies="per_user")
    here = states(0, 1)._replace(
        waiting=np.full((1, 3), 2),
        oldest=np.array([[3.0, 2.0, 1.0]]),
        newest=np.full((1, 3), 0.5),
        context=np.zeros(1, np.int64),
        loaded=np.full(1, NOTHING_LOADED),
    )
    one, two, accurate = offer(), offer(size=1), offer(variant=1, size=1)
    projector = Projector.of(result, model(result))
    for chosen, winner in (([one, two, two], 1), ([accurate, two, one], 1), ([accurate, WAIT, one], 0)):
        action = award(projector, here, np.array([chosen]))
        assert result.dispatch_of(action).user.tolist() == [winner]


class TestServed:
    """A server takes the offer of which most is left."""

    def run(self, web: Any, mobile: Any, **changed: Any) -> Live:
        wanted = spec(policies="per_user", **changed)
        known = clients(KIND.layout(wanted))
        values = {"web": web, "mobile": mobile}
        agents = {name: agent(policy, known[name]) for name, policy in values.items() if policy is not None}
        for artifact in agents.values():
            KIND.check(artifact, KIND.layout(wanted))
        return Live(compiled(wanted, agents))

    def first(self, run: Live) -> str:
        decision = run.report(0.3, arrived=[*arrivals("mobile", 0.1), *arrivals("web", 0.2)])
        assert decision.source == "agent"
        return decision.start[0].user

    @pytest.mark.parametrize(("web", "mobile", "winner"), [(1, 3, "mobile"), (3, 1, "web")])
    def test_by_the_users_weight(self, web: float, mobile: float, winner: str) -> None:
        weights = {"web": web, "mobile": mobile}
        users = [{"name": name, "weight": weight, "quality": QUALITY} for name, weight in weights.items()]
        assert self.first(self.run(Scripted(offer()), Scripted(offer()), users=users)) == winner

    def test_by_the_seconds_that_it_takes(self) -> None:
        assert self.first(self.run(Scripted(offer()), Scripted(offer(variant=1)))) == "web"
        assert self.first(self.run(Scripted(offer(variant=1)), Scripted(offer()))) == "mobile"

    def test_of_equal_offers_the_longest_wait(self) -> None:
        users = [{"name": name, "quality": PATIENT} for name in ("web", "mobile")]
        assert self.first(self.run(Scripted(offer()), Scripted(offer()), users=users)) == "mobile"

    def test_what_is_late_is_worth_less(self) -> None:
        users = [{"name": name, "quality": {"full_until": 0.1, "zero_at": 1.0}} for name in ("web", "mobile")]
        assert self.first(self.run(Scripted(offer()), Scripted(offer()), users=users)) == "web"

    def test_who_waits_leaves_the_server_to_others(self) -> None:
        assert self.first(self.run(Scripted(offer()), Scripted(WAIT))) == "web"

    def test_for_a_user_without_an_agent_the_rule_offers(self) -> None:
        users = [{"name": "web", "weight": 3, "quality": QUALITY}, {"name": "mobile", "weight": 1, "quality": QUALITY}]
        assert self.first(self.run(None, Scripted(offer()), users=users)) == "web"
        assert self.first(self.run(Scripted(WAIT), None, users=users)) == "mobile"

    def test_servers_turn_as_most_want(self) -> None:
        servers = [{"name": "cpu", "minimum": 1, "maximum": 2, "startup_seconds": 5}]
        on = 1 + 8
        both = self.run(Scripted(control=on), Scripted(control=on), servers=servers)
        assert both.report(0.0).servers == {"cpu": 2}
        assert self.run(Scripted(control=on), Scripted(), servers=servers).report(0.0).servers == {"cpu": 1}

    def test_an_agent_that_does_what_it_may_not_is_named_and_the_heuristic_answers(self) -> None:
        run = self.run(Scripted(-3), Scripted(offer()))
        decision = run.report(0.3, arrived=arrivals("web", 0.2))
        assert decision.source == "fallback"
        assert "scripted chose action -3, which is not legal here" in decision.reason.text
        assert [start.user for start in decision.start] == ["web"]


def test_an_agent_of_all_users_or_of_one_alone_is_refused() -> None:
    wanted = KIND.layout(spec(policies="per_user"))
    known = clients(wanted)
    with pytest.raises(IncompatibleArtifact):
        KIND.check(agent(Scripted(), known["web"].alone), wanted)
    alone = KIND.layout(spec())
    with pytest.raises(IncompatibleArtifact):
        KIND.check(agent(Scripted(), known["web"]), alone)
