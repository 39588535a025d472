"""One semantics: what the simulator asks of a policy in an episode is what the service asks when the same happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from app.kinds.contract.engine import Snapshot
from app.kinds.contract.policy import Choice, Policy, Situation
from app.kinds.inference.awarding import Client, Together, clients
from app.kinds.inference.choices import MOST_TURNS, Chooser, decide
from app.kinds.inference.dynamics import CONTROL, Projector, State, Transitions
from app.kinds.inference.heuristics import BASELINES, Composed, LargestBatch, Utilisation
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.policies import Compiled
from app.kinds.inference.queue import Fleet, begin
from app.kinds.inference.report import Ledger, Row, states
from app.kinds.inference.scaling import ExpectedReturn, Lookahead
from tests.app.kinds.inference.adaptive import planner
from tests.workers.kinds.inference.systems import layout, service, world
from tests.workers.kinds.inference.test_simulator import SECONDS, SMALL
from workers.kinds.inference.simulator.arrivals import RecordedArrivals

Asked = list[tuple[State, Transitions | None, int]]
COMPARED = ("waiting", "oldest", "newest", "rate", "idle", "busy", "starting", "next_free", "context", "loaded")
"""Not ``quality``: a live run has no end, and forgets over the seconds of an episode."""


class Remembering(Chooser):
    """Asks a policy, and keeps what it was asked."""

    context: Asked

    def __init__(self, projector: Projector, fleet: Fleet, policy: Policy) -> None:
        super().__init__(projector, fleet, policy)
        self.adapts = True

    def choose(self, rows: Sequence[Row], recent: Transitions | None = None) -> list[int]:
        [action] = super().choose(rows, recent)
        self.context.append((states(self._fleet, rows), recent, action))
        return [action]


def served(layout: Layout, model: Any, policy: Policy, requests: list[tuple[float, int]]) -> Asked:
    """Batches take exactly what is expected; servers start in exactly their time."""
    compiled = Compiled(Snapshot("w", "w", 1, layout.spec, layout, model, 1, None, None, 1))
    ledger = compiled.ledger(begin(layout, compiled.fleet, compiled.projector.usual, carried=False))
    chooser = Remembering(compiled.projector, compiled.fleet, policy)
    chooser.context, starting, coming = [], dict[int, float](), list(requests)
    while coming or any(ledger.waiting()) or any(map(ledger.busy, ledger.servers)):
        happened = _next(ledger, starting, coming)
        if happened:
            ledger.drop()
            for place, on in decide([ledger], chooser)[0].turns:
                starting.pop(place, None)
                if on and place in ledger.servers and not ledger.servers[place].up:
                    starting[place] = ledger.now + float(layout.startup[compiled.fleet.of[place]])
        ledger.drop()
    return chooser.context


def _next(ledger: Ledger, starting: dict[int, float], coming: list[tuple[float, int]]) -> bool:
    """Go to the next moment at which something happens, a request that is given up included; whether more does."""
    ends = {place: server.batch.until for place, server in ledger.servers.items() if server.batch is not None}
    events = [*ends.values(), *starting.values(), *(at for at, _ in coming[:1]), ledger.control]
    looked = ledger.next_look()
    now = min(events if looked is None else [*events, looked])
    ledger.pass_time(now)
    for place in [place for place, at in ends.items() if at <= now]:
        ledger.finish(place, now)
    for place in [place for place, at in starting.items() if at <= now]:
        ledger.turn(place, "up")
        starting.pop(place)
    while coming and coming[0][0] <= now:
        at, user = coming.pop(0)
        ledger.arrive(user, at, None)
    return now in events


def simulated(layout: Layout, model: Any, policy: Policy, log: RecordedArrivals) -> Asked:
    values = world(layout, model, 1, 0, log)
    values.reset()
    request, projector = Asked(), Projector.of(layout, model)
    while True:
        state = State(*(np.array(part) for part in values.state))
        recent = values.recent
        action = policy.act(Situation(projector._replace(recent=recent), state, values.view)).action
        request.append((state, recent, int(action[0])))
        if values.step(action).done.all():
            return request


class Offering:
    """An agent of a user: offers the largest batch that is legal of its variant, and of the last one in a hurry.

    While many of them wait it turns servers off and on: no sense, but all that can be done.
    """

    name = "offering"

    def __init__(self, client: Client, variant: int) -> None:
        self.client, self.variant = client, variant

    def act(self, situation: Situation) -> Choice:
        """See ``Policy``."""
        observation, legal = situation.view
        column = {name.split(".")[0]: position for position, name in reversed(list(enumerate(self.client.entries)))}
        _, variants, batches = self.client.alone.shape
        first = 1 + np.where(observation[:, column["oldest"]] > 0.2, variants - 1, self.variant) * batches
        place = np.arange(legal.shape[1])
        own = (place >= first[:, None]) & (place < first[:, None] + batches)
        turns = (place > self.client.alone.dispatches) & (observation[:, column["waiting"]] > 0.2)[:, None]
        wanted = legal & (own | turns)
        return Choice(np.where(wanted, place, WAIT).max(axis=1))


def policies(layout: Layout) -> dict[str, Policy]:
    """Of users together, and of all at once."""
    known = {name: Offering(client, variant) for variant, (name, client) in enumerate(clients(layout).items())}
    return {
        "expected return": Composed(Lookahead(), ExpectedReturn()),
        "by default": BASELINES[0],
        "lookahead": Composed(Lookahead(), Utilisation(0.5)),
        "largest": Composed(LargestBatch(), Utilisation()),
        "together": Together(layout, known, Composed(Lookahead(), Utilisation(0.5))),
        "grbal": planner(layout),
        "one of them": Together(layout, dict(list(known.items())[:1]), Composed(LargestBatch(), Utilisation())),
    }


@pytest.mark.parametrize(
    "name", ["expected return", "by default", "lookahead", "largest", "grbal", "together", "one of them"]
)
@pytest.mark.parametrize("seed", range(2))
def test_the_service_asks_what_the_simulator_asks(name: str, seed: int) -> None:
    random, result = np.random.default_rng(seed), layout(**SMALL, policies="per_user")
    policy = policies(result)[name]
    times = [np.sort(random.uniform(0, 11.9, random.integers(20, 60))) for _ in range(2)]
    model, log = service(result, SECONDS), RecordedArrivals([own + 100.0 for own in times], 100.0, 100.0)
    requests = sorted((float(at + 100.0) - 100.0, user) for user, own in enumerate(times) for at in own)
    trained, answered = simulated(result, model, policy, log), served(result, model, policy, requests)
    assert len(trained) > 25
    assert trained[-1][1] is not None
    assert (trained[-1][1].batch >= 0).any()
    assert (trained[-1][1].arrived > 0).any()
    for (there, before, taken), (here, lately, chosen) in zip(trained, answered, strict=False):
        for name in COMPARED:
            np.testing.assert_allclose(getattr(here, name), getattr(there, name), atol=1e-9, err_msg=name)
        assert before is not None
        assert lately is not None
        for name in Transitions._fields:
            np.testing.assert_allclose(getattr(lately, name), getattr(before, name), atol=1e-9, err_msg=name)
        assert chosen == taken
    shorter, longer = sorted((trained, answered), key=len)
    last = longer[len(shorter) :]  # one of the two asks for control once more, when nothing is left to be done
    assert {int(state.context[0]) for state, _, _ in last} <= {CONTROL}
    assert len(last) <= MOST_TURNS + 1
    assert all((state.waiting == 0).all() for state, _, _ in last)
