from typing import Any

import pytest
from pydantic import ValidationError

from app.kinds.iterative.kind import describe
from app.kinds.iterative.spec import Spec
from tests.planted import planted_spec

GPUS = {"name": "gpus", "minimum": 1, "maximum": 16}


@pytest.mark.parametrize(
    ("changes", "location", "message"),
    [
        ({"kind": "quantum"}, ("kind",), "iterative"),
        ({"name": "Ünicode"}, ("name",), "pattern"),
        ({"resources": [GPUS | {"minimum": 20}]}, ("resources", 0), "minimum 20 must be at most maximum, 16"),
        ({"resources": [GPUS | {"step": 4}]}, ("resources", 0), "step 4 must divide the range 1 to 16"),
        ({"resources": [GPUS | {"initial": 2.5}]}, ("resources", 0), "initial 2.5 must be one of 1, 2 … 16"),
        (
            {"resources": [{"name": "gpus", "minimum": 0, "maximum": 4e-10, "step": 1e-10, "initial": 5e-10}]},
            ("resources", 0),
            "must be one of 0, 0.0000000001 … 0.0000000004",
        ),
        ({"resources": [GPUS | {"maximum": float("nan")}]}, ("resources", 0, "maximum"), "finite"),
        ({"resources": [GPUS | {"price_per_hour": float("inf")}]}, ("resources", 0, "price_per_hour"), "finite"),
        ({"resources": [GPUS, GPUS]}, ("resources",), "gpus given twice"),
        ({"resources": []}, ("resources",), "at least 1"),
        ({"metrics": [{"name": "loss", "target": -1}]}, ("metrics", 0, "target"), "greater than 0"),
        ({"metrics": [{"name": "loss", "target": 5e-324}]}, ("metrics", 0, "target"), "at least 1e-100"),
        ({"metrics": [{"name": "loss", "goal": "small"}]}, ("metrics", 0, "goal"), "at_most"),
        ({"features": [{"name": "batch", "minimum": 2, "maximum": 2}]}, ("features", 0), "less than maximum"),
        ({"iterations": 0}, ("iterations",), "greater than or equal to 1"),
        ({"surprise": 1}, ("surprise",), "Extra inputs"),
        (
            {"disturbances": {"lost_capacity": {"probability": 1.5}}},
            ("disturbances", "lost_capacity", "probability"),
            "less than or equal to 1",
        ),
        (
            {"disturbances": {"lost_capacity": {"probability": 0.5, "left": [0.9, 0.4]}}},
            ("disturbances", "lost_capacity", "left"),
            "the first must be at most the second: 0.9, 0.4",
        ),
        (
            {"disturbances": {"pace_shift": {"probability": 0.5, "factor": [0, 2]}}},
            ("disturbances", "pace_shift", "factor", 0),
            "greater than 0",
        ),
        ({"resources": [GPUS | {"maximum": 40001}]}, (), "40001 points; at most 20000"),
    ],
)
def test_bad_specs_name_the_field(changes: dict[str, Any], location: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        planted_spec(**changes)
    errors = caught.value.errors()
    assert errors[0]["loc"] == location
    assert message in errors[0]["msg"]


def test_iteration_seconds_is_always_there() -> None:
    spec = Spec.model_validate({"name": "w", "resources": [GPUS], "iterations": 3})
    assert [m.name for m in spec.metrics] == ["iteration_seconds"]
    assert spec.metrics[0].target is None


def test_a_spec_survives_json() -> None:
    spec = planted_spec()
    assert Spec.model_validate_json(spec.model_dump_json()) == spec


def test_only_what_more_resources_would_meet_is_met_by_more() -> None:
    energy, rate = ({"name": "energy", "target": 5}, {"name": "rate", "goal": "at_least", "target": 5})
    remedies = [
        describe(planted_spec(resources=[GPUS], metrics=metrics)).remedy for metrics in ([energy], [energy, rate])
    ]
    assert remedies == [
        "relax the target of energy",
        "relax the target of energy or relax the target of rate or raise the maximum of GPUs",
    ]
