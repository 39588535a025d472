"""The reference of workload specs, written from the API's schema: each kind's fields, and one complete example."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from app.kinds.registry import KINDS

Schema = dict[str, Any]
MOST = 1e100
"""What every number is less than."""
LISTED = 110
"""Longest line of an example."""
SPECS = {f"{kind.capitalize()}Spec": kind for kind in ("iterative", "inference", "cluster", "workflow")}
"""The kind of each schema of a spec, in the order of the page."""
MEANING = {
    "IterativeSpec.resources": "what is allocated",
    "IterativeSpec.metrics": "what each iteration measures; `iteration_seconds` is added where it is missing",
    "IterativeSpec.features": "known numbers that metrics depend on",
    "IterativeSpec.iterations": "iterations of a run",
    "IterativeSpec.weights": "relative weights of missed targets, cost and changes",
    "IterativeSpec.criterion": "limit on the cost of simulating",
    "IterativeSpec.disturbances": "what runs may meet that past executions don't show",
    "Resource.unit": "shown with the values",
    "Resource.minimum": "least allocation",
    "Resource.maximum": "largest allocation",
    "Resource.step": "distance of two allocations; divides the range",
    "Resource.max_steps": "steps by which one decision may change the allocation",
    "Resource.price_per_hour": "price of one unit for an hour",
    "Resource.change_seconds": "time that a run loses when this resource changes",
    "Metric.unit": "shown with the values",
    "Metric.target": "what is wanted, in the metric's unit; null: it is only recorded and predicted",
    "Metric.goal": "whether the target is an upper bound, a lower bound, or a set point (within 10 %)",
    "Metric.weight": "weight of a miss among the targets",
    "Feature.minimum": "least value",
    "Feature.maximum": "largest value",
    "Weights.sla": "missed targets",
    "Weights.cost": "cost of the allocation",
    "Weights.change": "changes of the allocation",
    "Criterion.max_seconds": "seconds of one simulated iteration",
    "Criterion.max_fraction": "share of the real iteration",
    "Disturbances.lost_capacity": "a part of the resources goes; null: never",
    "Disturbances.pace_shift": "everything measured changes by a factor; null: never",
    "WorkflowSpec.nodes": "types of nodes that tasks run on",
    "WorkflowSpec.weights": "relative weights of the objective's terms",
    "WorkflowSpec.limits_per_user": "what one user may have at a time",
    "NodeType.processors": "processors of a node",
    "NodeType.minimum": "nodes that are always rented",
    "NodeType.maximum": "nodes that may be rented",
    "Limits.running_tasks": "tasks of a user that run; null: unlimited",
    "Limits.processors": "processors of a user's tasks; null: unlimited",
    "InferenceSpec.variants": "models that can answer a request",
    "InferenceSpec.servers": "classes of servers",
    "InferenceSpec.users": "whose requests are served",
    "InferenceSpec.weights": "relative weights of the objective's terms",
    "ServerClass.minimum": "servers that are always on",
    "ServerClass.maximum": "servers that may be on",
    "User.quality": "what an answer is worth by its delay",
    "ResponseQuality.full_until": "seconds up to which an answer has its full worth",
    "ResponseQuality.zero_at": "seconds from which it is worth nothing",
    "ResponseQuality.shape": "how its worth falls in between",
    "ClusterSpec.nodes": "classes of nodes",
    "ClusterSpec.queues": "priorities, the most urgent first",
    "ClusterSpec.weights": "relative weights of what agents are rewarded for",
    "NodeClass.count": "nodes of this class",
}
"""What fields mean of which the schema says nothing."""
EVERYWHERE = {"name": "unique name, by which all else refers to it", "kind": "the kind of workload"}


def reference(schema: Schema) -> str:
    """Each kind's fields, those of its parts, and an example with every field, as Markdown."""
    operation = schema["paths"]["/workloads"]["post"]["requestBody"]["content"]["application/json"]
    parts = []
    for name, kind in SPECS.items():
        example = operation["examples"][kind]
        parts.append(f"## Kind `{kind}`\n\n{example['summary']}, as an example with every field:\n")
        filled = KINDS[kind].spec.model_validate(example["value"]).model_dump(mode="json")
        parts.append(f"<!-- schema: {name} -->\n```json\n{_laid_out(filled)}\n```\n")
        parts += [_fields(schema["components"]["schemas"], one, one == name) for one in used(schema, name)]
    return "\n".join(parts).rstrip()


def used(schema: Schema, name: str) -> list[str]:
    """A schema's name and those of all that it consists of, each after the first that mentions it."""
    results = [name]
    for one in results:
        for part in re.findall(r"#/components/schemas/(\w+)", json.dumps(schema["components"]["schemas"][one])):
            results += [] if part in results else [part]
    return results


def meaning(schemas: Schema, name: str, field: str) -> str:
    """What a field means: its description in the schema, or here; empty: nobody says."""
    shape = schemas[name]["properties"][field]
    return str(shape.get("description") or MEANING.get(f"{name}.{field}") or EVERYWHERE.get(field, ""))


def _fields(schemas: Schema, name: str, whole: bool) -> str:
    shape = schemas[name]
    rows = [
        f"| `{field}` | {_type(schemas, one)} | {_default(field, shape)} | {_line(meaning(schemas, name, field))} |"
        for field, one in shape["properties"].items()
    ]
    text = _line(shape.get("description", "").partition("\n\n")[0].replace("``", "`"))
    heading = "" if whole else textwrap.fill(f"**{name}.** {text}", 118) + "\n\n"
    anchor = f'<a id="{name.lower()}"></a>\n\n'
    return anchor + heading + "\n".join(["| field | type | default | |", "|---|---|---|---|", *rows]) + "\n"


def _type(schemas: Schema, one: Schema) -> str:
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in one:
        return " or ".join(_type(schemas, option) for option in one["anyOf"])
    if "const" in one or "enum" in one:
        return ", ".join(f"`{value}`" for value in one.get("enum", [one.get("const")]))
    if one["type"] == "array":
        return "list of " + _type(schemas, one["items"]) if "items" in one else "two numbers"
    names = {"boolean": "true or false"}
    return str(names.get(one["type"], one["type"])) + _bounds(one)


def _bounds(one: Schema) -> str:
    """What values a number may have; the largest that any number may have is left out."""
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    arguments = [
        f"{sign} {one[name]:,.10g}" for name, sign in signs.items() if name in one and abs(float(one[name])) < MOST
    ]
    return f" ({', '.join(arguments)})" if arguments else ""


def _default(field: str, shape: Schema) -> str:
    if field in shape.get("required", ()):
        return "required"
    value = shape["properties"][field].get("default")
    if isinstance(value, dict):
        return "each of its defaults"
    return f"`{json.dumps(value)}`"


def _laid_out(value: Schema) -> str:
    """JSON with short values in one line, and long lists one element a line."""
    return "{" + ",\n ".join(f'"{name}": {_wrapped(one)}' for name, one in value.items()) + "}"


def _wrapped(value: Any) -> str:
    text = json.dumps(value)
    if len(text) < LISTED - 30:
        return text
    if isinstance(value, dict):
        return "{\n   " + ",\n   ".join(f'"{name}": {_wrapped(one)}' for name, one in value.items()) + "}"
    return "[\n  " + ",\n  ".join(_element(one) for one in value) + "]"


def _element(value: Any) -> str:
    text = json.dumps(value)
    if len(text) < LISTED or not isinstance(value, dict):
        return text
    return "{" + ",\n   ".join(f'"{name}": {json.dumps(one)}' for name, one in value.items()) + "}"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
