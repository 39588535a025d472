from dataclasses import fields, replace

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, initial_table
from app.kinds.iterative.projector import Projector
from tests.planted import planted_spec, planted_table

FEATURED = planted_spec(
    features=[{"name": "batch", "minimum": 1, "maximum": 9}, {"name": "depth", "minimum": 0, "maximum": 1}]
)


def test_a_table_survives_its_file() -> None:
    table = planted_table(FEATURED)
    again = ModelTable.from_bytes(table.to_bytes())
    for field in fields(ModelTable):
        before, after = getattr(table, field.name), getattr(again, field.name)
        if field.name == "feature_nodes":
            assert all((a == b).all() for a, b in zip(before, after, strict=True))
        else:
            assert np.array_equal(before, after)


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" * 64])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"safetensors|JSON|Expecting|codec"):
        ModelTable.from_bytes(data)


def test_between_feature_nodes_the_logarithm_is_interpolated() -> None:
    nodes = (np.array([1.0, 3.0, 9.0]), np.array([0.0, 1.0]))
    cells = np.array([[2 * np.log(batch) + depth for batch in nodes[0] for depth in nodes[1]]])
    table = replace(
        initial_table(Layout(FEATURED)),
        feature_nodes=nodes,
        log_mean=np.broadcast_to(cells[:, None, :, None], (1, 33, 6, 1)).astype(np.float32),
    )
    batch, depth = np.array([1.0, 2.9, 3.1, 9.0, 5.0, 100.0]), np.array([0.0, 0.9, 0.2, 1.0, 0.5, 0.5])
    projector = Projector(Layout(FEATURED), table)
    every = np.zeros(len(batch), int)
    logs = projector.log_mean(every, projector.point(np.stack([batch, depth], axis=1)), every)[:, 0]
    np.testing.assert_allclose(logs, 2 * np.log(np.minimum(batch, 9)) + depth, rtol=1e-6)
