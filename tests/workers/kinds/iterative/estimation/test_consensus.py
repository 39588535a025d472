"""A belief whose middle errs more than the family is centred on it, where allocations were measured."""

from dataclasses import replace

import numpy as np

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from tests.planted import planted_spec, planted_table
from workers.kinds.iterative.belief import shift_members
from workers.kinds.iterative.grid import Executions, Flat

SPEC = planted_spec()
LAYOUT = Layout(SPEC)
SEEN = (8.0, 20.0)
TILT = np.linspace(0.4, -0.4, 33, dtype=np.float32)  # of the belief's middle against the family, by allocation


def believed() -> ModelTable:
    plain = planted_table(SPEC)
    apart = np.random.default_rng(0).normal(0, 0.02, (5, *plain.log_mean.shape)).astype(np.float32)
    members = TILT[:, None, None] + apart - apart.mean(axis=0)
    return replace(plain, members=members, seen_low=np.array([SEEN[0]]), seen_high=np.array([SEEN[1]]))


def measured(table: ModelTable) -> Flat:
    """The family's own law, without noise, at allocations within what was seen."""
    rows = []
    for units in (8.0, 12.0, 20.0):
        seconds = float(np.exp(table.log_mean[0, int(units) - 4, 0, 0]))
        rows.append((f"run-{units}", np.array([[i, units, seconds] for i in range(3)])))
    return Executions(tuple(rows)).flat(LAYOUT)


def test_the_middle_is_the_familys_where_it_was_measured_and_goes_on_beyond() -> None:
    table = believed()
    flat = measured(table)
    used = [np.ones(len(flat.groups), bool)]
    model_table = shift_members(LAYOUT, table, flat, [np.full(len(flat.groups), 0.01)], used)
    middle = np.asarray(model_table.members).mean(axis=0)[0, :, 0, 0]
    observation = slice(4, 17)
    np.testing.assert_allclose(middle[observation], 0, atol=1e-6)
    np.testing.assert_allclose(middle[:4], TILT[:4] - TILT[4], atol=1e-6)
    np.testing.assert_allclose(middle[17:], TILT[17:] - TILT[16], atol=1e-6)
    before, after = (np.asarray(one.members).std(axis=0) for one in (table, model_table))
    np.testing.assert_allclose(after, before, atol=1e-6)


def test_a_family_that_errs_more_on_what_it_has_not_seen_moves_nothing() -> None:
    table = believed()
    flat = measured(table)
    used = [np.ones(len(flat.groups), bool)]
    model_table = shift_members(LAYOUT, table, flat, [np.full(len(flat.groups), 0.5)], used)
    np.testing.assert_array_equal(model_table.members, table.members)


def test_one_model_stays_one() -> None:
    table = replace(believed(), members=None)
    assert shift_members(LAYOUT, table, measured(table), [], []) is table
