"""The workload of the demo, ``workload.json``; its variants are added once it is known how often they are right."""

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
    """The workload with its variants, by name and accuracy."""
    return SPEC | {"variants": [{"name": name, "accuracy": round(share, 4)} for name, share in accuracy.items()]}
