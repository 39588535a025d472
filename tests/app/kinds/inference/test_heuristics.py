"""Baselines: each chooses what its name says, and only what is legal."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from app.kinds.inference.dynamics import CONTROL, Projector, State, view_of
from app.kinds.inference.heuristics import (
    BASELINES,
    WITHOUT_MODEL,
    AllOn,
    Composed,
    Fixed,
    LargestBatch,
    QualityRate,
    ShortestDelay,
    Utilisation,
    statics,
)
from app.kinds.inference.layout import WAIT, Layout
from app.kinds.inference.scaling import Lookahead
from app.kinds.inference.spec import InferenceSpec

SECONDS = np.array([[[0.02, 0.03, 0.05, 0.09], [0.06, 0.10, 0.17, 0.30]]])  # [C, V, K]
SPEC = InferenceSpec.model_validate(
    {
        "name": "vision",
        "kind": "inference",
        "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
        "servers": [{"name": "cpu", "maximum": 3}],
        "users": [
            {"name": "ann", "quality": {"full_until": 0.1, "zero_at": 1}},
            {"name": "bob", "quality": {"full_until": 0.1, "zero_at": 2, "shape": "exponential"}},
        ],
    }
)
LAYOUT = Layout(SPEC)
EVERY = (*BASELINES, *statics(LAYOUT).values(), Composed(QualityRate(), Fixed((2,))))


def situation(
    waiting: tuple[int, int], ages: tuple[float, float] = (0.3, 0.3), rate: float = 5.0, on: int = 1, request: int = 0
) -> Situation:
    """One decision; ages fall to a tenth of the oldest."""
    count = np.array([waiting])
    oldest = np.where(count > 0, np.array([ages]), 0.0)
    busy, some = np.zeros((1, 1), np.int64), np.ones((1, 2))
    state = State(
        count,
        oldest,
        oldest / 10,
        some * rate,
        some,
        busy + on,
        busy,
        busy,
        np.zeros(1),
        np.array([request]),
        busy[:, 0],
    )
    return Situation(Projector(LAYOUT, SECONDS), state, view_of(LAYOUT, state))


def started(policy: Composed, shown: Situation) -> tuple[int, ...]:
    """User, variant and batch size of what a policy starts; -1 each where it waits."""
    user, variant, batch = LAYOUT.dispatch_of(policy.act(shown).action[0])
    return int(user), int(variant), int(LAYOUT.batches[batch]) if batch >= 0 else -1


@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: policy.name)
@pytest.mark.parametrize("waiting", [(0, 0), (1, 0), (0, 7), (40, 100)])
@pytest.mark.parametrize("context", [CONTROL, 0])
def test_only_what_is_legal_is_chosen(policy: Composed, waiting: tuple[int, int], context: int) -> None:
    shown = situation(waiting, request=context)
    action = policy.act(shown).action
    assert shown.view.mask[0, action[0]]
    if context != CONTROL and any(waiting):
        assert action[0] != WAIT


def test_a_static_takes_the_oldest_in_batches_up_to_its_size() -> None:
    policy = statics(LAYOUT)["large_4"]
    assert started(policy, situation((3, 2), ages=(0.1, 0.4))) == (1, 1, 2)
    assert started(policy, situation((9, 0))) == (0, 1, 4)


def test_the_shortest_delay_is_a_small_batch_of_the_fastest() -> None:
    assert started(Composed(ShortestDelay(), AllOn()), situation((9, 9), ages=(0.1, 0.4))) == (1, 0, 1)


def test_the_largest_batch_keeps_full_quality_where_it_can() -> None:
    policy = Composed(LargestBatch(), AllOn())
    assert started(policy, situation((9, 0), ages=(0.005, 0.0))) == (0, 0, 8)  # 95 ms, of 100 ms
    assert started(policy, situation((9, 0), ages=(0.06, 0.0))) == (0, 0, 2)
    assert started(policy, situation((1, 0), ages=(0.03, 0.0))) == (0, 1, 1)
    assert started(policy, situation((9, 0), ages=(0.5, 0.0))) == (0, 0, 1)  # too late: soonest


def test_looking_ahead_answers_accurately_while_there_is_time_and_fast_when_there_is_none() -> None:
    policy = Composed(Lookahead(), AllOn())
    assert started(policy, situation((1, 0), ages=(0.01, 0.0), rate=1.0)) == (0, 1, 1)
    user, variant, size = started(policy, situation((60, 0), ages=(0.6, 0.0), rate=40.0))
    assert (user, variant) == (0, 0)
    assert size >= 4


def test_looking_ahead_loads_another_variant_where_that_is_worth_what_it_costs() -> None:
    shown = situation((1, 0), ages=(0.01, 0.0), rate=1.0)  # small is loaded, large would be more accurate
    for switching, variant in ((0.01, 1), (0.5, 0)):
        weights = SPEC.weights.model_copy(update={"switching": switching})
        projector = Projector(Layout(SPEC.model_copy(update={"weights": weights})), SECONDS)
        assert started(Composed(Lookahead(), AllOn()), shown._replace(projector=projector)) == (0, variant, 1)


def test_looking_ahead_looks_at_the_best_starts_where_there_are_very_many() -> None:
    values = {
        **SPEC.model_dump(),
        "variants": [{"name": f"v{i}", "accuracy": 0.6 + 0.02 * i} for i in range(8)],
        "users": [{"name": f"u{i}", "quality": {"full_until": 0.1, "zero_at": 1}} for i in range(8)],
        "batches": [1, 2, 4, 8, 16, 32, 64, 128],
    }
    layout = Layout(InferenceSpec.model_validate(values))
    seconds = 0.01 * 1.3 ** np.arange(8)[:, None] * (0.5 + 0.5 * layout.batches)
    count, some = np.array([[5, 0, 3, 0, 0, 1, 0, 0]]), np.ones((1, 8))
    nothing = np.zeros((1, 1), np.int64)
    ages, free = np.where(count > 0, 0.05, 0.0), np.zeros(1)
    state = State(count, ages, ages, some, some, nothing + 1, nothing, nothing, free, nothing[:, 0], nothing[:, 0])
    view = view_of(layout, state)
    chosen = Composed(Lookahead(), AllOn()).act(Situation(Projector(layout, seconds[None]), state, view)).action[0]
    assert view.mask[0, chosen]
    assert chosen != WAIT


def test_without_a_model_the_first_come_is_served() -> None:
    shown = situation((2, 5), ages=(0.2, 0.1))
    blind = shown._replace(projector=Projector(LAYOUT, None))
    assert started(WITHOUT_MODEL, blind) == (0, 0, 2)
    with pytest.raises(ValueError, match="without a domain model"):
        Composed(ShortestDelay(), AllOn()).act(blind)


@pytest.mark.parametrize(("rate", "wanted"), [(0.0, 1), (5.0, 1), (16.0, 2), (500.0, 3)])
def test_utilisation_asks_for_what_arrivals_need(rate: float, wanted: int) -> None:
    policy = Composed(QualityRate(), Utilisation(0.7, variant=1))
    chosen: NDArray[np.integer] = policy.act(situation((0, 0), rate=rate, on=1, request=CONTROL)).action
    assert chosen[0] == (LAYOUT.scaling(0, on=True) if wanted > 1 else WAIT)
    fewer: NDArray[np.integer] = policy.act(situation((0, 0), rate=rate, on=3, request=CONTROL)).action
    assert fewer[0] == (LAYOUT.scaling(0, on=False) if wanted < 3 else WAIT)
