"""Schedulers as files, and as what answers."""

from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.policies.artifact import SHIPPED, Scheduler, load, save
from app.kinds.workflow.policies.base import View
from app.kinds.workflow.policies.combined import InspectorPolicy, PortfolioPolicy
from app.kinds.workflow.policies.members import ScorerPolicy, StrategyPolicy, shapes
from app.kinds.workflow.policies.scheduling import schedule
from app.kinds.workflow.scheduling.dispatch import EASY, RLS, UNLIMITED, Head, Pool, Tasks
from app.kinds.workflow.scheduling.observation import (
    FEATURES,
    STATE_WIDTH,
    VISIBLE,
    WIDTH,
    Waiting,
    features,
    survey,
    visible,
)
from app.policies.base import Arrays, IncompatibleArtifact

CONFIG: dict[str, Any] = {
    "algorithm": "scorer",
    "features": list(FEATURES),
    "layers": [4],
    "joint": [3],
    "context": "none",
    "activation": "relu",
    "advice": [0, 1],
}
SJF, F4 = StrategyPolicy({"rule": "sjf"}), StrategyPolicy({"rule": "f4"})


def scorer(seed: int = 0, bias: float = 0.0, **changed: Any) -> ScorerPolicy:
    rng = np.random.default_rng(seed)
    arrays: Arrays = {name: rng.normal(size=shape) for name, shape in shapes(CONFIG).items()}
    arrays["advantage.bias"] = np.array([bias])
    return ScorerPolicy.build({**CONFIG, **changed}, arrays)


def waiting(count: int = 6, seed: int = 0) -> tuple[Tasks, Pool]:
    """Tasks of several sizes and lengths, and a machine of 8 processors on which one task of 5 runs."""
    rng = np.random.default_rng(seed)
    tasks = Tasks(
        np.sort(rng.uniform(0, 900, count)).round(),
        rng.uniform(1, 5000, count).round(),
        rng.integers(1, 9, count),
        np.full(count, -1),
        np.ones(count, np.bool_),
    )
    room = np.array([UNLIMITED])
    ends, held = np.concatenate(([1500.0], np.zeros(count))), np.concatenate(([5], np.zeros(count, np.int64)))
    return tasks, Pool(np.array([3, 1]), ends, held, np.full(count + 1, -1), room.copy(), room.copy())


def view(mechanism: int = EASY, count: int = 6, seed: int = 0) -> View:
    tasks, pool = waiting(count, seed)
    seen = survey(
        mechanism,
        1000.0,
        Waiting(1000.0 - tasks.submit, tasks.expected, tasks.processors, np.full(count, np.nan)),
        8,
        3,
        pool.ends[:1],
        pool.held[:1],
    )
    return View(1000.0, tasks.submit, tasks.expected, tasks.processors, seen)


def portfolio(margin: float) -> PortfolioPolicy:
    return PortfolioPolicy((SJF, scorer()), np.zeros((2, STATE_WIDTH)), np.array([0.0, margin]))


@pytest.mark.parametrize("policy", [SJF, scorer(), portfolio(-1.0), InspectorPolicy(F4, scorer(advice=None))])
def test_what_is_read_back_picks_the_same(policy: Scheduler) -> None:
    again = load(save(policy))
    for seed in range(20):
        asked = view(seed=seed)
        before, after = policy.pick(asked), again.pick(asked)
        assert (before.candidate, before.member) == (after.candidate, after.member)
        np.testing.assert_array_equal(before.scores, after.scores)


def test_what_ships_is_a_scorer_of_the_features_there_are() -> None:
    shipped = load(SHIPPED.read_bytes())
    assert isinstance(shipped, ScorerPolicy)
    found = shipped.pick(view())
    assert found.candidate == int(found.scores.argmax())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"nothing", "not a policy artifact"),
        (save(StrategyPolicy({"rule": "best"})), "no rule is called 'best'"),
        (save(ScorerPolicy({**CONFIG, "features": ["share"]}, scorer().arrays)), "does not read the features"),
        (save(ScorerPolicy(CONFIG, {})), "needs each.0.weight"),
        (save(ScorerPolicy({**CONFIG, "layers": [4, 4]}, scorer().arrays)), "one layer, one joint layer"),
        (save(PortfolioPolicy((SJF, F4), np.zeros((3, STATE_WIDTH)), np.zeros(3))), "the gate does not read 2 members"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(data: bytes, message: str) -> None:
    with pytest.raises(IncompatibleArtifact, match=message):
        load(data)


def test_a_scorer_does_not_mind_the_order_of_candidates() -> None:
    asked, policy = view(count=9), scorer()
    order = np.random.default_rng(0).permutation(9)
    many = ("urgency", "request", "need", "length", "size", "usual", "waited", "delay")
    turned = asked.seen._replace(**{name: getattr(asked.seen, name)[order] for name in many})
    np.testing.assert_allclose(policy.scores(turned), policy.scores(asked.seen)[order], rtol=1e-12)


def test_features_are_of_order_one_and_say_what_fits() -> None:
    asked = view(count=40)
    table = features(asked.seen)
    assert table.shape == (40, WIDTH)
    assert np.abs(table[:, 1:]).max() <= 2.0
    np.testing.assert_array_equal(table[:, FEATURES.index("fits")] > 0.5, asked.processors <= 3)
    delayed = table[:, FEATURES.index("delay_hour")] > 0
    np.testing.assert_array_equal(delayed, asked.processors > 3)


def test_of_a_long_queue_the_oldest_and_the_most_urgent_are_seen() -> None:
    expected, processors = 60.0 * np.arange(5_000, 0, -1, dtype=np.float64), np.ones(5_000, np.int64)
    found = visible(expected, processors)
    assert len(found) == VISIBLE
    assert set(found) == {*range(32), *range(5_000 - 96, 5_000)}


def test_a_gate_asks_whom_it_expects_to_lose_least() -> None:
    first, second = portfolio(0.5).pick(view()), portfolio(-0.5).pick(view())
    assert (first.member, second.member) == ("sjf", "scorer")
    assert first.losses.tolist() == [0.0, 0.5]


def test_an_inspector_puts_off_what_it_rates_below_nothing() -> None:
    refuses, accepts = (InspectorPolicy(SJF, scorer(bias=bias, advice=None)) for bias in (-1e6, 1e6))
    assert refuses.pick(view()).candidate == -1
    assert accepts.pick(view()).candidate == SJF.pick(view()).candidate


@pytest.mark.parametrize("mechanism", [RLS, EASY])
def test_tasks_start_pick_by_pick_and_never_beyond_the_machine(mechanism: int) -> None:
    for seed in range(20):
        tasks, pool = waiting(12, seed)
        queue, recent = np.arange(12), np.full((1, 2), np.nan)
        found = schedule(scorer(seed), mechanism, 1000.0, Head(-1, np.inf, 0), queue, queue, tasks, pool, 8, recent)
        assert tasks.processors[found.tasks].sum() + 5 + pool.level[0] == 8
        assert pool.level[0] >= 0
        assert not tasks.waiting[found.tasks].any()
        assert found.head.task < 0 or tasks.waiting[found.head.task]
        running = int(pool.level[1])
        assert (np.diff(pool.ends[:running]) >= 0).all()
