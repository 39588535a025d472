"""Which values of an observation share a cell of a table."""

import numpy as np

from workers.learning.algorithms.q_table import MOST_CELLS, Discretiser

UNEVEN = np.array([0, 1, 3, 59], np.float32)


def test_few_distinct_values_have_a_bin_each() -> None:
    values = np.repeat(UNEVEN[:, None], 2, axis=1)
    fit = Discretiser.fit(values, (0, 1), at_most=4, bins=9)
    assert fit.config["bins"] == [60, 60]
    assert len(set(fit.cell(values))) == len(UNEVEN)


def test_a_table_has_not_more_cells_than_are_worth_while() -> None:
    observation = UNEVEN[np.random.default_rng(0).integers(0, len(UNEVEN), (5_000, 5))]
    fit = Discretiser.fit(observation, (0, 1, 2, 3, 4), at_most=4, bins=9)
    assert fit.config["bins"] == [9, 9, 9, 9, 60]
    assert fit.cells <= MOST_CELLS
    assert 0 <= fit.cell(observation).min() < fit.cell(observation).max() < fit.cells
