"""What the framework can't tell of itself in the OpenAPI schema: where it is served, and what a key may be answered."""

from __future__ import annotations

from typing import Any

from app.http.dependencies import problems
from app.http.idempotency.once import HEADER

SERVERS: list[dict[str, Any]] = [
    {"url": "/", "description": "The service that serves this schema."},
    {
        "url": "http://{host}:{port}",
        "description": "`steward serve`.",
        "variables": {"host": {"default": "127.0.0.1"}, "port": {"default": "8080"}},
    },
]

IN_FLIGHT = f"The first request under this `{HEADER}` is still in flight: retry after `Retry-After` seconds."
OTHER_BODY = f"This `{HEADER}` was used with another request."


def document_keys(schema: dict[str, Any]) -> None:
    """Add to each operation that takes an idempotency key what it may be answered because of it."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            if any(parameter["name"].lower() == HEADER.lower() for parameter in operation.get("parameters", ())):
                _add(operation["responses"], 409, IN_FLIGHT)
                _add(operation["responses"], 422, OTHER_BODY)


def _add(responses: dict[str, Any], status: int, reason: str) -> None:
    found = responses.get(str(status))
    if found is None:
        responses[str(status)] = problems(status, **{f"_{status}": reason})[status]
    else:
        found["description"] = f"{found['description']} {reason}"


def only_unions(schema: dict[str, Any]) -> None:
    """A body that is one of several models is nothing else: the framework describes it as any object, too."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            for media in operation.get("requestBody", {}).get("content", {}).values():
                body = media.get("schema", {})
                if "oneOf" in body or "anyOf" in body:
                    for name in ("additionalProperties", "type", "title"):
                        body.pop(name, None)
