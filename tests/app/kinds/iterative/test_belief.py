"""A belief in several models: what it asks of reports, and what it makes of them."""

from dataclasses import replace

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.observation import everywhere, outlook, view
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.reasons import forecast
from app.kinds.iterative.state import State, advance, begin, member_weights, pack, restart_belief, stack_rows, unpack
from tests.planted import planted_spec, planted_table

SPEC = planted_spec()
LAYOUT = Layout(SPEC)
TABLE = planted_table(SPEC)
UNITS = LAYOUT.allocations[:, 0]


def tilted(*elasticities: float) -> ModelTable:
    """The planted model, and members that agree at the middle allocation: each has its own further elasticity."""
    middle = UNITS[len(UNITS) // 2]
    offsets = np.array(elasticities)[:, None] * np.log(UNITS / middle)
    shape = (len(elasticities), *TABLE.log_mean.shape)
    return replace(TABLE, members=np.broadcast_to(offsets[:, None, :, None, None], shape).astype(np.float32))


def reported(projector: Projector, levels: list[int], log_ratio: float, member: int) -> State:
    """A run that follows one member exactly, at a pace of its own."""
    table = projector.table.member(member)
    state = begin(projector, np.array([levels[:1]]))
    for before, level in zip([levels[0], *levels], levels, strict=False):
        seconds = np.exp(table.log_mean[0, level, 0, 0] + log_ratio) + table.change_seconds[0] * (level != before)
        state = advance(projector, state, np.array([[level]]), np.array([[seconds]]), np.zeros((1, 0)))
    return state


def test_members_that_agree_are_one_model() -> None:
    one, many = Projector(LAYOUT, TABLE), Projector(LAYOUT, tilted(0, 0, 0))
    alone, believed = reported(one, [5, 9, 7], 0.2, 0), reported(many, [5, 9, 7], 0.2, 0)
    assert believed.effect == pytest.approx(alone.effect, rel=1e-6)
    assert view(many, believed).outlook == pytest.approx(view(one, alone).outlook, rel=1e-6)
    assert outlook(many, believed, everywhere(many, believed)) == pytest.approx(
        outlook(one, alone, everywhere(one, alone)), rel=1e-6
    )
    pair = [np.array([7]), np.array([9]), np.zeros(1)]
    for values, expected in zip(forecast(many, believed, *pair), forecast(one, alone, *pair), strict=True):
        assert values == pytest.approx(expected, rel=1e-6)


def test_reports_tell_which_member_is_right() -> None:
    projector = Projector(LAYOUT, tilted(-0.4, 0.4))
    state = reported(projector, [5, 5, 20, 20, 10], 0.1, 1)
    assert member_weights(state)[0, 1] > 0.95
    assert state.effects[0, 1] == pytest.approx(0.1 * 5 / 6, rel=1e-4)  # shrunk towards the prior, no more


def test_at_one_allocation_no_member_is_favoured_for_good() -> None:
    projector = Projector(LAYOUT, tilted(-0.4, 0.4))
    state = reported(projector, [len(UNITS) // 2] * 8, 0.1, 1)
    assert member_weights(state)[0] == pytest.approx([0.5, 0.5])


def test_what_only_one_member_promises_is_not_bought() -> None:
    """The members' mean is the single model; far from what they agree on, what one gains the other loses twice."""
    far = 0
    one, many = Projector(LAYOUT, TABLE), Projector(LAYOUT, tilted(-0.8, 0.8))
    alone, believed = (
        begin(
            p, np.array([[len(UNITS) // 2]]), targets=[[float(np.exp(TABLE.log_mean[0, 12, 0, 0])) * SPEC.iterations]]
        )
        for p in (one, many)
    )
    certain = outlook(one, alone, everywhere(one, alone))[:, 0]
    unsure = outlook(many, believed, everywhere(many, believed))[:, 0]
    assert unsure[len(UNITS) // 2] == pytest.approx(certain[len(UNITS) // 2], rel=1e-5)
    assert unsure[far] < certain[far] - 0.05


def test_the_interval_widens_where_the_members_disagree() -> None:
    projector = Projector(LAYOUT, tilted(-0.4, 0.4))
    state = reported(projector, [len(UNITS) // 2] * 8, 0, 0)
    here = np.array([len(UNITS) // 2])
    stay, go = (forecast(projector, state, here, np.array([to]), np.zeros(1)) for to in (here[0], 1))
    assert np.log(go.high / go.low) > 2 * np.log(stay.high / stay.low)


def test_a_noisy_iteration_says_little() -> None:
    bins = np.arange(SPEC.iterations, dtype=np.int32) % 2
    log_mean = np.repeat(TABLE.log_mean, 2, axis=3)
    table = replace(TABLE, log_mean=log_mean, iteration_bin=bins, noise_by_bin=np.array([[0.5, 0.02]]))
    projector = Projector(LAYOUT, table)
    noisy = reported(projector, [5], 0.3, 0)
    assert abs(noisy.effect[0, 0]) < 0.1
    assert reported(projector, [5, 5], 0.3, 0).effect[0, 0] == pytest.approx(0.3, rel=0.1)


def test_a_belief_survives_storage() -> None:
    table = ModelTable.from_bytes(tilted(-0.4, 0.4).to_bytes())
    projector = Projector(LAYOUT, table)
    state = reported(projector, [5, 20], 0.1, 1)
    again = unpack(LAYOUT, pack(state))
    for name, value in state._asdict().items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)


@pytest.mark.parametrize("related", [True, False])
def test_a_belief_begins_anew_under_another_model(related: bool) -> None:
    """Of as many members: that the second was likely says nothing of the second of other ones."""
    before, after = Projector(LAYOUT, tilted(-0.4, 0.4)), Projector(LAYOUT, tilted(0.2, -0.2))
    state = reported(before, [5, 20], 0.3, 1)
    again = unpack(LAYOUT, restart_belief(after, pack(state)[0], related=related)[None])
    assert member_weights(state)[0, 1] > 0.6
    assert member_weights(again)[0] == pytest.approx(np.full(2, 1 / 2))
    effect = state.effect if related else np.zeros_like(state.effect)
    assert again.effect == pytest.approx(effect)
    assert again.effects == pytest.approx(np.tile(effect, 2))
    assert again.variance == pytest.approx(state.variance if related else after.effect_variance[None])
    for name in ("iteration", "levels", "elapsed", "measured", "cost"):
        np.testing.assert_array_equal(getattr(again, name), getattr(state, name), err_msg=name)


def test_a_run_goes_on_under_a_model_with_another_number_of_members() -> None:
    one, many = Projector(LAYOUT, TABLE), Projector(LAYOUT, tilted(-0.4, 0, 0.4))
    row = pack(reported(one, [5, 20], 0.1, 0))[0]
    wider = unpack(LAYOUT, stack_rows(many, [row]))
    assert wider.effects == pytest.approx(np.repeat(wider.effect, 3, axis=1))
    assert member_weights(wider)[0] == pytest.approx(np.full(3, 1 / 3))
    np.testing.assert_array_equal(stack_rows(one, list(stack_rows(many, [row]))), [row])
