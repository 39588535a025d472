"""The demo's workload, ``workload.json``; its variants are added once their accuracies are measured."""

import json
from collections.abc import Mapping
from pathlib import Path

from app.demo.api import Json

SPEC: Json = json.loads(Path(__file__).with_suffix(".json").read_text())
NAME: str = SPEC["name"]
SERVERS: int = SPEC["servers"][0]["maximum"]
BATCHES: tuple[int, ...] = tuple(SPEC["batches"])
CONTROL_SECONDS: float = SPEC["control_seconds"]
QUALITY: Mapping[str, Json] = {user["name"]: user["quality"] for user in SPEC["users"]}


def registered(accuracy: Mapping[str, float]) -> Json:
    """The workload's spec with variants; ``accuracy``: share of correct digits by name."""
    return SPEC | {"variants": [{"name": name, "accuracy": round(share, 4)} for name, share in accuracy.items()]}
