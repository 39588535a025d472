from dataclasses import fields, replace

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable, uninformed
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


def test_the_nearest_feature_node_is_used() -> None:
    table = replace(
        uninformed(Layout(FEATURED)),
        feature_nodes=(np.array([1.0, 5.0, 9.0]), np.array([0.0, 1.0])),
        log_mean=np.zeros((1, 33, 6, 1), np.float32),
    )
    cells = table.cell(np.array([[1.0, 0.0], [2.9, 0.9], [3.1, 0.2], [9.0, 1.0], [100.0, 0.0]]))
    assert cells.tolist() == [0, 1, 2, 5, 4]
