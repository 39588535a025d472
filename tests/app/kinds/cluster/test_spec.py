from typing import Any

import pytest
from pydantic import ValidationError

from app.kinds.cluster.spec import ClusterPatch, ClusterSpec

GIVEN: dict[str, Any] = {
    "name": "training",
    "kind": "cluster",
    "nodes": [{"name": "a100", "count": 16, "gpus": 4, "price_per_hour": 2.5}],
    "queues": [{"name": "urgent", "weight": 4}, {"name": "research", "ageing_seconds": 3600}],
}


def test_a_spec_is_read_back_as_it_was() -> None:
    spec = ClusterSpec.model_validate(GIVEN)
    assert ClusterSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert (spec.restart_seconds, spec.queues[0].ageing_seconds) == (30.0, None)


@pytest.mark.parametrize(
    ("changed", "field", "text"),
    [
        ({"colour": 1}, "colour", "Extra inputs"),
        ({"nodes": []}, "nodes", "at least 1 item"),
        ({"nodes": [GIVEN["nodes"][0]] * 2}, "nodes", "a100 given twice"),
        ({"nodes": [{"name": "a", "count": 0, "gpus": 4}]}, "count", "greater than or equal to 1"),
        (
            {"nodes": [{"name": "a", "count": 4_000, "gpus": 1}, {"name": "b", "count": 97, "gpus": 1}]},
            "nodes",
            "4096: 4097",
        ),
        ({"queues": [{"name": "q", "ageing_seconds": 60}]}, "queues", "of 'q' must be null: no queue is more urgent"),
        ({"minimum": 65}, "minimum", "must be 1 to 64, the GPUs of all nodes"),
        ({"minimum": 4, "maximum": 2}, "maximum", "must be at least 4, which is minimum"),
        ({"interval_seconds": 1e-9}, "interval_seconds", "greater than or equal to 0.1"),
        ({"queues": [{"name": "q"}, {"name": "r", "ageing_seconds": 1e-300}]}, "ageing_seconds", "or equal to 0.1"),
        ({"convergence": {"window_seconds": 1e100}}, "window_seconds", "less than or equal to 1000000000"),
        ({"maximum": 10**20}, "maximum", "less than or equal to 262144"),
        ({"restart_seconds": -1}, "restart_seconds", "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changed: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ClusterSpec.model_validate({**GIVEN, **changed})
    error = caught.value.errors()[0]
    assert field in ([str(part) for part in error["loc"]] or [""])
    assert text in error["msg"]


def test_a_change_of_a_queue_that_is_no_object_is_told_what_one_looks_like() -> None:
    with pytest.raises(ValidationError) as caught:
        ClusterPatch.model_validate({"queues": {"urgent": 9}})
    error = caught.value.errors()[0]
    assert error["loc"] == ("queues", "urgent")
    assert 'must be an object of weight and ageing_seconds, such as {"weight": 9}' in error["msg"]
