"""Workloads of kind ``inference`` for tests."""

from typing import Any

from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec

QUALITY = {"full_until": 0.1, "zero_at": 1.0}


def spec(**changed: Any) -> InferenceSpec:
    """Two variants, two server classes, two users."""
    values: dict[str, Any] = {
        "name": "faces",
        "kind": "inference",
        "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
        "servers": [{"name": "cpu", "maximum": 2, "cores": 4}, {"name": "big-cpu", "maximum": 1, "cores": 8}],
        "users": [{"name": "web", "quality": QUALITY}, {"name": "mobile", "quality": QUALITY}],
    }
    return InferenceSpec.model_validate(values | changed)


def layout(**changed: Any) -> Layout:
    """Of ``spec``."""
    return Layout(spec(**changed))


def single() -> Layout:
    """One variant, one server class, one user."""
    return layout(
        variants=[{"name": "small", "accuracy": 0.7}],
        servers=[{"name": "cpu", "maximum": 2, "cores": 4}],
        users=[{"name": "web", "quality": QUALITY}],
    )
