"""Which values of an observation share a cell of a table."""

import numpy as np

from workers.learning.algorithms.q_table import MOST_CELLS, Discretiser

UNEVEN = np.array([0, 1, 3, 59], np.float32)


def test_few_distinct_values_have_a_bin_each() -> None:
    seen = np.repeat(UNEVEN[:, None], 2, axis=1)
    found = Discretiser.fit(seen, (0, 1), at_most=4, bins=9)
    assert found.config["bins"] == [60, 60]
    assert len(set(found.cell(seen))) == len(UNEVEN)


def test_a_table_has_not_more_cells_than_are_worth_while() -> None:
    seen = UNEVEN[np.random.default_rng(0).integers(0, len(UNEVEN), (5_000, 5))]
    found = Discretiser.fit(seen, (0, 1, 2, 3, 4), at_most=4, bins=9)
    assert found.config["bins"] == [9, 9, 9, 9, 60]
    assert found.cells <= MOST_CELLS
    assert 0 <= found.cell(seen).min() < found.cell(seen).max() < found.cells
