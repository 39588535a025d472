"""Feature nodes of an exported table, and families as it reads them."""

from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from tests.planted import planted_spec
from workers.estimators.base import Floats
from workers.kinds.iterative import grid


class Curved:
    """Log of the median: the square of the log of the feature, less the log of the allocation."""

    def median(self, X: Floats) -> Floats:
        return np.asarray(np.exp(np.log(X[:, 1]) ** 2 - np.log(X[:, 0])), np.float64)


LAYOUT = Layout(planted_spec(features=[{"name": "batch", "minimum": 1, "maximum": 512}]))


def test_a_family_is_judged_as_the_table_reads_it_between_the_nodes_of_what_it_learned_from() -> None:
    learned = np.array([[8.0, batch] for batch in (1.0, 4.0, 16.0)])
    X = np.array([[8.0, 4.0], [16.0, 2.0], [16.0, 64.0]])
    family: Any = Curved()
    read = grid.on_nodes(LAYOUT)(family, learned, X)
    between = (0 + np.log(4) ** 2) / 2  # 2 is half way from 1 to 4, as a logarithm
    np.testing.assert_allclose(read, [np.log(4) ** 2, between, np.log(16) ** 2] - np.log(X[:, 0]))


def test_without_features_a_family_is_read_directly() -> None:
    family: Any = Curved()
    X = np.array([[8.0, 3.0]])
    read = grid.on_nodes(Layout(planted_spec()))(family, X, X)
    np.testing.assert_allclose(read, np.log(3) ** 2 - np.log(8))


@pytest.mark.parametrize(
    ("distinct", "selection"), [((2, 2, 3, 50), (2, 2, 3, 9)), ((50,) * 4, (4, 4, 4, 4)), ((5,), (5,))]
)
def test_features_with_few_values_leave_their_nodes_to_others(
    distinct: tuple[int, ...], selection: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    features = np.stack([random.permutation(np.arange(400) % count) for count in distinct], axis=1).astype(float)
    nodes = grid.feature_nodes(features, 33)
    assert tuple(map(len, nodes)) == selection
    assert all(known[0] == 0 and known[-1] == count - 1 for known, count in zip(nodes, distinct, strict=True))
