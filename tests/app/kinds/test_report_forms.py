"""Both forms of a report, what the schema says and what is read fast, accept the same lengths of lists."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from app.kinds.cluster import report as cluster
from app.kinds.inference import report as inference
from app.kinds.workflow import report as workflow
from app.kinds.workflow.queue import QueueReport


def lengths(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, int | None]:
    """The most items of each list in a schema, by path."""
    found: dict[str, int | None] = {}

    def walk(part: Any, path: str) -> None:
        if not isinstance(part, dict):
            return
        if "$ref" in part:
            walk(definitions[part["$ref"].rsplit("/", 1)[-1]], path)
        if part.get("type") == "array":
            found[path] = part.get("maxItems")
            walk(part.get("items", {}), f"{path}/*")
        for name, inside in part.get("properties", {}).items():
            walk(inside, f"{path}/{name}")
        for choice in part.get("anyOf", []):
            walk(choice, path)

    walk(schema, "")
    return found


@pytest.mark.parametrize(
    ("model", "twin"),
    [
        (QueueReport, workflow.EncodedQueue),
        (inference.InferenceReport, inference.EncodedReport),
        (cluster.ClusterReport, cluster.EncodedReport),
    ],
)
def test_both_forms_of_a_report_bound_their_lists_alike(model: type[BaseModel], twin: type[msgspec.Struct]) -> None:
    slow = model.model_json_schema()
    (fast,), definitions = msgspec.json.schema_components([twin], ref_template="#/$defs/{name}")
    expected = lengths(slow, slow.get("$defs", {}))
    assert lengths(fast, definitions) == expected
    assert None not in expected.values()
