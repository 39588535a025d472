"""What a workload of kind ``inference`` may say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.app.kinds.inference.workloads import spec


@pytest.mark.parametrize(
    ("changed", "field", "text"),
    [
        ({"control_seconds": 1e-9}, "control_seconds", "greater than or equal to 0.1"),
        ({"control_seconds": 1e6}, "control_seconds", "less than or equal to 86400"),
        ({"episode_seconds": 1e6}, "episode_seconds", "less than or equal to 86400"),
        (
            {"control_seconds": 0.1, "episode_seconds": 2_000},
            "",
            "episode_seconds must be at most 10,000 × control_seconds, 1000: episode_seconds 2000, control_seconds 0.1",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(changed: dict[str, Any], field: str, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**changed)
    error = caught.value.errors()[0]
    assert field in ([str(part) for part in error["loc"]] or [""])
    assert text in error["msg"]
